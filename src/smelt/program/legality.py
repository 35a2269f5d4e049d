"""Reports everything that a target lacks for a program, together and in one wording."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import TypeAlias

import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.program.instruction import Instruction, Program

Refusal: TypeAlias = Callable[[Instruction], str | None]
"""Returns why a target has no kernel for an instruction, None if it has one."""


def check_program(
    program: Program, target: str, dtypes: Set[ir.DataType], refusal: Refusal
) -> None:
    """Raise an ErrorList of all that ``target`` lacks: E402 for types, E201 for kernels.

    ``refusal`` is called for instructions whose operands all have a type in ``dtypes``.
    """
    problems = [*_types(program, target, dtypes), *_kernels(program, target, dtypes, refusal)]
    if problems:
        raise ErrorList(problems)


def no_element_type(
    target: str,
    dtype: ir.DataType,
    dtypes: Set[ir.DataType],
    at: str,
    fix: str = "",
) -> Unsupported:
    """Return the error E402 for a value whose element type is not in ``dtypes``."""
    return Unsupported(
        "E402",
        f"target {target!r} has no element type {dtype.name.lower()}",
        at=at,
        why=f"it has {', '.join(sorted(known_type.name.lower() for known_type in dtypes))}",
        fix=fix or "cast the model's inputs and weights first",
    )


ASKS = "its kernel is chosen before the run, and asks"
"""Prefix of a reason that depends on run-time sizes: other bounds may resolve it."""


def no_kernel(target: str, operator: str, at: str, why: str) -> Unsupported:
    """Return the error E201 for an operator, or an instruction of it, without a kernel."""
    bounds = "narrow the bounds so that all sizes give one answer (--dim N=64..512), or "
    return Unsupported(
        "E201",
        f"operator {operator} has no kernel on target {target!r}",
        at=at,
        why=why,
        fix=f"{bounds if why.startswith(ASKS) else ''}cut the model before it, or choose another "
        "target: `smelt targets`",
    )


def and_more(count: int) -> str:
    """Return the text `` and N more`` if only the first of ``count`` places is named."""
    return f" and {count - 1} more" if count > 1 else ""


def _types(program: Program, target: str, dtypes: Set[ir.DataType]) -> Iterator[Unsupported]:
    """Yield E402 for each element type that the target lacks, with one value of it."""
    used = {slot for instruction in program.instructions for slot in _slots(instruction)}
    used.update((*program.inputs, *program.outputs))
    value_of_type: dict[ir.DataType, str] = {}
    for slot in sorted(used):
        value_of_type.setdefault(program.slots[slot].dtype, program.slots[slot].name)
    for dtype, name in value_of_type.items():
        if dtype not in dtypes:
            yield no_element_type(target, dtype, dtypes, f"value {name!r}")


def _kernels(
    program: Program, target: str, dtypes: Set[ir.DataType], refusal: Refusal
) -> Iterator[Unsupported]:
    """Yield E201 for each operator and reason, with the origins of its instructions."""
    refused: dict[tuple[str, str], list[str]] = {}
    for instruction in program.instructions:
        if all(program.slots[slot].dtype in dtypes for slot in _slots(instruction)):
            why = refusal(instruction)
            if why is not None:
                refused.setdefault((instruction.op, why), []).append(instruction.origin)
    for (op, why), origins in refused.items():
        yield no_kernel(target, op, f"node {origins[0]!r}{and_more(len(origins))}", why)


def _slots(instruction: Instruction) -> list[int]:
    """Return the slots that ``instruction`` reads and writes."""
    return [slot for slot in (*instruction.inputs, *instruction.outputs) if slot >= 0]
