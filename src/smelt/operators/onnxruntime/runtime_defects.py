"""Runtime defects of ONNX Runtime: operators and element types with wrong results.

Each has a correct body. ``tests/operators/onnxruntime/test_runtime_defects.py`` compares this table
with the installed runtime. In release 1.31:

- int64 Max, Min, and ReduceMax and ReduceMin along the last axes are right only for numbers of 32
  bits;
- Mod with ``fmod`` converts 64-bit integers to doubles;
- Sign of a 16-bit NaN is 0;
- consecutive Casts become one (``cast_chains.py``).

Release 1.32 mended all but the last two, but models that smelt writes must run on older releases.

``INACCURATE_TAILS`` is another table: operators whose kernel has a small absolute error, but a
large relative error. A source model keeps such operators. A rewrite or a frontend creates one only
where ``reader_of_relative_error`` finds no reader of the relative error;
``docs/runtime-accuracy.md`` has the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.value_facts.integer_bounds import IntegerBounds
from smelt.ir.value_facts.relative_readers import reads_relative_error
from smelt.operators.declare import Attributes, Body
from smelt.operators.inputs import present
from smelt.operators.onnxruntime import cast_chains

T = ir.DataType
Values = Sequence["ir.Value | None"]

TWO_TO_32 = 2**32
"""An int64 is reduced as two halves of 32 bits, which doubles represent exactly."""

NARROW = -(2**31), 2**31 - 1
"""Range of 32-bit numbers, on which Max and Min are right."""

OF_SOURCE = "smelt.of_source"
"""Key in the ``meta`` of nodes of the loaded model that the runtime may compute wrong.

Such nodes stay as they are: the written model then computes in ONNX Runtime what the loaded one
computes there. A node that a pass adds later has no mark, and gets the correct body."""


def _extremum(test: str) -> Body:
    """Return a body of Max or Min by comparisons, which the runtime computes right.

    ``Max(a, b, c)`` becomes ``m = Where(a > b, a, b)`` and ``Where(m > c, m, c)``.
    """

    def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
        """Build one comparison and one Where per further operand."""
        extremum, *further_operands = present(inputs)
        for operand in further_operands:
            extremum = b.op("Where", b.op(test, extremum, operand), extremum, operand)
        return (extremum,)

    return body


def _remainder(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build the remainder with the sign of the dividend, ``x - x / y * y``; Div truncates."""
    x, y = inputs
    return (b.op("Sub", x, b.op("Mul", b.op("Div", x, y), y)),)


def _sign(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build Sign in float32, whose kernel returns NaN for NaN, and a Cast back to 16 bits.

    ``Sign(x)`` becomes ``Cast(Sign(Cast(x, float)), float16)``. The runtime does not merge the two
    Casts, because the Sign is between them.
    """
    (x,) = present(inputs)
    wide = b.op("Sign", b.op("Cast", x, to=int(T.FLOAT)))
    return (b.op("Cast", wide, to=int(x.dtype or T.FLOAT16)),)


def _reduced_by_halves(op_type: str) -> Body:
    """Return a body of ReduceMax or ReduceMin: first of the high halves, then of matching low
    halves.

    Halves are computed as doubles. For no elements the result is the least or the greatest number
    of the type.
    """

    def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
        """Build the reduction of int64 by two reductions of doubles: of the high halves, then of
        the low halves of those elements whose high half is the result of the first.
        """
        x, *axes = inputs
        assert x is not None
        options: dict[str, Any] = dict(attributes)
        keeping_dims = {**options, "keepdims": 1}
        half = b.const_like(TWO_TO_32, x)
        low = b.op("Mod", x, half)
        high = b.op("Cast", b.op("Div", b.op("Sub", x, low), half), to=int(T.DOUBLE))
        low = b.op("Cast", low, to=int(T.DOUBLE))
        has_best_high = b.op("Equal", high, b.op(op_type, high, *axes, **keeping_dims))
        never_chosen = b.const_like(-1 if op_type == "ReduceMax" else TWO_TO_32, low)
        lows = b.op(op_type, b.op("Where", has_best_high, low, never_chosen), *axes, **options)
        highs = b.op(op_type, high, *axes, **options)
        # A reduction of no elements is infinite; the bounds make it the least or greatest int64.
        least_high = -TWO_TO_32 // 2
        parts = [
            _as_int64(b, highs, least_high, least_high + TWO_TO_32 - 1),
            _as_int64(b, lows, 0, TWO_TO_32 - 1),
        ]
        return (b.op("Add", b.op("Mul", parts[0], half), parts[1]),)

    return body


def _as_int64(b: Builder, x: ir.Value, low: int, high: int) -> ir.Value:
    """Build ``x``, a double that is whole or infinite, as an int64 within the bounds."""
    clipped = b.op("Clip", x, b.const_like(low, x), b.const_like(high, x))
    return b.op("Cast", clipped, to=int(T.INT64))


def _rows() -> Iterator[tuple[tuple[str, ir.DataType], Body]]:
    """Yield each operator and type that a runtime computes wrong, with a correct body."""
    yield ("Max", T.INT64), _extremum("Greater")
    yield ("Min", T.INT64), _extremum("Less")
    for dtype in (T.INT64, T.UINT64):
        yield ("Mod", dtype), _remainder
    yield ("Sign", T.FLOAT16), _sign
    yield ("Sign", T.BFLOAT16), _sign
    for op_type in ("ReduceMax", "ReduceMin"):
        yield (op_type, T.INT64), _reduced_by_halves(op_type)
    for dtype in cast_chains.CLIPPED:
        yield ("Cast", dtype), cast_chains.with_clip


DEFECTS: Mapping[tuple[str, ir.DataType], Body] = dict(_rows())
"""The correct body of each (operator, element type) that ONNX Runtime computes wrong."""


def _are_narrow(node: ir.Node) -> bool:
    """True if 32 bits hold every element of every operand, by the bounds of integers."""
    bounds = IntegerBounds()
    operand_bounds = [bounds.of(value) for value in present(node.inputs)]
    return all(ends and NARROW[0] <= ends[0] and ends[1] <= NARROW[1] for ends in operand_bounds)


RIGHT_IF: Mapping[str, Callable[[ir.Node], bool]] = {
    "Cast": lambda node: not cast_chains.is_merged(node),
    "Max": _are_narrow,
    "Min": _are_narrow,
    "Mod": lambda node: not node.attributes.get_int("fmod", 0),
}
"""Predicates by operator: true for a node that the runtime computes right all the same."""


def is_wrong(node: ir.Node, dtype: ir.DataType) -> bool:
    """True if ONNX Runtime may compute ``node`` wrong on elements of ``dtype``."""
    is_right = RIGHT_IF.get(node.op_type)
    return (node.op_type, dtype) in DEFECTS and (is_right is None or not is_right(node))


def note_source(model: ir.Model) -> None:
    """Mark the nodes of the source ``model`` whose results the runtime may compute wrongly.

    Bounds of operands are ignored. Marked nodes are reported, not replaced. A Cast is marked only
    if the runtime merges it with an earlier Cast already, because passes put Casts in sequence.
    """
    types = {op_type for op_type, _ in DEFECTS}
    for node in scope.nodes(model):
        is_listed = not node.domain and node.op_type in types
        if is_listed and (node.op_type != "Cast" or cast_chains.is_merged(node)):
            node.meta[OF_SOURCE] = True


def _logistic(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build ``1 / (1 + exp(-x))``, which is 0 where exp(-x) is infinite."""
    (x,) = present(inputs)
    one = b.const_like(1, x)
    return (b.op("Div", one, b.op("Add", b.op("Exp", b.op("Neg", x)), one)),)


INACCURATE_TAILS: Mapping[tuple[str, ir.DataType], Body] = {
    ("Sigmoid", T.FLOAT): _logistic,
    ("Sigmoid", T.DOUBLE): _logistic,
}
"""Operators with an absolute error of 1 ulp of 1: a small result may be wrong by half, or be 0.

In float16, which ONNX Runtime computes in float32, all such results are below the normal numbers.
"""


def reader_of_relative_error(op_type: str, value: ir.Value) -> str:
    """Return the operator that reads the relative error of ``op_type``, large in ONNX Runtime.

    ``value`` is the result that the operator computes, or would compute. Returns ``"output"`` if
    ``value`` reaches an output, and an empty text if nothing depends on the relative error.
    """
    if value.dtype is None or (op_type, value.dtype) not in INACCURATE_TAILS:
        return ""
    return reads_relative_error(value)
