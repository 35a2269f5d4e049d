"""The C of each reduction, by the kind of element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reduction:
    """The C of a reduction.

    ``{a}`` is the partial result, ``{v}`` an element, ``{n}`` the number of elements. ``element``
    is applied to each element, ``step`` accumulates, and ``final`` is applied to the result.
    """

    start: str
    step: str
    final: str = "{a}"
    element: str = "{v}"


_SUM = "{a} + {v}"

FLOATS: Mapping[str, Reduction] = {
    "ReduceSum": Reduction("0", _SUM),
    "ReduceMean": Reduction("0", _SUM, "{a} / {n}"),
    "ReduceMax": Reduction("lowest", "({v} > {a} || {v} != {v}) ? {v} : {a}"),
    "ReduceMin": Reduction("highest", "({v} < {a} || {v} != {v}) ? {v} : {a}"),
    "ReduceProd": Reduction("1", "{a} * {v}"),
    "ReduceL1": Reduction("0", _SUM, element="fabs@f({v})"),
    "ReduceL2": Reduction("0", _SUM, "sqrt@f({a})", "{v} * {v}"),
    "ReduceSumSquare": Reduction("0", _SUM, element="{v} * {v}"),
    "ReduceLogSum": Reduction("0", _SUM, "log@f({a})"),
}

_ADD = "(@t)((@m){a} + (@m){v})"

_MULTIPLY = "(@t)((@m){v} * (@m){v})"

INTEGERS: Mapping[str, Reduction] = {
    "ReduceSum": Reduction("0", _ADD),
    "ReduceMean": Reduction("0", _ADD, "(@t)({a} / {n})"),
    "ReduceMax": Reduction("lowest", "{v} > {a} ? {v} : {a}"),
    "ReduceMin": Reduction("highest", "{v} < {a} ? {v} : {a}"),
    "ReduceProd": Reduction("1", "(@t)((@m){a} * (@m){v})"),
    "ReduceSumSquare": Reduction("0", _ADD, element=_MULTIPLY),
}

BOOLEANS = {name: INTEGERS[name] for name in ("ReduceMax", "ReduceMin")}

TABLES = {"float": FLOATS, "int": INTEGERS, "bool": BOOLEANS}
