"""Row for RotaryEmbedding: rotate pairs of elements by an angle that depends on the position."""

from __future__ import annotations

from typing import Any

from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.indexing import indices_from_zero
from smelt.targets.coreml.writer import Refused, Val


@writes("RotaryEmbedding")
def rotary_embedding(c: Call) -> None:
    """Write (cos * a - sin * b, sin * a + cos * b) for each pair (a, b) of elements of a head.

    The pairs are the two halves of the rotated elements, or if interleaved their neighbours. The
    operand is (batch, head, position, element), or (batch, position, heads * elements), which
    becomes (batch, position, head, element).
    """
    operand = c.x()
    x = operand if operand.rank == 4 else _heads(c, operand)
    size = x.dims[3]
    rotated = int(c.attribute("rotary_embedding_dim") or 0) or size
    if size is None or rotated is None or rotated % 2:
        raise Refused("the size of its heads is open, or the number of rotated elements is odd")
    cosine, sine = (_angles(c, index, 1 if operand.rank == 4 else 2) for index in (1, 2))
    step = 2 if c.attribute("interleaved") else 1
    starts = (0, 1) if step == 2 else (0, rotated // 2)
    first, second = (_part(c, x, start, rotated // 2, step) for start in starts)
    real = c.op("sub", c.op("mul", cosine, first), c.op("mul", sine, second))
    imaginary = c.op("add", c.op("mul", sine, first), c.op("mul", cosine, second))
    result = _pairs(c, real, imaginary) if step == 2 else _joined(c, real, imaginary)
    if rotated < size:
        rest = _part(c, x, rotated, size - rotated, 1)
        result = _joined(c, result, rest)
    c.done(result if operand.rank == 4 else _reshaped(c, result, operand))


def _joined(c: Call, first: Val, second: Val) -> Val:
    """Return two values concatenated along the elements of a head, the last axis."""
    size = (first.dims[3] or 0) + (second.dims[3] or 0)
    dims, values = (*first.dims[:3], size), [first, second]
    return c.w.op("concat", first.element, dims, values=values, axis=3, interleave=False)


def _pairs(c: Call, first: Val, second: Val) -> Val:
    """Return two values interleaved along the elements of a head: a0, b0, a1, b1, ..."""
    count = first.dims[3] or 0
    values = [c.expand(each, [4]) for each in (first, second)]
    dims = (*first.dims, 2)
    both = c.w.op("concat", first.element, dims, values=values, axis=4, interleave=False)
    shape = c.vector([*(c.size(first, axis) for axis in range(3)), 2 * count])
    dims = (*first.dims[:3], 2 * count)
    return c.w.op("reshape", first.element, dims, x=both, shape=shape)


def _heads(c: Call, x: Val) -> Val:
    """Return (batch, position, heads * elements) as (batch, position, head, element)."""
    count, width = int(c.attribute("num_heads") or 0), x.dims[2]
    if not count or width is None:
        raise Refused("its number of heads is open")
    dims = (*x.dims[:2], count, width // count)
    shape = c.vector([c.size(x, 0), c.size(x, 1), count, width // count])
    return c.w.op("reshape", x.element, dims, x=x, shape=shape)


def _reshaped(c: Call, x: Val, like: Val) -> Val:
    """Return ``x`` in the shape of ``like``."""
    return c.w.op("reshape", x.element, like.dims, x=x, shape=c.shape(like))


def _angles(c: Call, index: int, axis: int) -> Val:
    """Return the cosines or sines in input ``index``, with an axis of size 1 for the heads.

    They are (batch, position, pair), or a table by position, from which input 3 selects rows.
    """
    table = c.x(index)
    if c.has(3):
        places = indices_from_zero(c, 3, c.size(table, 0))
        more: dict[str, Any] = {"validate_indices": False} if c.w.ios >= 17 else {}
        dims = (*places.dims, *table.dims[1:])
        table = c.w.op(
            "gather",
            table.element,
            dims,
            x=table,
            indices=places,
            axis=0,
            batch_dims=0,
            **more,
        )
    return c.expand(table, [axis])


def _part(c: Call, x: Val, start: int, count: int, step: int) -> Val:
    """Return ``count`` elements of each head from ``start`` on, with stride ``step``."""
    return c.w.op(
        "slice_by_index",
        x.element,
        (*x.dims[:3], count),
        x=x,
        begin=[0, 0, 0, start],
        end=[0, 0, 0, start + (count - 1) * step + 1],
        stride=[1, 1, 1, step],
        begin_mask=[True, True, True, False],
        end_mask=[True, True, True, False],
        squeeze_mask=[False] * 4,
    )
