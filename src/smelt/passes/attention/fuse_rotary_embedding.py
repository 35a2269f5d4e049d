"""Fuse rotary position embeddings (RoFormer, Su et al. 2021) into one ``RotaryEmbedding``.

    before   Add(Mul(x, cos), Mul(Concat(Neg(x[..., D/2:]), x[..., :D/2]), sin)) ─> y
    after    RotaryEmbedding(x, cos[..., :D/2], sin[..., :D/2], positions) ─> y

    before   Concat(x1 * cos - x2 * sin, x2 * cos + x1 * sin), of the halves x1 and x2 of x
    after    RotaryEmbedding(x, cos, sin, positions)

    before   Add(Mul(x, cos), Mul(Reshape(stack(-x[..., 1::2], x[..., ::2])), sin))
    after    RotaryEmbedding<interleaved=1>(x, cos[..., ::2], sin[..., ::2], positions)

    before   Reshape(stack(x1 * cos - x2 * sin, x1 * sin + x2 * cos)), of the neighbours x1 and x2
    after    RotaryEmbedding<interleaved=1>(x, cos, sin, positions)

    before   Concat(RotaryEmbedding(x[..., :R], ...), x[..., R:])
    after    RotaryEmbedding<rotary_embedding_dim=R>(x, ...)

    before   RotaryEmbedding(Transpose<perm=[0, 2, 1, 3]>(x: B,S,H,D))
    after    Transpose<perm=[0, 2, 1, 3]>(RotaryEmbedding<num_heads=H>(x: B,S,H*D)) in heads

    before   RotaryEmbedding(Reshape(x: B,1,H*D to B,H,1,D))
    after    Reshape(RotaryEmbedding<num_heads=H>(x)) in heads

PyTorch models write the first form, JAX models often the second, GPT-J and Cohere the third.
Products of complex numbers, as in Llama's published code, give the fourth. GPT-NeoX and Phi rotate
a part of each head. The angles have one row for each position of x; if all batches share them, the
operator gets the positions 0, 1, ... A factor of x moves behind the operator, where an Attention
absorbs it. At 64 positions or more, ONNX Runtime takes 0.3 of the time for the operator.

Needs    (1) opset 23; (2) float32 or float16; (3) pairs of the last dim, or of a part of it, formed
         by halves or neighbours at constant positions; (4) in the first and third form, angles that
         are equal within a pair; (5) angles with one row for each position, the same for all heads,
         and shared by all batches or one for each; (6) in the last two forms, constant head count
         and head size.
Keeps    (1) inner results with other readers; (2) a result whose shape differs from that of x.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import OneOf, Op, Pattern, Var, const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim, same_shape
from smelt.passes.attention.rotary_neighbours import products_of_neighbours
from smelt.passes.attention.rotary_operator import TYPES, rotary_of, rotated
from smelt.passes.attention.rotary_pairs import (
    angles_of_pairs,
    is_interleaved,
    numbers_of,
    stacks_pairs,
)
from smelt.passes.base import rounding, rule_pass

_x = var("x")
_whole = var("whole")


def _first_of_pairs(source: Var, name: str) -> Op:
    """Match the first half or the even elements of ``source``, by Slice or as output 0 of a
    Split."""
    return op(("Slice", "Split"), source, rest=True, name=name)


def _second_of_pairs(source: Var, name: str) -> OneOf:
    """Match the second half or the odd elements of ``source``, by Slice or as output 1 of a
    Split."""
    return one_of(
        op("Slice", source, rest=True, name=name),
        op("Split", source, rest=True, output=1, name=name),
    )


def _times(value: Pattern, factor: str) -> Op:
    """Match a product of ``value`` and the cosines or sines called ``factor``."""
    return op("Mul", value, var(factor), commutative=True)


def _rotation(x: Pattern, source: Var) -> Op:
    """Match ``x * cos + rotated * sin``, where ``rotated`` joins or stacks parts of ``source``."""
    low, high = _first_of_pairs(source, "low"), op("Neg", _second_of_pairs(source, "high"))
    stack = op("Concat", *(op("Unsqueeze", part, rest=True) for part in (high, low)))
    rotated_pairs = one_of(
        op("Concat", high, low, name="joined"), op("Reshape", stack, rest=True, name="stacked")
    )
    return op("Add", _times(x, "cos"), _times(rotated_pairs, "sin"), commutative=True)


@rule(_rotation(_x, _x))  # keeps 1
def rotated_pairs(m: Match, b: Builder) -> Replacement:
    """Replace a rotation of all elements of x."""
    return _rotary_of_parts(m, b, m["x"])


@rule(_rotation(op("Slice", _whole, rest=True, name="x"), _whole))  # keeps 1
def rotated_slice(m: Match, b: Builder) -> Replacement:
    """Replace a rotation of x, where x and its parts are slices of ``whole``."""
    return _rotary_of_parts(m, b, m["whole"])


def _rotary_of_parts(m: Match, b: Builder, source: ir.Value) -> Replacement:
    """Return a RotaryEmbedding for a rotation of pairs taken from ``source``, or a Miss."""
    stacked = m.get("stacked") is not None
    pairs = m.node("stacked" if stacked else "joined")
    if stacked and not stacks_pairs(pairs, m.constants):
        return Miss("pairs are not stacked along a new last axis")
    refusal = _unfit(m, None if stacked else pairs, source, stacked)
    if refusal is not None:
        return refusal
    cos, sin = (angles_of_pairs(m[name], stacked, m, b) for name in ("cos", "sin"))  # needs 4
    if cos is None or sin is None:
        return Miss("the angles of a pair are not proved to be equal")
    x = m["x"]
    if x is not source:
        slice_ = m.node("x")
        x = b.like(slice_, source, *slice_.inputs[1:])
    return rotated(x, m, b, cos, sin, stacked)


@rule(  # keeps 1
    op(
        "Concat",
        op(
            "Sub",
            _times(_first_of_pairs(_x, "low"), "cos"),
            _times(_second_of_pairs(_x, "high"), "sin"),
        ),
        op(
            "Add",
            _times(_second_of_pairs(_x, "high"), "cos"),
            _times(_first_of_pairs(_x, "low"), "sin"),
            commutative=True,
        ),
    )
)
def products_of_halves(m: Match, b: Builder) -> Replacement:
    """Replace ``Concat(x1 * cos - x2 * sin, x2 * cos + x1 * sin)``."""
    refusal = _unfit(m, m.root, m["x"], interleaved=False)
    return rotated(m["x"], m, b, m["cos"], m["sin"], False) if refusal is None else refusal


def _unfit(m: Match, concat: ir.Node | None, source: ir.Value, interleaved: bool) -> Miss | None:
    """Return a Miss if the shape, dtype, axis or pairing of x does not fit the operator."""
    x = m["x"]
    if x.shape is None or len(x.shape) != 4:
        return Miss("the rank of x is not 4")
    if not isinstance(x.shape[3], int):
        return Miss("the head size of x is not constant")
    axis = concat.attributes.get_int("axis", 0) if concat is not None else -1
    if axis not in (-1, 3):  # needs 2
        return Miss("the halves are not joined along the last axis")
    if x.dtype not in TYPES:  # needs 2
        return Miss(f"RotaryEmbedding of {x.dtype} has no kernel")
    if is_interleaved(x, m["low"], m["high"], source, m.constants) is not interleaved:  # needs 3
        parts = "even and odd elements" if interleaved else "halves"
        return Miss(f"the two parts are not the {parts} of the last dim of x")
    if not same_shape(x.shape, m.root.outputs[0].shape):  # keeps 2
        return Miss("the angles broadcast x to another shape")
    return None


@rule(op("RotaryEmbedding", op("Transpose", _x, perm=(0, 2, 1, 3)), rest=True))
def heads_last(m: Match, b: Builder) -> Replacement:
    """Move the Transpose of heads behind the operator, so that an Attention can absorb it."""
    shape = m["x"].shape
    heads, size = (shape[2], shape[3]) if shape is not None and len(shape) == 4 else (None, None)
    if not isinstance(heads, int) or not isinstance(size, int):  # needs 6
        return Miss(f"the head {'size' if isinstance(heads, int) else 'count'} is not constant")
    flat = b.op("Reshape", m["x"], b.const_i64([0, 0, heads * size]))
    attributes = [*m.root.attributes.values(), ir.AttrInt64("num_heads", heads)]
    rotated = rotary_of([flat, *m.root.inputs[1:]], attributes, b)
    heads_split = b.op("Reshape", rotated, b.const_i64([0, 0, heads, size]))
    return b.op("Transpose", heads_split, perm=[0, 2, 1, 3])


@rule(
    op("RotaryEmbedding", op(("Reshape", "Unsqueeze"), var("rows"), rest=True, name="x"), rest=True)
)
def heads_of_one_position(m: Match, b: Builder) -> Replacement:
    """Move the Reshape that splits heads behind the operator, for one position or one head."""
    rows, shape = m["rows"], m["x"].shape
    if rows.shape is None or len(rows.shape) != 3 or shape is None or len(shape) != 4:
        return None
    heads, positions, size = shape.dims[1:]
    if not isinstance(heads, int) or not isinstance(size, int):  # needs 6
        return Miss(f"the head {'size' if isinstance(heads, int) else 'count'} is not constant")
    if rows.shape[2] != heads * size:
        return Miss("the last dim before the Reshape is not head count times head size")
    if not same_dim(rows.shape[1], positions):
        return Miss("the Reshape is not proved to keep the number of positions")
    if positions != 1 and heads != 1:
        return Miss("there are several heads, and there may be more than one position")
    attributes = [*m.root.attributes.values(), ir.AttrInt64("num_heads", heads)]
    rotated = rotary_of([rows, *m.root.inputs[1:]], attributes, b)
    if positions != 1:
        return b.op("Unsqueeze", rotated, b.const_i64([1]))
    return b.op("Reshape", rotated, b.const_i64([0, heads, 1, size]))


@rule(
    op("RotaryEmbedding", op("Mul", _x, const(name="factor"), commutative=True), rest=True),
    needs=("Attention",),
)
def factor_after_rotation(m: Match, b: Builder) -> Replacement:
    """Move a factor of x behind the operator, so that an Attention can absorb it."""
    factor = m.scalar("factor")
    if factor is None or not same_shape(m["x"].shape, m.root.outputs[0].shape):
        return None
    rotary = rotary_of([m["x"], *m.root.inputs[1:]], m.root.attributes.values(), b)
    return b.op("Mul", rotary, m["factor"])


_front = op(("Slice", "Split"), _whole, rest=True, name="front")
_rotary = op(
    "RotaryEmbedding",
    one_of(op("Reshape", _front, rest=True, name="flat"), _front),
    rest=True,
    name="rotary",
)


@rule(
    op(
        "Concat",
        one_of(op("Reshape", _rotary, rest=True, name="apart"), _rotary),
        _second_of_pairs(_whole, "back"),
    )
)
def partial_rotation(m: Match, b: Builder) -> Replacement:
    """Set ``rotary_embedding_dim`` if only the first elements of each head are rotated."""
    whole, front, node = m["whole"], m["front"], m.node("rotary")
    if whole.shape is None or len(whole.shape) != 4 or not isinstance(whole.shape[3], int):
        return None
    indices = [numbers_of(value, whole, m.constants) for value in (front, m["back"])]
    size, rotated_size = whole.shape[3], len(indices[0] or ())
    if indices != [range(rotated_size), range(rotated_size, size)] or not rotated_size:
        return Miss("the rotated part is not the beginning of each head")
    if (
        m.root.attributes.get_int("axis", 0) not in (-1, 3)
        or "rotary_embedding_dim" in node.attributes
    ):
        return None
    attributes = [*node.attributes.values(), ir.AttrInt64("rotary_embedding_dim", rotated_size)]
    if m.get("flat") is None and m.get("apart") is None:
        return rotary_of([whole, *node.inputs[1:]], attributes, b)
    heads, split_result = whole.shape[2], m.get("apart")
    if (
        split_result is None
        or not same_shape(split_result.shape, front.shape)
        or not isinstance(heads, int)
    ):
        return None
    if node.attributes.get_int("num_heads", 0) != heads:
        return Miss("num_heads of the RotaryEmbedding is not the constant head count")
    flat = b.op("Reshape", whole, b.const_i64([0, 0, heads * size]))
    rotated = rotary_of([flat, *node.inputs[1:]], attributes, b)
    return b.op("Reshape", rotated, b.const_i64([0, 0, heads, size]))


fuse_rotary_embedding = rule_pass(
    "fuse_rotary_embedding",
    __doc__,
    [
        *(
            rotated_pairs,
            rotated_slice,
            products_of_halves,
            products_of_neighbours,
            factor_after_rotation,
        ),
        *(partial_rotation, heads_last, heads_of_one_position),
    ],
    exactness=rounding(4, "a product and a sum may be rounded together"),
)
