"""When two results count as the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Arrays = list[np.ndarray]


def _svd(results: Arrays) -> Arrays:
    if len(results) != 3:
        return results
    u, s, vh = results
    count = s.shape[-1]
    product = (u[..., :count] * s[..., None, :]) @ vh[..., :count, :]
    return [s, product, _gram(u), _gram(np.swapaxes(vh, -1, -2))]


def _eigh(results: Arrays) -> Arrays:
    """Eigenvalues come first in jax.numpy, and last in jax.lax."""
    if len(results) != 2:
        return results
    w, v = sorted(results, key=np.ndim)
    return [w, (v * w[..., None, :]) @ np.swapaxes(v, -1, -2), _gram(v)]


def _schur(results: Arrays) -> Arrays:
    """Each vector has a factor of absolute value 1 that is free; the diagonal is not."""
    if len(results) != 2:
        return results
    form, vectors = results
    adjoint = np.swapaxes(vectors, -1, -2).conj()
    diagonal = np.diagonal(form, axis1=-2, axis2=-1)
    return [diagonal, vectors @ form @ adjoint, vectors @ adjoint]


def _gram(columns: np.ndarray) -> np.ndarray:
    return np.swapaxes(columns, -1, -2) @ columns


SPECIFIED: dict[str, Callable[[Arrays], Arrays]] = {"svd": _svd, "eigh": _eigh, "schur": _schur}
"""What is specified of the results, by name: vectors have a sign that is free."""


def differs(want: np.ndarray, got: np.ndarray, loose: bool = False) -> str:
    """What is different, empty if nothing: integers equal, floats within 1e-2, 2e-4 or 1e-8.

    ``loose`` lets NaN stand for inf and inf for NaN, as the order of a sum decides.
    """
    if want.dtype != got.dtype or want.shape != got.shape:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype.kind not in "fV":
        return "" if np.array_equal(want, got) else f"{want.ravel()[:4]} became {got.ravel()[:4]}"
    a, b = want.astype(np.float64), got.astype(np.float64)
    scale = float(np.max(np.abs(a[np.isfinite(a)]), initial=1e-30))
    rtol = {2: 1e-2, 4: 2e-4}.get(want.dtype.itemsize, 1e-8)
    close = np.isclose(a, b, rtol=rtol, atol=rtol * min(scale, 1.0), equal_nan=True)
    if loose:
        close |= ~np.isfinite(a) & np.isnan(b) | np.isnan(a) & ~np.isfinite(b)
    if close.all():
        return ""
    at = np.argmin(close.ravel())
    return f"{a.ravel()[at]:.7g} became {b.ravel()[at]:.7g} at {int(at)}"
