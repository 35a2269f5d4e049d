"""The monoid of each reduction, and the operators before and after it, by the kind of element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.loops import operators
from smelt.loops.algorithm import Apply, Axis, Expression, Let, Number, Reduce, Variable
from smelt.loops.interpreter import numpy_type
from smelt.loops.operators import SUM, ElementType, Monoid, Operator
from smelt.program.run_sizes import Dim


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction: ``element`` is applied to each element, and ``final`` to the result.

    ``mean``: the result is divided by the number of elements.
    """

    monoid: Monoid
    element: Operator | None = None
    final: Operator | None = None
    mean: bool = False


FLOAT_REDUCTIONS: Mapping[str, Reduction] = {
    "ReduceSum": Reduction(SUM),
    "ReduceMean": Reduction(SUM, mean=True),
    "ReduceMax": Reduction(operators.LARGEST),
    "ReduceMin": Reduction(operators.SMALLEST),
    "ReduceProd": Reduction(operators.PRODUCT),
    "ReduceL1": Reduction(SUM, operators.ABSOLUTE),
    "ReduceL2": Reduction(SUM, operators.SQUARE, operators.SQUARE_ROOT),
    "ReduceSumSquare": Reduction(SUM, operators.SQUARE),
    "ReduceLogSum": Reduction(SUM, final=operators.LOGARITHM),
}

INTEGER_REDUCTIONS: Mapping[str, Reduction] = {
    "ReduceSum": Reduction(operators.SUM_WRAPPED),
    "ReduceMean": Reduction(operators.SUM_WRAPPED, mean=True),
    "ReduceMax": Reduction(operators.LARGEST_INTEGER),
    "ReduceMin": Reduction(operators.SMALLEST_INTEGER),
    "ReduceProd": Reduction(operators.PRODUCT_WRAPPED),
    "ReduceSumSquare": Reduction(operators.SUM_WRAPPED, operators.SQUARE_WRAPPED),
}

BOOL_REDUCTIONS = {name: INTEGER_REDUCTIONS[name] for name in ("ReduceMax", "ReduceMin")}

TABLES = {"float": FLOAT_REDUCTIONS, "int": INTEGER_REDUCTIONS, "bool": BOOL_REDUCTIONS}

LOG_SUM_EXP = "ReduceLogSumExp"


def is_reduction(op: str, kind: str) -> bool:
    """True if ``op`` reduces elements of ``kind``."""
    return op in TABLES[kind] or (op == LOG_SUM_EXP and kind == "float")


def reduced(
    op: str, type_: ElementType, axes: tuple[Axis, ...], body: Expression, count: Dim
) -> Expression:
    """Return the reduction ``op`` of ``body`` over ``axes``, which have ``count`` elements.

    ``type_`` is the type of the elements.
    """
    if op == LOG_SUM_EXP:
        return _log_sum_exp(axes, body)
    reduction = TABLES[type_.kind][op]
    if reduction.element is not None:
        body = Apply(reduction.element, (body,))
    value: Expression = Reduce(reduction.monoid, axes, body)
    if reduction.mean:
        divide = operators.DIVIDE if type_.kind == "float" else _truncating(type_)
        value = Apply(divide, (value, Number(count)))
    return value if reduction.final is None else Apply(reduction.final, (value,))


def _truncating(type_: ElementType) -> Operator:
    """Return the quotient of integers of ``type_`` whose sum is in unsigned memory."""
    divisor = "ptrdiff_t" if type_.signed else "size_t"
    text = f"({{t}})(({type_.name}){{0}} / ({divisor}){{1}})"

    def quotient(value: Any, count: Any) -> Any:
        """Return the quotient, rounded towards 0."""
        number = int(value.astype(numpy_type(type_)))
        whole = abs(number) // int(count)
        return np.array(whole if number >= 0 else -whole).astype(value.dtype)[()]

    return Operator("divide integers", text, quotient)


def _log_sum_exp(axes: tuple[Axis, ...], body: Expression) -> Expression:
    """Return ``log(sum(exp(x)))``, relative to the largest element, so nothing overflows."""
    largest = Reduce(operators.LARGEST, axes, body)
    top = Variable("top")
    raised = Apply(operators.EXPONENTIAL, (Apply(operators.SUBTRACT, (body, top)),))
    total = Apply(operators.LOGARITHM, (Reduce(SUM, axes, raised),))
    return Let(
        "top", Apply(operators.ZERO_UNLESS_FINITE, (largest,)), Apply(operators.ADD, (top, total))
    )
