"""What a converted callable is run on besides its own arguments: extremes, alone and together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jax_surface.surface import Entry

EDGED = ("jax.numpy", "jax.lax", "jax.nn", "jax.scipy.special")
EDGES = {
    "f": [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e30, -1e30, 1e-30, 0.5, -2.5],
    "i": [0, 1, -1, -(2**31), 2**31 - 1, 7],
    "b": [True, False],
}
PLACED = {"f": {"nan": [np.nan], "inf": [np.inf, -0.0, -np.inf]}, "i": {"int_min": [-(2**31)]}}
"""What is placed in one operand whose other elements stay ordinary."""

UNSPECIFIED = frozenset(
    {
        # Iterations of their own, which meet NaN and inf at another step.
        *("jax.numpy.roots", "jax.numpy.poly", "jax.numpy.polyfit"),
        # Any choice of k candidates is right, and NaN has no place among them.
        *("jax.lax.approx_max_k", "jax.lax.approx_min_k"),
        # Loops of JAX that do not end on INT_MIN.
        *("jax.numpy.gcd", "jax.numpy.lcm"),
        # Convolutions, which may or may not multiply NaN with the zeros of padding.
        *("jax.numpy.convolve", "jax.numpy.correlate", "jax.lax.conv_transpose"),
        *("jax.lax.conv_general_dilated_patches", "jax.numpy.polymul"),
        *("jax.lax.conv_with_general_padding", "jax.lax.conv_general_dilated", "jax.lax.conv"),
        # Products of many terms, in which 0 * inf and inf - inf depend on the order.
        *("jax.lax.conv_general_dilated_local", "jax.lax.fft"),
        # Degrees that are places in an array, beyond which JAX itself crashes.
        "jax.scipy.special.sph_harm_y",
        # A series that JAX itself never ends.
        "jax.scipy.special.hyp2f1",
    }
)
"""Callables whose results for extremes are those of an algorithm, not of a definition."""

OVERFLOWING = frozenset(
    {
        # Series for which JAX gives NaN where a power overflows, and not the limit, inf.
        *("jax.lax.zeta", "jax.lax.polygamma"),
        *("jax.scipy.special.zeta", "jax.scipy.special.polygamma"),
        # Means of squares less squares of means, of which all overflow or cancel.
        "jax.nn.standardize",
        # Scores that overflow, which attention as one operator does not hide by adding its mask.
        "jax.nn.dot_product_attention",
        # A continued fraction of over 400,000 steps near 0.
        *("jax.scipy.special.exp1", "jax.scipy.special.expn"),
    }
)
"""Callables that are not asked about all extremes at once."""


@dataclass(frozen=True)
class Trial:
    """Inputs, and how freely NaN and inf may stand for each other in the results."""

    name: str
    inputs: list[np.ndarray]
    loose: bool = False


def trials(entry: Entry, inputs: list[np.ndarray], expected: list[np.ndarray]) -> Iterator[Trial]:
    """The ordinary inputs, then those with extremes."""
    yield Trial("", inputs)
    if entry.module not in EDGED or not inputs or str(entry) in UNSPECIFIED:
        return
    alike = len({array.shape for array in (*inputs, *expected)}) == 1
    if alike and str(entry) not in OVERFLOWING:
        yield Trial("edges, ", [edge_values(array, turn) for turn, array in enumerate(inputs)])
    for turn, array in enumerate(inputs):
        for name, values in PLACED.get(array.dtype.kind, {}).items():
            changed = placed(array, values)
            others = [*inputs[:turn], changed, *inputs[turn + 1 :]]
            yield Trial(f"{name} in input {turn}, ", others, loose=name == "inf")


def edge_values(array: np.ndarray, turn: int) -> np.ndarray:
    """NaN, infinities, zeros and extremes in the shape of ``array``, shifted for each operand."""
    values = EDGES.get(array.dtype.kind)
    if values is None:
        return array
    shifted = [values[(i * (2 * turn + 1) + turn) % len(values)] for i in range(array.size)]
    return np.asarray(shifted).astype(array.dtype).reshape(array.shape)


def placed(array: np.ndarray, values: list[float]) -> np.ndarray:
    """``array`` with ``values`` from its second element on, as far as they fit."""
    if array.dtype.kind == "i":  # The least number of narrower types.
        values = [max(value, np.iinfo(array.dtype).min) for value in values]
    changed = array.copy()
    flat = changed.reshape(-1)
    start = min(1, max(array.size - 1, 0))
    for offset, value in enumerate(values[: array.size - start]):
        flat[start + offset] = value
    return changed
