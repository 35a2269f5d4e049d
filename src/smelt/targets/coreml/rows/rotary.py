"""RotaryEmbedding: pairs of elements are turned by an angle that depends on the position."""

from __future__ import annotations

from typing import Any

from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.indexing import guarded
from smelt.targets.coreml.writer import Refused, Val


@writes("RotaryEmbedding")
def rotary_embedding(c: Call) -> None:
    """Write products of the halves of each head by cosines and sines.

    The operand is (batch, head, position, element), or (batch, position, heads * elements), which
    becomes (batch, position, head, element).
    """
    given = c.x()
    x = given if given.rank == 4 else _heads(c, given)
    size = x.dims[3]
    turned = int(c.attribute("rotary_embedding_dim") or 0) or size
    if size is None or turned is None or turned % 2:
        raise Refused("the size of its heads is open, or an odd number of elements turns")
    cosine, sine = (_angles(c, index, 1 if given.rank == 4 else 2) for index in (1, 2))
    step = 2 if c.attribute("interleaved") else 1
    starts = (0, 1) if step == 2 else (0, turned // 2)
    first, second = (_part(c, x, start, turned // 2, step) for start in starts)
    real = c.op("sub", c.op("mul", cosine, first), c.op("mul", sine, second))
    imaginary = c.op("add", c.op("mul", sine, first), c.op("mul", cosine, second))
    result = _pairs(c, real, imaginary) if step == 2 else _joined(c, real, imaginary)
    if turned < size:
        rest = _part(c, x, turned, size - turned, 1)
        result = _joined(c, result, rest)
    c.done(result if given.rank == 4 else _reshaped(c, result, given))


def _joined(c: Call, first: Val, second: Val) -> Val:
    """Return two values joined along the elements of a head."""
    size = (first.dims[3] or 0) + (second.dims[3] or 0)
    dims, values = (*first.dims[:3], size), [first, second]
    return c.w.op("concat", first.element, dims, values=values, axis=3, interleave=False)


def _pairs(c: Call, first: Val, second: Val) -> Val:
    """Return the elements of two values in turn."""
    count = first.dims[3] or 0
    values = [c.expand(each, [4]) for each in (first, second)]
    dims = (*first.dims, 2)
    both = c.w.op("concat", first.element, dims, values=values, axis=4, interleave=False)
    shape = c.vector([*(c.size(first, axis) for axis in range(3)), 2 * count])
    dims = (*first.dims[:3], 2 * count)
    return c.w.op("reshape", first.element, dims, x=both, shape=shape)


def _heads(c: Call, x: Val) -> Val:
    """Return ``x`` with a dim of heads."""
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
    """Return cosines or sines by batch and position, with a dim for the heads at ``axis``."""
    table = c.x(index)
    if c.has(3):
        places = guarded(c, 3, c.size(table, 0))
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
    """Return ``count`` elements of each head from ``start`` on, each ``step``-th."""
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
