"""MIL operators that move elements: read and run, they agree with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from frontends.coreml.mil import constant
from frontends.coreml.rows import F, I, Row, Rows, f, i

ROWS = Rows()
row = ROWS.add
X, Y = f(2, 3), f(2, 3)
IMAGE = f(2, 3, 4, 5)
# Shapes.
CUBE = f(2, 3, 4)
row("shape", {"x": CUBE}, np.array([2, 3, 4], I))
row("reshape", {"x": CUBE}, lambda x: x.reshape(4, 6), shape=[4, -1])
row("reshape", {"x": CUBE}, lambda x: x.reshape(2, 4, 3), shape=[0, 4, 3])
row("reshape", {"x": f(2, 50)}, lambda x: x.reshape(1, 1, 2, 50), shape=[1, 0, -1, 0])
row("reshape", {"x": CUBE, "shape": np.array([3, -1], I)}, lambda x, s: x.reshape(3, 8))
row(
    "reshape_like",
    {"x": f(6, 10), "a": f(2, 3, 4), "b": f(1, 5, 6)},
    lambda x, a, b: x.reshape(2, 5, 6),
    ref_tensors=["%a", "%b"],
    begins=[constant(0), constant(1)],
    ends=[constant(1), constant(0)],
    end_masks=[constant(False), constant(True)],
)
row("expand_dims", {"x": X}, lambda x: x[None, :, :, None], axes=[0, -1])
row("squeeze", {"x": f(1, 3, 1)}, lambda x: x[0], axes=[0])
row("squeeze", {"x": f(1, 3, 1)}, lambda x: x[0, :, 0])
row("flatten2d", {"x": CUBE}, lambda x: x.reshape(6, 4), axis=-1)
row("flatten2d", {"x": f(3)}, lambda x: x.reshape(3, 1))
row("fill", {"shape": np.array([2, 3], I)}, lambda s: np.full((2, 3), 1.5, F), value=1.5)
row("fill_like", {"ref_tensor": CUBE}, lambda x: np.full(x.shape, 7, I), value=7)
row(
    "range_1d",
    {"start": I(2), "end": I(9), "step": I(3)},
    lambda a, b, c: np.arange(a, b, c, dtype=I),
)
row("tile", {"x": X}, lambda x: np.tile(x, (2, 3)), reps=[2, 3])
row("non_zero", {"x": np.array([[0, 1], [2, 0]], F)}, np.array([[0, 1], [1, 0]], I))
row(
    "one_hot",
    {"indices": np.array([0, 2], I)},
    np.array([[5, -1], [-1, -1], [-1, 5]], I),
    one_hot_vector_size=3,
    axis=0,
    on_value=5,
    off_value=-1,
)

# Movement.
row("concat", {"a": X, "b": Y}, lambda a, b: np.concatenate([a, b], 1), values=["%a", "%b"], axis=1)
row(
    "concat",
    {"a": X, "b": Y},
    lambda a, b: np.stack([a, b], 2).reshape(2, 6),
    values=["%a", "%b"],
    axis=1,
    interleave=True,
)
row(
    "concat", {"a": I(2), "b": i(3)}, lambda a, b: np.array([2, *b], I), values=["%a", "%b"], axis=0
)
row("stack", {"a": X, "b": Y}, lambda a, b: np.stack([a, b], -1), values=["%a", "%b"], axis=-1)
row(
    "split", {"x": CUBE}, *(lambda x, n=n: x[:, :, n : n + 2] for n in (0, 2)), num_splits=2, axis=2
)
row("split", {"x": CUBE}, lambda x: x[:, :1], lambda x: x[:, 1:], split_sizes=[1, 2], axis=-2)
row("transpose", {"x": CUBE}, lambda x: x.transpose(2, 0, 1), perm=[-1, 0, 1])
row("reverse", {"x": CUBE}, lambda x: x[:, ::-1], axes=[1])
row("reverse", {"x": CUBE}, lambda x: x[::-1, ::-1, ::-1])


def reversed_rows(x: np.ndarray, lengths: Sequence[int], time: int, batch: int) -> np.ndarray:
    """Each row of the batch with its first elements backwards."""
    result = x.copy()
    rows, source = np.moveaxis(result, (batch, time), (0, 1)), np.moveaxis(x, (batch, time), (0, 1))
    for index, length in enumerate(lengths):
        rows[index, :length] = source[index, :length][::-1]
    return result


for time, batch in ((1, 0), (0, 1), (2, 0), (1, 2)):
    lengths = np.array([(2, 3, 1, 0)[n % 4] for n in range(CUBE.shape[batch])], I)
    lengths = np.minimum(lengths, CUBE.shape[time]).astype(I)
    row(
        "reverse_sequence",
        {"x": CUBE, "lengths": lengths},
        lambda x, n, time=time, batch=batch: reversed_rows(x, n, time, batch),
        seq_axis=time,
        batch_axis=batch,
    )
SQUARE = f(2, 4, 5)
for lower, upper in ((-1, 0), (0, -1), (1, 2), (-1, -1)):
    band = [
        [(lower < 0 or m - n <= lower) and (upper < 0 or n - m <= upper) for n in range(5)]
        for m in range(4)
    ]
    row("band_part", {"x": SQUARE}, lambda x, b=band: x * np.array(b), lower=lower, upper=upper)
PADS = ((0, 0), (0, 0), (1, 2), (2, 1))
for mode, name in (("constant", "constant"), ("reflect", "reflect"), ("replicate", "edge")):
    row("pad", {"x": IMAGE}, lambda x, n=name: np.pad(x, PADS, n), pad=[1, 2, 2, 1], mode=mode)
row(
    "pad",
    {"x": X, "pad": np.array([0, 1, 2, 0], I)},
    lambda x, p: np.pad(x, ((0, 1), (2, 0)), constant_values=9),
    mode="constant",
    constant_val=9.0,
)
DEEP = f(2, 8, 2, 3)
row(
    "depth_to_space",
    {"x": DEEP},
    lambda x: x.reshape(2, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(2, 2, 4, 6),
    block_size=2,
)
row(
    "pixel_shuffle",
    {"x": DEEP},
    lambda x: x.reshape(2, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 4, 6),
    upscale_factor=2,
)
FLAT = f(2, 3, 4, 6)
row(
    "space_to_depth",
    {"x": FLAT},
    lambda x: x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3),
    block_size=2,
)
row(
    "pixel_unshuffle",
    {"x": FLAT},
    lambda x: x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2, 3),
    downscale_factor=2,
)


def to_batch(x: np.ndarray) -> np.ndarray:
    """Blocks of 2 x 3 pixels as images, the place in the block first."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    parts = [x[:, :, r::2, c::3] for r in range(2) for c in range(3)]
    return np.concatenate(parts)


PADDINGS = np.array([[1, 1], [0, 0]], I)
row("space_to_batch", {"x": FLAT}, to_batch, block_shape=[2, 3], paddings=PADDINGS)
row("batch_to_space", {"x": to_batch(FLAT)}, FLAT, block_shape=[2, 3], crops=PADDINGS)
row("crop", {"x": IMAGE}, lambda x: x[..., 1:4, :-2], crop_height=[1, 0], crop_width=[0, 2])
row(
    "sliding_windows",
    {"x": f(2, 7)},
    lambda x: np.stack([x[:, n : n + 3] for n in (0, 2, 4)], 1),
    axis=1,
    size=3,
    stride=2,
)

# Slices.
for index, arguments in [
    (np.s_[1:, ::2, -1:], {"begin": [1, 0, -1], "end": [2, 3, 4], "stride": [1, 2, 1]}),
    (np.s_[:, 2:0:-1, :-1], {"begin": [0, 2, 0], "end": [2, 0, -1], "stride": [1, -1, 1]}),
    (
        np.s_[:, ::-1, 1],
        {
            "begin": [1, 1, 1],
            "end": [1, 1, 1],
            "stride": [1, -1, 1],
            "begin_mask": [True, True, False],
            "end_mask": [True, True, False],
            "squeeze_mask": [False, False, True],
        },
    ),
    (
        np.s_[-1, :, :],
        {"begin": [-1, 0, 0], "end": [0, 3, 4], "squeeze_mask": [True, False, False]},
    ),
]:
    row("slice_by_index", {"x": CUBE}, lambda x, s=index: x[s], **arguments)
    masks = {name: each for name, each in arguments.items() if name not in ("begin", "end")}
    given = {name: np.array(arguments[name], I) for name in ("begin", "end")}
    row("slice_by_index", {"x": CUBE, **given}, lambda x, b, e, s=index: x[s], **masks)
row("slice_by_size", {"x": CUBE}, lambda x: x[1:, :2, 3:], begin=[1, 0, 3], size=[1, 2, -1])
row(
    "slice_by_size",
    {"x": CUBE, "begin": np.array([1, 0, 3], I), "size": np.array([1, 2, -1], I)},
    lambda x, b, n: x[1:, :2, 3:],
)


def updated(x: np.ndarray, index: Any, update: np.ndarray) -> np.ndarray:
    """A copy of ``x`` with a slice replaced."""
    result = x.copy()
    result[index] = update
    return result


for index, arguments in [
    (np.s_[:, 1:2, :], {"begin": [0, 1, 0], "end": [2, 2, 4], "end_mask": [True, False, True]}),
    (np.s_[1:, 1:3, :2], {"begin": [1, 1, 0], "end": [2, 3, 2]}),
    (np.s_[:, ::2, 1::2], {"begin": [0, 0, 1], "end": [2, 3, 4], "stride": [1, 2, 2]}),
    (
        np.s_[1, :, 1:3],
        {"begin": [1, 0, 1], "end": [0, 3, 3], "squeeze_mask": [True, False, False]},
    ),
]:
    new = f(*CUBE[index].shape)
    row(
        "slice_update",
        {"x": CUBE, "update": new},
        lambda x, u, s=index: updated(x, s, u),
        ios=18,
        **arguments,
    )
    given = {name: np.array(arguments[name], I) for name in ("begin", "end")}
    masks = {name: each for name, each in arguments.items() if name not in ("begin", "end")}
    row(
        "slice_update",
        {"x": CUBE, "update": new, **given},
        lambda x, u, b, e, s=index: updated(x, s, u),
        ios=18,
        **masks,
    )

# Gathers and scatters.
row("gather", {"x": CUBE}, lambda x: x[:, [2, 0]], indices=[2, 0], axis=1)
row("gather", {"x": CUBE}, lambda x: x[:, :, 1], indices=1, axis=-1)
row("gather", {"x": CUBE}, lambda x: x[[-1, 0]], indices=[-1, 0], ios=16)
row("gather", {"x": CUBE, "indices": i(2, 2, low=0, high=2)}, lambda x, n: x[n])
PICKS = np.array([[3, 0], [1, 1]], I)
row(
    "gather",
    {"x": CUBE, "indices": PICKS},
    lambda x, n: np.stack([x[b][:, n[b]] for b in range(2)]),
    axis=2,
    batch_dims=1,
)
row(
    "gather",
    {"x": CUBE, "indices": PICKS % 3},
    lambda x, n: np.stack([x[b][n[b]] for b in range(2)]),
    axis=1,
    batch_dims=1,
)
row(
    "gather_along_axis",
    {"x": CUBE, "indices": i(2, 2, 4, low=0, high=3)},
    lambda x, n: np.take_along_axis(x, n.astype(np.int64), 1),
    axis=1,
)
PLACES = np.array([[0, 1], [1, 2]], I)
row("gather_nd", {"x": CUBE, "indices": PLACES}, lambda x, n: x[n[:, 0], n[:, 1]])
row(
    "gather_nd",
    {"x": CUBE, "indices": PLACES[:, 1:]},
    lambda x, n: np.stack([x[b, n[b, 0]] for b in range(2)]),
    batch_dims=1,
)
MODES: dict[str, Any] = {
    "update": lambda old, new: new,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}
for mode, combine in MODES.items():
    data, ups = f(4, 3, low=1), f(4, 2, low=1)

    def along(d: np.ndarray, n: np.ndarray, u: np.ndarray, c: Any = combine) -> np.ndarray:
        """Scatter columns."""
        result = d.copy()
        for position, place in enumerate(n):
            result[:, place] = c(result[:, place], u[:, position])
        return result

    def elements(d: np.ndarray, n: np.ndarray, u: np.ndarray, c: Any = combine) -> np.ndarray:
        """Scatter elements along dim 1."""
        result = d.copy()
        for r, p in np.ndindex(n.shape):
            result[r, n[r, p]] = c(result[r, n[r, p]], u[r, p])
        return result

    def slices(d: np.ndarray, n: np.ndarray, u: np.ndarray, c: Any = combine) -> np.ndarray:
        """Scatter rows."""
        result = d.copy()
        for position, (place,) in enumerate(n):
            result[place] = c(result[place], u[position])
        return result

    row(
        "scatter",
        {"data": data, "indices": np.array([2, 0], I), "updates": ups},
        along,
        axis=1,
        mode=mode,
    )
    spots = np.array([[0, 2], [1, 0], [2, 1], [0, 1]], I)
    row(
        "scatter_along_axis",
        {"data": data, "indices": spots, "updates": ups},
        elements,
        axis=1,
        mode=mode,
    )
    row(
        "scatter_nd",
        {"data": data, "indices": np.array([[3], [1]], I), "updates": f(2, 3, low=1)},
        slices,
        mode=mode,
    )


@pytest.mark.parametrize("row_", ROWS, ids=ROWS.ids())
def test_it_computes_what_numpy_computes(row_: Row) -> None:
    row_.check()
