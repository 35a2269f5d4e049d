"""Run a Program on this machine: a plan for each set of input shapes, kept for the next call."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from smelt.errors import InvalidModel, UsageError
from smelt.program.instruction import Program
from smelt.program.memory import MemoryPlan, plan_memory
from smelt.program.passes import optimize
from smelt.program.schedule import schedule
from smelt.program.specialize import specialize
from smelt.program.storage import Needs
from smelt.targets.host.emit import Binder, Bound
from smelt.targets.host.kernels.kernel import Array
from smelt.targets.host.prepare import Prepared, prepare

KEPT_PLANS = 16
"""Plans kept for different input shapes; the one used longest ago goes first."""


@dataclass(frozen=True)
class Layout:
    """A static Program in the order it runs, every instruction prepared, and its memory."""

    program: Program
    prepared: tuple[Prepared, ...]
    memory: MemoryPlan


def lay_out(program: Program) -> Layout:
    """Order, prepare and plan a static Program, its bodies first: each becomes a function."""
    for body in program.bodies:
        inner = lay_out(body.program)
        body.plan = Binder(inner.memory, inner.prepared).bind()
    needs = _needs_by_instruction(program, prepare(program))
    ordered = schedule(program, lambda instruction: needs[id(instruction)])
    prepared = prepare(ordered)
    needs = _needs_by_instruction(ordered, prepared)
    memory = plan_memory(ordered, lambda instruction: needs[id(instruction)])
    return Layout(ordered, prepared, memory)


def _needs_by_instruction(program: Program, prepared: Sequence[Prepared]) -> dict[int, Needs]:
    pairs = zip(program.instructions, prepared, strict=True)
    return {id(instruction): one.needs() for instruction, one in pairs}


class HostRunner:
    """Calls with one array an input return fresh arrays; inputs are never written.

    One call runs at a time: threads that share a runner wait for each other, because they would
    share its arena. ``defaults`` are the arrays of inputs that may be given as None; ``layout`` is
    that of a static program, if it is known.
    """

    def __init__(
        self, program: Program, defaults: Mapping[int, Array], layout: Layout | None = None
    ) -> None:
        self.program = program
        self._static = layout
        self.defaults = defaults
        self._lock = threading.Lock()
        self._plans: OrderedDict[tuple[tuple[int, ...], ...], Bound] = OrderedDict()

    def __call__(self, *inputs: Array | None) -> tuple[Array, ...]:
        """Raises UsageError E670 or E671 for inputs that do not fit, InvalidModel E321."""
        arrays = self._arrays(inputs)
        with self._lock:
            run = self._plan(tuple(array.shape for array in arrays))
            try:
                with np.errstate(all="ignore"):
                    return run(*arrays)
            except IndexError as error:
                raise InvalidModel(
                    "E321", "an index is out of range as the model runs", why=str(error)
                ) from error

    def _plan(self, shapes: tuple[tuple[int, ...], ...]) -> Bound:
        run = self._plans.get(shapes)
        if run is None:
            static = specialize(self.program, shapes)
            layout = self._static if self._static is not None else lay_out(optimize(static))
            run = Binder(layout.memory, layout.prepared).bind()
            self._plans[shapes] = run
            if len(self._plans) > KEPT_PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(shapes)
        return run

    def _arrays(self, inputs: Sequence[Array | None]) -> list[Array]:
        slots = self.program.inputs
        if len(inputs) != len(slots):
            raise UsageError("E671", f"{len(inputs)} arrays for {len(slots)} inputs")
        return [self._array(i, value) for i, value in enumerate(inputs)]

    def _array(self, index: int, value: Array | None) -> Array:
        slot = self.program.slots[self.program.inputs[index]]
        if value is None:
            value = self.defaults.get(index)
        if value is None:
            raise UsageError("E671", f"input {slot.name!r} is missing and has no default")
        array = np.array(value, order="C", copy=None)
        expected = np.dtype(slot.dtype.numpy())
        if array.dtype != expected:
            raise UsageError(
                "E671",
                f"input {slot.name!r} has dtype {array.dtype}, not {expected}",
                fix=f"pass array.astype({str(expected)!r})",
            )
        return array
