"""Flash, RAM and instructions that a library needs, and whether a board has as much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import onnx_ir as ir

from smelt.errors import ResourceLimit, Unsupported
from smelt.native.kernels.register_blocks import for_machine
from smelt.native.rewrite.fit_arena import fit
from smelt.native.work import KernelWork
from smelt.targets.c import code_size
from smelt.targets.c.code_size import CodeSize
from smelt.targets.c.cpu_costs import costs_of, unmeasured
from smelt.targets.c.cpu_costs import estimated as instructions_of
from smelt.targets.c.cpus import CPUS
from smelt.targets.c.limits import Limits, limits
from smelt.targets.c.phases import CPlan, planner

INT8_WEIGHTS = 0.34
"""The largest ratio of int8 weights to float weights on the networks of ``quantized_models``."""

INT8_ARENA = (0.37, 0.8)
"""The ratios of an int8 arena to a float one on the networks of ``bench.microcontrollers``."""

FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)


class Needs(NamedTuple):
    """The bytes that a library and its buffers need in flash and RAM."""

    code: CodeSize
    weights: int
    arena: int
    buffers: int

    @property
    def flash(self) -> int:
        """The bytes of code, constant tables and weights, without the C library."""
        return self.code.text + self.weights

    @property
    def ram(self) -> int:
        """The bytes of the arena, the stack, and the buffers of inputs and outputs."""
        return self.arena + self.code.stack + self.buffers

    def facts(self) -> dict[str, int | str]:
        """Return the parts and sums, by the name under which ``compile`` prints them."""
        return {
            "flash_bytes": self.flash,
            "text_bytes": self.code.text,
            "ram_bytes": self.ram,
            "stack_bytes": self.code.stack,
            "buffers_bytes": self.buffers,
            "text_and_stack": self.code.source,
        }


def describe(
    plan: CPlan,
    kernels: Sequence[KernelWork],
    called: Mapping[int, str],
    files: Mapping[str, bytes],
) -> dict[str, Any]:
    """Add ``instructions`` to ``kernels`` and return the facts of the board's flash and RAM.

    ``called`` has the C function of each step. Nothing is added, and the facts are empty, for a cpu
    without measured costs. With the option ``fit``, arm gcc measures the code if it is installed,
    and a library that does not fit raises ResourceLimit E408.
    """
    options = plan.options
    costs = costs_of(options.cpu)
    if costs is None:
        return {}
    counts = instructions_of(costs, plan.steps, kernels, called)
    for kernel, count in zip(kernels, counts, strict=True):
        kernel["instructions"] = count
    code = code_size.estimated(costs, files[f"{options.name}.c"])
    if options.fit is not None:
        flags = CPUS[options.cpu].flags
        code = code_size.measured(options.name, files, flags) or code
    needed = needs(plan, code)
    board = None if options.fit is None else limits(options.fit)
    if board is not None:
        check_fit(plan, needed, board)
    total = "instructions_besides_loops" if None in counts else "instructions"
    return {
        **needed.facts(),
        total: sum(count or 0 for count in counts),
        "kinds_without_measured_costs": unmeasured(costs, plan.steps),
    }


def needs(plan: CPlan, code: CodeSize) -> Needs:
    """Return what a planned library with such ``code`` needs; sizes are the largest of a run."""
    program = plan.steps
    buffers = sum(program.slots[slot].most_bytes for slot in (*program.inputs, *program.outputs))
    return Needs(code, plan.facts["weights_bytes"], plan.memory.arena_bytes, buffers)


def check_fit(plan: CPlan, needed: Needs, board: Limits) -> None:
    """Raise ResourceLimit E408 if a library does not fit ``board``; the fix says what would fit."""
    missing = [
        (name, need, limit)
        for name, need, limit in (
            ("flash", needed.flash, board.flash),
            ("ram", needed.ram, board.ram),
        )
        if limit is not None and need > limit
    ]
    if not missing:
        return
    advice: list[str] = []
    for name, need, limit in missing:
        more = _flash_advice if name == "flash" else _ram_advice
        advice += more(plan, need, limit)
    what = " and ".join(f"{need:,} of {limit:,} bytes of {name}" for name, need, limit in missing)
    raise ResourceLimit(
        "E408",
        f"the library needs {what}",
        why=f"flash: code {needed.code.text:,} ({needed.code.source}), weights {needed.weights:,}; "
        f"ram: arena {needed.arena:,}, stack {needed.code.stack:,}, "
        f"buffers of inputs and outputs {needed.buffers:,}",
        fix="; ".join(advice) or "choose a larger board, or a smaller model",
    )


def _flash_advice(plan: CPlan, need: int, limit: int) -> Iterator[str]:
    """Yield what would need less flash, with its estimated bytes."""
    constants = plan.steps.constants.values()
    floats = sum(array.nbytes for array in constants if array.dtype.kind == "f")
    if floats:
        left = need - round(floats * (1 - INT8_WEIGHTS))
        over = "" if left <= limit else ", still too many"
        yield f"int8 weights by `smelt quantize`: about {left:,} bytes of flash{over}"


def _ram_advice(plan: CPlan, need: int, limit: int) -> Iterator[str]:
    """Yield what would need less RAM; bands are planned here, so their bytes and work are exact."""
    program, options = plan.steps, plan.options
    others = need - plan.memory.arena_bytes
    budget = limit - others
    if options.arena is None and budget >= 0:
        try:
            with for_machine(options.machine):
                choice = fit(program, budget, planner(replace(options, arena=budget))).choice
            work = choice.macs / max(plan.facts["macs"], 1)
            yield (
                f"--option arena={choice.arena_bytes}: {others + choice.arena_bytes:,} bytes of "
                f"ram, {work:.2f} times the multiplications"
            )
        except Unsupported as error:
            if error.code != "E405":
                raise
            yield f"no row bands fit an arena of {budget:,} bytes"
    if any(slot.dtype in FLOATS for slot in program.slots):
        low, high = INT8_ARENA
        arena = plan.memory.arena_bytes
        yield (
            f"int8 activations by `smelt quantize --activations static`: an arena of about "
            f"{round(low * arena):,} to {round(high * arena):,} bytes, as measured on networks "
            "with convolutions and transformers"
        )
    if program.input_sizes:
        names = ", ".join(each.symbol or each.name for each in program.input_sizes)
        yield f"smaller bounds by --dim of {names}"
