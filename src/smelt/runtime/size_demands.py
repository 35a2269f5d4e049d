"""Constraints on symbolic dims that the operators of a graph imply.

A waveform of 30 steps is too short for five strided convolutions, a Reshape to 16 columns needs
multiples of 16, and a Gemm fits one size. A constraint is evaluated at concrete sizes; it counts as
met if a dim is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import onnx_ir as ir

from smelt.errors import SmeltError
from smelt.ir.opset import RESHAPES
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.dims import is_symbolic, size_of
from smelt.operators.elementwise import BROADCASTING

Sizes: TypeAlias = Mapping[str, int]
Dims: TypeAlias = tuple["int | ir.SymbolicDim", ...]
"""Dims of one side of a constraint."""

LIMIT = 4000
"""The most constraints that are kept; a deep model repeats the same ones."""


@dataclass(frozen=True)
class Demand:
    """A constraint on two lists of dims: ``holds(left sizes, right sizes)`` is true.

    Constraints with the same ``key`` are the same.
    """

    key: tuple[str, ...]
    left: Dims
    right: Dims
    holds: Callable[[Sequence[int], Sequence[int]], bool]

    def is_met(self, sizes: Sizes) -> bool:
        """True if the constraint holds at ``sizes``, or a dim is unknown."""
        sides = [[size_of(dim, sizes) for dim in dims] for dims in (self.left, self.right)]
        numbers_of_sides = [[n for n in side if isinstance(n, int)] for side in sides]
        if any(
            len(numbers) < len(side) for numbers, side in zip(numbers_of_sides, sides, strict=True)
        ):
            return True
        return self.holds(*numbers_of_sides)


def demands_of(model: ir.Model) -> list[Demand]:
    """Return the distinct constraints of the main graph of ``model``, which is not changed."""
    copy = model.clone()
    try:
        ShapeInference(copy).infer_model()
    except SmeltError:
        return []
    constraints: dict[tuple[str, ...], Demand] = {}
    for node in copy.graph:
        if node.domain:
            continue
        for demand in _of_node(node):
            if any(map(is_symbolic, (*demand.left, *demand.right))):
                constraints.setdefault(demand.key, demand)
        if len(constraints) >= LIMIT:
            break
    return list(constraints.values())


def are_met(demands: Iterable[Demand], sizes: Sizes) -> bool:
    """True if no constraint is known to fail at ``sizes``."""
    return all(demand.is_met(sizes) for demand in demands)


def _of_node(node: ir.Node) -> Iterator[Demand]:
    """Yield the constraints of one node."""
    shapes = [
        None if value is None or value.shape is None else value.shape.dims for value in node.inputs
    ]
    for output in node.outputs:
        if output.shape is not None:
            yield _demand("positive", output.shape.dims, (), _are_positive)
    if (
        node.op_type in RESHAPES
        and shapes
        and node.outputs[0].shape is not None
        and shapes[0] is not None
    ):
        yield _demand("same number", shapes[0], node.outputs[0].shape.dims, _are_as_many)
    if node.op_type in BROADCASTING:
        for left, right in pairwise(shapes):
            if left is not None and right is not None:
                yield _demand("broadcast", left, right, _broadcast)
    if node.op_type in ("MatMul", "Gemm") and len(shapes) > 1:
        yield from _of_product(node, shapes[0], shapes[1])
    if node.op_type == "Concat" and None not in shapes:
        axis = node.attributes.get_int("axis", 0)
        remaining_dims = [_without(dims, axis) for dims in shapes if dims is not None]
        for left, right in pairwise(remaining_dims):
            yield _demand("equal", left, right, _are_equal)


def _of_product(node: ir.Node, a: Dims | None, b: Dims | None) -> Iterator[Demand]:
    """Yield the constraint of a product: the inner dims of both operands are equal."""
    if not a or not b:
        return
    first = a[0] if node.attributes.get_int("transA", 0) else a[-1]
    inner = b[-1] if len(b) == 1 or node.attributes.get_int("transB", 0) == 1 else b[-2]
    yield _demand("equal", (first,), (inner,), _are_equal)


def _without(dims: Dims, axis: int) -> Dims:
    """Return ``dims`` without ``axis``."""
    return tuple(dim for position, dim in enumerate(dims) if position != axis % max(len(dims), 1))


def _demand(
    kind: str, left: Dims, right: Dims, holds: Callable[[Sequence[int], Sequence[int]], bool]
) -> Demand:
    """Return a constraint with a key of its kind and dims."""
    return Demand((kind, *map(str, left), "|", *map(str, right)), tuple(left), tuple(right), holds)


def _are_positive(left: Sequence[int], right: Sequence[int]) -> bool:
    """True if all sizes of ``left`` are above 0; ``right`` is not read."""
    return all(size > 0 for size in left)


def _are_as_many(left: Sequence[int], right: Sequence[int]) -> bool:
    """True if both shapes have the same number of elements."""
    return math.prod(left) == math.prod(right)


def _are_equal(left: Sequence[int], right: Sequence[int]) -> bool:
    """True if both lists of sizes are equal."""
    return list(left) == list(right)


def _broadcast(left: Sequence[int], right: Sequence[int]) -> bool:
    """True if the two shapes broadcast."""
    pairs = zip(reversed(left), reversed(right), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)
