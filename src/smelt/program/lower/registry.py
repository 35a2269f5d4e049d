"""The lowerings of ONNX's operators to instructions, by operator.

A lowering is a function ``(cx, node)`` that emits the instructions of one node. It states what
it takes by calling the questions of ``ProgramBuilder``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import onnx_ir as ir

from smelt.program.lower.builder import ProgramBuilder
from smelt.registry import Registry, modules_of, owner_of

LoweringRule: TypeAlias = Callable[[ProgramBuilder, ir.Node], None]
LOWERINGS: Registry[str, LoweringRule] = Registry(
    "E651", lambda op_type: f"lowerings of {op_type}", modules_of("smelt.program.lower")
)


def lowers(*op_types: str) -> Callable[[LoweringRule], LoweringRule]:
    """Register a lowering for operators of ONNX's own domain, or of others as ``domain::name``."""

    def register(rule: LoweringRule) -> LoweringRule:
        for op_type in op_types:
            LOWERINGS.add(op_type, rule, owner_of(rule))
        return rule

    return register


def lowering_of(op_type: str) -> LoweringRule | None:
    """The lowering of an operator of ONNX's own domain, or of another as ``domain::name``."""
    return LOWERINGS.get(op_type)


def lowered_operators() -> tuple[str, ...]:
    """The operators of ONNX's own domain that have a lowering, sorted."""
    return tuple(sorted(LOWERINGS))
