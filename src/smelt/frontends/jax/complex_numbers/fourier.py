"""Fourier transforms of any length: as matrix products, or as nodes for targets with an FFT.

A short transform is one product. A long one is split by its factors (Cooley and Tukey). A long
prime length becomes a convolution (Bluestein). Angles are reduced modulo the length as integers
first, so the error is only that of the products.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

import jax.numpy as jnp
import numpy as np

from smelt.frontends.jax import compat
from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.complex_numbers.parts import Array, Parts, Value, primitive, real

SHORT = 64
"""Transforms up to this length are one product where that is fastest."""

LARGEST_RADIX = 13
"""The largest prime factor of a length that the FFT kernels compute by steps of that radix.

The kernels compute larger prime factors as convolutions.
"""

LONGEST_PRIME = 512
"""Prime lengths up to this one are one product, too."""

FFT, IFFT, RFFT, IRFFT = range(4)


NODES, NODES_FROM = "dft_parts", 20
"""The primitive of a transform that stays one node, and the first opset with that operator."""


def _node_avals(
    re: compat.Aval, *_: compat.Aval, axis: int, length: int, inverse: bool, onesided: bool
) -> list[compat.Aval]:
    """Return the types of the results of a DFT node: two parts, or one real signal."""
    result_length = length // 2 + 1 if onesided and not inverse else length
    shape = (*re.shape[:axis], result_length, *re.shape[axis + 1 :])
    return [compat.ShapedArray(shape, re.dtype)] * (1 if onesided and inverse else 2)


_node = primitive(NODES, _node_avals)


def by_nodes(value: Value, kind: int, lengths: Sequence[Dim]) -> Value:
    """Return the transform of ``value`` by one DFT node per axis.

    1. RFFT: the last axis gives half of a spectrum, then the other axes are transformed.
    2. FFT and IFFT: all axes are transformed, the last one first.
    3. IRFFT: the other axes are transformed, then the last one gives real numbers.

    Sizes that are unknown or 0, and real transforms of a short prime length, go to ``transform``,
    which takes and returns the same values.
    """
    transformed = (*lengths, *_dims(value)[-len(lengths) :])
    if any(map(is_symbolic, transformed)) or 0 in transformed:
        return transform(value, kind, lengths)
    if kind in (RFFT, IRFFT) and len(lengths) == 1 and _is_short_prime(int(lengths[0])):
        return transform(value, kind, lengths)
    inverse, rank = kind in (IFFT, IRFFT), len(_dims(value))
    axes = range(rank - len(lengths), rank)
    if kind == RFFT:
        params = _node_parameters(rank - 1, lengths[-1], inverse=False, onesided=True)
        value = Parts(*_node.bind(value, **params))
    for axis in reversed(axes if kind in (FFT, IFFT) else axes[:-1]):
        parts = (value.re, value.im) if isinstance(value, Parts) else (value,)
        params = _node_parameters(axis, _dims(value)[axis], inverse, onesided=False)
        value = Parts(*_node.bind(*parts, **params))
    if kind != IRFFT:
        return value
    complex_value = value if isinstance(value, Parts) else real(value)
    params = _node_parameters(rank - 1, lengths[-1], inverse=True, onesided=True)
    (signal,) = _node.bind(complex_value.re, complex_value.im, **params)
    return signal


def _is_short_prime(length: int) -> bool:
    """True for a prime length at which a matrix product is faster than the FFT kernel.

    The product takes 0.5 of the kernel's time at length 37, and 0.35 at length 61.
    """
    return LARGEST_RADIX < length <= SHORT and all(length % a for a in range(2, isqrt(length) + 1))


def _dims(value: Value) -> tuple[Dim, ...]:
    """Return the shape of ``value``."""
    return tuple((value.re if isinstance(value, Parts) else value).shape)


def _node_parameters(axis: int, length: Dim, inverse: bool, onesided: bool) -> dict[str, Any]:
    """Return the parameters of the primitive of one DFT node."""
    return {"axis": axis, "length": int(length), "inverse": inverse, "onesided": onesided}


def transform(value: Value, kind: int, lengths: Sequence[Dim]) -> Value:
    """Return the result of the primitive ``fft`` by matrix products.

    ``kind`` is FFT, IFFT, RFFT or IRFFT; ``lengths`` are the lengths along the last dims.
    """
    axes = list(range(-len(lengths), 0))
    if kind == RFFT:
        z = _apply_along(value, axes[-1], lambda x: _real_forward(x, lengths[-1]))
        axes = axes[:-1]
    else:
        z = value if isinstance(value, Parts) else real(value)
    for axis in reversed(axes if kind != IRFFT else axes[:-1]):
        z = _apply_along(z, axis, forward if kind in (FFT, RFFT) else backward)
    if kind == IRFFT:
        return _real_backward(z, lengths[-1])
    return z


def _apply_along(value: Any, axis: int, fn: Any) -> Parts:
    """Return ``fn`` of ``value`` along ``axis``; ``fn`` transforms the last dim."""
    if isinstance(value, Parts):
        moved: Any = Parts(*(jnp.moveaxis(part, axis, -1) for part in (value.re, value.im)))
    else:
        moved = jnp.moveaxis(value, axis, -1)
    result = fn(moved)
    return Parts(*(jnp.moveaxis(part, -1, axis) for part in (result.re, result.im)))


def backward(z: Parts) -> Parts:
    """Return the inverse transform of the last dim.

    It is the forward transform with real and imaginary part exchanged before and after, divided by
    the length.
    """
    size = z.re.shape[-1]
    swapped = forward(Parts(z.im, z.re))
    return Parts(swapped.im / size, swapped.re / size)


def forward(z: Parts) -> Parts:
    """Return the forward transform of the last dim, by the method for its length.

    The module's docstring names the methods.
    """
    size = z.re.shape[-1]
    if is_symbolic(size) or size <= SHORT:
        return _product(z, size)
    first = next(a for a in range(isqrt(size), 0, -1) if size % a == 0)
    if first > 1:
        return _factored(z, first, size // first)
    return _product(z, size) if size <= LONGEST_PRIME else _convolved(z, size)


def _angles(size: Dim, rows: Dim, columns: Dim) -> tuple[Any, Any]:
    """Return cosine and sine of ``2 pi j k / size``, as constants if the sizes are known."""
    xp: Any = jnp if is_symbolic(size) else np
    turns = xp.arange(rows)[:, None] * xp.arange(columns)[None, :] % size
    angles = turns * (2 * np.pi / xp.asarray(size))
    return xp.cos(angles), xp.sin(angles)


def _matrix(blocks: list[list[Any]], like: Array) -> Array:
    """Return ``blocks`` joined to one matrix in the dtype of ``like``."""
    numpy_or_jax: Any = np if all(isinstance(b, np.ndarray) for row in blocks for b in row) else jnp
    rows = [numpy_or_jax.concatenate(row, axis=1) for row in blocks]
    return numpy_or_jax.concatenate(rows, axis=0).astype(like.dtype)


def _product(z: Parts, size: Dim) -> Parts:
    """Return the transform as one product with the matrix ``[[cos, -sin], [sin, cos]]``."""
    cos, sin = _angles(size, size, size)
    matrix = _matrix([[cos, -sin], [sin, cos]], z.re)
    return _parts_from_halves(jnp.concatenate([z.re, z.im], axis=-1) @ matrix, size)


def _parts_from_halves(x: Array, size: Dim) -> Parts:
    """Return the two halves of the last dim as real and imaginary part."""
    return Parts(x[..., :size], x[..., size:])


def _factored(z: Parts, first: int, second: int) -> Parts:
    """Return the transform of length ``first * second`` in two steps (Cooley and Tukey).

    Transforms of length ``first``, a product with twiddle factors, transforms of length ``second``.
    """
    size = first * second
    shape = z.re.shape[:-1]

    def spread(part: Array, *dims: int) -> Array:
        """Return ``part`` reshaped to ``[..., *dims]`` with the last two dims exchanged."""
        return jnp.swapaxes(part.reshape(*shape, *dims), -1, -2)

    inner = forward(Parts(*(spread(part, first, second) for part in (z.re, z.im))))
    cos, sin = (part.astype(z.re.dtype) for part in _angles(size, second, first))
    inner = inner * Parts(cos, -sin)
    transposed = Parts(*(jnp.swapaxes(part, -1, -2) for part in (inner.re, inner.im)))
    outer = forward(transposed)
    return Parts(
        *(jnp.swapaxes(part, -1, -2).reshape(*shape, size) for part in (outer.re, outer.im))
    )


def _convolved(z: Parts, size: int) -> Parts:
    """Return the transform of a long prime length as a convolution with a chirp (Bluestein).

    With ``w = exp(-i pi / size)`` the sum over j of ``z_j w^(2jk)`` is ``w^(k^2)`` times the sum of
    ``(z_j w^(j^2)) w^(-(k-j)^2)``, because ``2jk = j^2 + k^2 - (k-j)^2``. The second sum is a
    convolution. Transforms whose length is a power of 2 compute it.
    """
    length = 1 << (2 * size - 2).bit_length()
    positions = np.arange(size)
    chirp = np.exp(-1j * np.pi * (positions * positions % (2 * size)) / size)
    kernel = np.zeros(length, np.complex128)
    kernel[:size] = chirp.conj()
    kernel[length - size + 1 :] = chirp[1:][::-1].conj()
    factor, spectrum = (_constant(array, z.re) for array in (chirp, np.fft.fft(kernel)))
    pads = [(0, 0)] * (z.re.ndim - 1) + [(0, length - size)]
    chirped = z * factor
    padded = Parts(jnp.pad(chirped.re, pads), jnp.pad(chirped.im, pads))
    convolved = backward(forward(padded) * spectrum)
    return Parts(convolved.re[..., :size], convolved.im[..., :size]) * factor


def _constant(array: np.ndarray, like: Array) -> Parts:
    """Return a complex constant in the dtype of ``like``."""
    return Parts(array.real.astype(like.dtype), array.imag.astype(like.dtype))


def _real_forward(x: Array, size: Dim) -> Parts:
    """Return the first ``size // 2 + 1`` elements of a real signal's transform.

    The other elements are their complex conjugates.
    """
    half_length = size // 2 + 1
    if is_symbolic(size) or size <= SHORT:
        cos, sin = _angles(size, size, half_length)
        return _parts_from_halves(x @ _matrix([[cos, -sin]], x), half_length)
    spectrum = forward(real(x))
    return Parts(spectrum.re[..., :half_length], spectrum.im[..., :half_length])


def _real_backward(z: Parts, size: Dim) -> Array:
    """Return the real signal of ``size`` elements whose transform begins with ``z``.

    Each element is a weighted sum of cosines and sines. The other half of the transform is the
    conjugate of this one, so frequencies between the first and the last one count twice.
    """
    half_length = size // 2 + 1
    if is_symbolic(size) or size <= SHORT:
        cos, sin = _angles(size, half_length, size)
        numpy_or_jax: Any = jnp if is_symbolic(size) else np
        position = numpy_or_jax.arange(half_length)[:, None]
        occurs_once = (position == 0) | (2 * position == size)
        weight = numpy_or_jax.where(occurs_once, 1, 2) / numpy_or_jax.asarray(size)
        # The ends of a real signal's transform are real; their imaginary parts are ignored.
        matrix = _matrix(
            [[cos * weight], [numpy_or_jax.where(occurs_once, 0, -sin * weight)]], z.re
        )
        return jnp.concatenate([z.re, z.im], axis=-1) @ matrix
    mirrored = Parts(z.re[..., 1 : (size + 1) // 2], -z.im[..., 1 : (size + 1) // 2])
    frequencies = np.arange(half_length)
    im_without_ends = jnp.where((frequencies == 0) | (2 * frequencies == size), 0, z.im).astype(
        z.im.dtype
    )
    spectrum = Parts(
        jnp.concatenate([z.re, mirrored.re[..., ::-1]], axis=-1),
        jnp.concatenate([im_without_ends, mirrored.im[..., ::-1]], axis=-1),
    )
    return backward(spectrum).re
