"""The registry of lowerings from ONNX operators to instructions.

A lowering is a function ``(cx, node)`` that emits the instructions of one node. It refuses what it
cannot lower through queries of ``ProgramBuilder``.
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
    """Register a lowering for ONNX operators, or for others as ``domain::name``."""

    def register(rule: LoweringRule) -> LoweringRule:
        """Return ``rule`` after registering it for each operator."""
        for op_type in op_types:
            LOWERINGS.add(op_type, rule, owner_of(rule))
        return rule

    return register


def lowering_of(op_type: str) -> LoweringRule | None:
    """Return the lowering of an ONNX operator, or of another as ``domain::name``; None if there is
    none."""
    return LOWERINGS.get(op_type)


def lowered_operators() -> tuple[str, ...]:
    """Return the ONNX operators that have a lowering, sorted."""
    return tuple(sorted(LOWERINGS))
