"""Rows for DFT and STFT: products by constant matrices of cosines and sines."""

from __future__ import annotations

import numpy as np

from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.slices import take
from smelt.targets.coreml.writer import Refused, Val


@writes("DFT")
def fourier(c: Call) -> None:
    """Write a Fourier transform along one axis, moved last for matrix products, and moved back.

    The last axis of operand and result holds (real, imaginary) or (real).
    """
    x = c.x()
    axis = c.fixed_ints(2, "axis") or [
        int(c.attribute("axis") if c.attribute("axis") is not None else -2)
    ]
    place = axis[0] % x.rank
    length = (c.fixed_ints(1, "length") or [x.dims[place] or 0])[0]
    size, parts = x.dims[place], x.dims[-1]
    inverse, one_sided = bool(c.attribute("inverse")), bool(c.attribute("onesided"))
    if size is None or not length or parts is None or (inverse and one_sided):
        raise Refused("its length is open, or it is a one-sided inverse")
    count = length // 2 + 1 if one_sided else length
    matrices = _matrices(size, count, length, min(size, length), inverse=inverse)
    signals = _signals(c, x, place)
    perm = [each for each in range(x.rank - 1) if each != place] + [place]
    back = [perm.index(each) for each in range(x.rank - 1)]
    parts_of = _transformed(c, signals, matrices)
    c.done(_pairs(c, [c.transpose(each, back) for each in parts_of]))


def _matrices(
    size: int, count: int, length: int, used: int, *, inverse: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the real and imaginary part of the DFT matrix, (size, count).

    Element (n, k) is ``exp(-2i pi n k / length)``, or for the inverse the conjugate over
    ``length``. Rows from ``used`` on are 0, because those samples do not count.
    """
    angles = 2 * np.pi * np.outer(np.arange(used), np.arange(count)) / length
    scale = 1 / length if inverse else 1.0
    cosine, sine = np.zeros((size, count)), np.zeros((size, count))
    cosine[:used] = np.cos(angles) * scale
    sine[:used] = np.sin(angles) * (scale if inverse else -scale)
    return cosine, sine


def _transformed(
    c: Call, signals: list[Val], matrices: tuple[np.ndarray, np.ndarray]
) -> tuple[Val, Val]:
    """Return real and imaginary part of ``(a + ib) (C + iS)``, that is aC - bS and aS + bC.

    ``signals`` are a and, unless the signal is real, b; ``matrices`` are C and S.
    """
    kind, count = signals[0].element, matrices[0].shape[1]
    cosine, sine = (c.constant(each.astype(np.float32), kind, "dft") for each in matrices)
    real, imaginary = (_product(c, signals[0], each, count) for each in (cosine, sine))
    if len(signals) == 2:
        real = c.op("sub", real, _product(c, signals[1], sine, count))
        imaginary = c.op("add", imaginary, _product(c, signals[1], cosine, count))
    return real, imaginary


def _pairs(c: Call, parts: list[Val]) -> Val:
    """Return real and imaginary parts as pairs along a new last axis."""
    both = [c.expand(each, [each.rank]) for each in parts]
    dims = (*both[0].dims[:-1], 2)
    kind, last = both[0].element, len(dims) - 1
    return c.w.op("concat", kind, dims, values=both, axis=last, interleave=False)


@writes("STFT")
def short_time_fourier(c: Call) -> None:
    """Gather the frames of the signal, and write their transforms.

    The window is multiplied into the rows of the DFT matrix.
    """
    x = c.x()
    size = x.dims[1]
    steps = c.fixed_ints(1, "frame step")
    window = c.array(2) if c.has(2) else None
    lengths = c.fixed_ints(3, "frame length")
    if size is None or steps is None or (c.has(2) and window is None):
        raise Refused("its signal has an open length, or its window is computed")
    length = lengths[0] if lengths else (size if window is None else window.size)
    first = np.arange(0, size - length + 1, steps[0])
    if not first.size:
        raise Refused("a dimension of its result is 0, which Core ML does not have")
    count = length // 2 + 1 if c.attribute("onesided") else length
    matrices = _matrices(length, count, length, length)
    if window is not None:
        weights = window.reshape(-1, 1).astype(np.float64)
        matrices = matrices[0] * weights, matrices[1] * weights
    rows = take(c, x, first[:, None] + np.arange(length), 1) if x.rank == 3 else None
    if rows is None:
        rows = c.expand(take(c, x, first[:, None] + np.arange(length), 1), [3])
    signals = _signals(c, rows, 2)
    c.done(_pairs(c, list(_transformed(c, signals, matrices))))


def _signals(c: Call, x: Val, place: int) -> list[Val]:
    """Split the last axis of ``x`` into real and, if it has two elements, imaginary part.

    Returns one or two values without that axis, whose axis ``place`` is moved last.
    """
    parts = x.dims[-1]
    results = [(x.element, (*x.dims[:-1], 1))] * (parts or 1)
    whole = (
        [x] if parts == 1 else c.w.ops("split", results, x=x, split_sizes=[1, 1], axis=x.rank - 1)
    )
    perm = [each for each in range(x.rank - 1) if each != place] + [place]
    return [c.transpose(c.squeeze(each, [x.rank - 1]), perm) for each in whole]


def _product(c: Call, x: Val, matrix: Val, count: int) -> Val:
    """Return ``x @ matrix``, where ``matrix`` has ``count`` columns; ``x`` may be a vector."""
    rows = c.expand(x, [0]) if x.rank == 1 else x
    result = c.w.op(
        "matmul",
        x.element,
        (*rows.dims[:-1], count),
        x=rows,
        y=matrix,
        transpose_x=False,
        transpose_y=False,
    )
    return c.squeeze(result, [0]) if x.rank == 1 else result
