"""Check the declaration of a target at once, and report all mistakes together.

Otherwise a mistake would show in the middle of a compile, as an error of some other code.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir

from smelt.errors import UsageError, did_you_mean
from smelt.ir.rule import Rule
from smelt.operators.declaration import accepts_arguments
from smelt.operators.declare import Operator
from smelt.program.chips.layouts import Layouts
from smelt.program.chips.memories import Memory
from smelt.program.layout import Layout
from smelt.targets.limits import Limits

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
"""The form of a target's name, which is used in folder names and on the command line."""

PARAMETERS = {
    "emit": ("plan",),
    "schedule": ("plan",),
    "allocate": ("plan",),
    "accepts": ("node",),
    "cost": ("nodes",),
    "computes": ("model", "node"),
    "element_types": ("domain", "op_type"),
    "open": ("folder",),
}
"""The parameters of each function of a target."""

ASKED = ("accepts", "cost")
"""Functions that may also take the options of a compile."""

OPTIONAL = ("accepts", "cost", "computes")
"""Functions that may be None."""


def check_target(target: Any) -> None:
    """Raise UsageError E649 with all mistakes in the declaration of ``target``."""
    problems = [
        *_texts(target),
        *_limits(target),
        *_sets(target),
        *_functions(target),
        *_options(target.options),
        *_memories(target),
        *_layouts(target.layouts),
        *_unknown_layout_operators(target),
        *_unknown_limit_operators(target),
    ]
    if problems:
        raise UsageError(
            "E649",
            f"the declaration of target {_repr_start(target.name)} is wrong",
            at=problems,
            fix="docs/add-a-target.md shows how",
            why="the fields above do not have the types or values that a Target needs",
        )


def _repr_start(value: object) -> str:
    """Return the start of ``repr(value)``, for messages."""
    return repr(value)[:60]


def _texts(target: Any) -> Iterator[str]:
    """Yield mistakes in the name, summary, passes and fallback."""
    if not isinstance(target.name, str) or not NAME.fullmatch(target.name):
        yield f"name: {_repr_start(target.name)} is not a word of letters, digits and _ . -"
    for name in ("summary", "passes"):
        if not isinstance(getattr(target, name), str):
            yield f"{name}: {_repr_start(getattr(target, name))} is not text"
    if target.fallback is not None and not isinstance(target.fallback, str):
        yield f"fallback: {_repr_start(target.fallback)} is not the name of a target"
    elif target.fallback == target.name:
        yield f"fallback: {target.fallback!r} is the target itself"


def _limits(target: Any) -> Iterator[str]:
    """Yield mistakes in the limits and the tolerance."""
    if not isinstance(target.limits, Limits):
        yield f"limits: {_repr_start(target.limits)} is not a Limits"
        return
    yield from _keys("limits.operators", target.limits.operators)
    yield from _keys("extensions", target.extensions)
    rank, opset = target.limits.max_rank, target.limits.opset
    for field in ("dtypes", "interface_dtypes"):
        dtypes = getattr(target.limits, field)
        if dtypes is not None and not (
            isinstance(dtypes, frozenset | set) and all(isinstance(d, ir.DataType) for d in dtypes)
        ):
            yield f"limits.{field}: {_repr_start(dtypes)} is not a set of onnx_ir.DataType"
    if rank is not None and not _is_count(rank):
        yield f"limits.max_rank: {_repr_start(rank)} is not a number of dims"
    pair = isinstance(opset, tuple) and len(opset) == 2 and all(map(_is_count, opset))
    if not pair or opset[0] > opset[1]:
        yield f"limits.opset: {_repr_start(opset)} is not a pair (lowest, highest)"
    if not isinstance(target.tolerance, int | float) or not 0 <= target.tolerance < math.inf:
        yield f"tolerance: {_repr_start(target.tolerance)} is not a number of 0 or more"


def _is_count(value: object) -> bool:
    """True for an integer of 0 or more that is no bool."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _keys(field_name: str, keys: object) -> Iterator[str]:
    """Yield mistakes in a set of ``(domain, op_type)``."""
    if keys is None:
        return
    if not isinstance(keys, frozenset | set):
        yield f"{field_name}: {_repr_start(keys)} is not a set of (domain, op_type)"
        return
    for key in keys:
        texts = isinstance(key, tuple) and len(key) == 2 and all(isinstance(t, str) for t in key)
        if not texts:
            yield (
                f"{field_name}: {_repr_start(key)} is not a pair (domain, op_type); the domain of "
                "ONNX is ''"
            )


def _sets(target: Any) -> Iterator[str]:
    """Yield mistakes in the operators, rules, kernels and additional steps."""
    yield from _each("operators", target.operators, Operator)
    if isinstance(target.operators, tuple | list):
        keys = [each.key for each in target.operators if isinstance(each, Operator)]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        yield from (f"operators: {'.'.join(key)} occurs twice" for key in twice)
    if not callable(target.select):
        yield from _each("select", target.select, Rule)
    names = target.kernels
    if names is not None and not (
        isinstance(names, frozenset | set) and all(isinstance(name, str) for name in names)
    ):
        yield f"kernels: {_repr_start(names)} is not a set of names of operators"
    if not isinstance(target.around, Mapping):
        yield f"around: {_repr_start(target.around)} is not a mapping of points to steps"
        return
    for point, steps in target.around.items():
        if not isinstance(steps, tuple | list) or not all(map(callable, steps)):
            yield f"around: {_repr_start(steps)} at {_repr_start(point)} is not a tuple of steps"


def _each(field_name: str, values: object, kind: type) -> Iterator[str]:
    """Yield each mistake in a field that has to be a tuple of ``kind``."""
    if not isinstance(values, tuple | list):
        yield f"{field_name}: {_repr_start(values)} is not a tuple of {kind.__name__}s"
        return
    for value in values:
        if not isinstance(value, kind):
            yield f"{field_name}: {_repr_start(value)} is not a {kind.__name__}"


def _functions(target: Any) -> Iterator[str]:
    """Yield mistakes in the functions: not callable, or with other parameters."""
    for name, parameters in PARAMETERS.items():
        function: Any = getattr(target, name)
        if function is None and name in OPTIONAL:
            continue
        if not callable(function):
            yield f"{name}: {_repr_start(function)} is not a function"
        elif not accepts_arguments(function, len(parameters)) and not (
            name in ASKED and accepts_arguments(function, 2)
        ):
            yield f"{name}: it cannot be called with ({', '.join(parameters)})"
    if callable(target.select) and not accepts_arguments(target.select, 1):
        yield "select: it cannot be called with (options)"


def _options(options: object) -> Iterator[str]:
    """Yield mistakes in the options dataclass."""
    if options is None:
        return
    if not isinstance(options, type) or not dataclasses.is_dataclass(options):
        yield f"options: {_repr_start(options)} is not a dataclass"
        return
    missing = dataclasses.MISSING
    for field in dataclasses.fields(options):
        if field.init and field.default is missing and field.default_factory is missing:
            yield f"options: {field.name} has no default"


def _memories(target: Any) -> Iterator[str]:
    """Yield each mistake in the field ``memories``."""
    yield from _each("memories", target.memories, Memory)
    if isinstance(target.memories, tuple | list):
        names = [each.name for each in target.memories if isinstance(each, Memory)]
        yield from (f"memories: {n!r} occurs twice" for n in sorted({*names}) if names.count(n) > 1)


def _layouts(table: object) -> Iterator[str]:
    """Yield mistakes in the table of layouts."""
    if not isinstance(table, Mapping):
        yield f"layouts: {_repr_start(table)} is not a mapping of instructions to Layouts"
        return
    for op, layout in table.items():
        if isinstance(layout, Layouts):
            declared = (*layout.inputs, *layout.outputs)
            no_layouts = [
                each for each in declared if each is not None and not isinstance(each, Layout)
            ]
            yield from (
                f"layouts: {_repr_start(each)} at {op!r} is not a Layout" for each in no_layouts
            )
        elif not callable(layout) or not accepts_arguments(layout, 2):
            yield (
                f"layouts: {_repr_start(layout)} at {op!r} is neither a Layouts nor a "
                "function of (program, instruction)"
            )


def _unknown_limit_operators(target: Any) -> Iterator[str]:
    """Yield operators in the limits that the target does not declare: misspelled names."""
    listed = getattr(target.limits, "operators", None)
    if not isinstance(listed, frozenset | set) or not isinstance(target.operators, tuple | list):
        return
    declared = {each.key for each in target.operators if isinstance(each, Operator)}
    for key in listed - declared:
        if not isinstance(key, tuple) or len(key) != 2:
            continue
        names = [name for domain, name in declared if domain == key[0]]
        if names:
            suggestion = did_you_mean(key[1], names, "")
            hint = f"; {suggestion}" if suggestion else ""
            yield f"limits.operators: {key[0]} has no operator {key[1]!r}{hint}"


def _unknown_layout_operators(target: Any) -> Iterator[str]:
    """Yield operators in the layouts that the target does not declare: misspelled names."""
    if not isinstance(target.layouts, Mapping) or not isinstance(target.operators, tuple | list):
        return
    declared = {each.key for each in target.operators if isinstance(each, Operator)}
    for op in target.layouts:
        domain, _, name = str(op).rpartition("::")
        if domain in {key[0] for key in declared} and (domain, name) not in declared:
            yield f"layouts: {domain} has no operator {name!r}"
