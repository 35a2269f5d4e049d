"""Run a Program on this machine, with a cached plan for each set of input shapes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from smelt.errors import InvalidModel, Unsupported, UsageError
from smelt.ir.symbolic_dims.size_constraints import SizeCheck
from smelt.program.broken_branches import end_broken_branches
from smelt.program.instruction import Program
from smelt.program.memory import MemoryPlan, plan_memory
from smelt.program.passes import optimize
from smelt.program.schedule import IN_CACHE, schedule
from smelt.program.specialize import specialize
from smelt.runtime.jit.caller import Caller
from smelt.runtime.jit.open_caller import OpenCaller, Shapes
from smelt.targets.host.compiled import Compiled
from smelt.targets.host.emit import Binder, Bound
from smelt.targets.host.input_array import input_array
from smelt.targets.host.kernels.kernel import Array
from smelt.targets.host.prepare import Prepared, prepare

KEPT_PLANS = 16
"""The most plans in the cache; the least recently used one is dropped."""


@dataclass(frozen=True)
class Layout:
    """A static Program in execution order, with prepared instructions and a memory plan."""

    program: Program
    prepared: tuple[Prepared, ...]
    memory: MemoryPlan


def lay_out(program: Program) -> Layout:
    """Return the Layout of a static Program; each body of its instructions becomes a function.

    The kernels of an instruction with a body, such as If, then call that function.
    """
    program = replace(program, slots=[replace(slot, bytewise=True) for slot in program.slots])
    for body in program.bodies:
        inner = lay_out(body.program)
        body.plan = Binder(inner.memory, inner.prepared).bind()
    prepared_by_id = {id(each.instruction): each for each in prepare(program)}
    needs = {number: each.needs() for number, each in prepared_by_id.items()}
    ordered = schedule(program, lambda instruction: needs[id(instruction)], IN_CACHE)
    prepared = tuple(prepared_by_id[id(instruction)] for instruction in ordered.instructions)
    memory = plan_memory(ordered, lambda instruction: needs[id(instruction)])
    return Layout(ordered, prepared, memory)


def _fitting_program(program: Program) -> Program:
    """Return the static ``program`` if its operand sizes match; else raise UsageError E670.

    Branches of an If that cannot run at these sizes are replaced by a failing instruction.
    """
    try:
        end_broken_branches(program)
    except Unsupported as error:
        raise UsageError(
            "E670",
            "the sizes of the inputs do not fit together",
            at=error.at,
            why=f"{error.what}: {error.why}",
            fix="give inputs whose sizes the operators of the model take",
        ) from error
    return program


class InterimRunner(Protocol):
    """Runs calls in place of NumPy until the program is compiled, such as by ONNX Runtime."""

    def __call__(self, arrays: Sequence[Array]) -> tuple[Array, ...] | None:
        """Return the results on ``arrays``; None if it cannot run them."""

    def close(self) -> None:
        """Free memory; no compile is pending, so few calls follow."""


class HostRunner:
    """Runs a Program; takes one array for each input, never writes it, and returns new arrays.

    A run uses the first of three ways that gives a result: ``view_caller``, which returns views of
    inputs; ``compiled``, which runs several calls in parallel; NumPy, which runs one call at a
    time, because calls share its arena. ``defaults`` are the arrays of inputs that may be None;
    ``layout`` is the memory layout of a static program, if known; ``check`` refuses sizes that the
    model does not take. ``interim``, if set, runs calls until they are compiled, in place of
    NumPy.
    """

    def __init__(
        self,
        program: Program,
        defaults: Mapping[int, Array],
        layout: Layout | None = None,
        compiled: Compiled | None = None,
        view_caller: Caller | None = None,
        check: SizeCheck | None = None,
    ) -> None:
        """Store the program and what is known about it; nothing is planned yet.

        ``_fast`` is the compiled caller of the last shapes, which returns None for other shapes.
        """
        self.program = program
        self._static = layout
        self.defaults = defaults
        self.compiled = compiled
        self._check = check
        self._fast: Caller | None = view_caller
        self._has_views = view_caller is not None
        self.interim: InterimRunner | None = None
        self._lock = threading.Lock()
        self._plans: OrderedDict[Shapes, Bound] = OrderedDict()

    def __call__(self, *inputs: Array | None) -> tuple[Array, ...]:
        """Run once. Raises UsageError E670 or E671 for inputs that do not fit, InvalidModel E321
        for an index out of range.
        """
        if self._fast is not None:
            results = self._fast(*inputs)
            if results is not None:
                return results
        arrays = self._arrays(inputs)
        shapes = tuple(array.shape for array in arrays)
        if self._check is not None:
            self._check(shapes)
        caller = self.compiled.caller(shapes) if self.compiled is not None else None
        if caller is None:
            return self._uncompiled(shapes, arrays)
        if self.interim is not None and self.compiled is not None and self.compiled.is_idle:
            self.interim.close()
        if not self._has_views and not isinstance(caller, OpenCaller):
            self._fast = caller
        results = caller(*arrays)
        # A compiled run that fails returns None; the NumPy run raises the error.
        return self._by_numpy(shapes, arrays) if results is None else results

    def ready(self, timeout: float | None) -> bool:
        """Wait at most ``timeout`` seconds for pending compiles; True if none is left."""
        return self.compiled is None or self.compiled.ready(timeout)

    def _uncompiled(self, shapes: Shapes, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Run a call by ``interim`` if it can, else with NumPy."""
        results = None if self.interim is None else self.interim(arrays)
        if results is None:
            return self._by_numpy(shapes, arrays)
        if self.compiled is not None:
            self.compiled.ran(shapes)
        return results

    def _by_numpy(self, shapes: Shapes, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Run a call with NumPy; one at a time, because all calls share the arena of the plan."""
        with self._lock:
            run = self._plan(shapes)
            try:
                with np.errstate(all="ignore"):
                    results = run(*arrays)
            except IndexError as error:
                raise InvalidModel(
                    "E321",
                    "an index is out of range as the model runs",
                    why=str(error),
                    fix="check the inputs that hold indices: each must be within its axis",
                ) from error
            except ValueError as error:
                raise InvalidModel(
                    "E321",
                    "the operands of an operator do not fit each other as the model runs",
                    why=str(error),
                    fix="check the inputs that give sizes, axes or shapes",
                ) from error
        if self.compiled is not None:
            self.compiled.ran(shapes)
        return results

    def _plan(self, shapes: Shapes) -> Bound:
        """Return the bound function for ``shapes``, planned on first use."""
        run = self._plans.get(shapes)
        if run is None:
            static = _fitting_program(specialize(self.program, shapes))
            layout = (
                self._static
                if self._static is not None
                else lay_out(optimize(static, strided=True))
            )
            run = Binder(layout.memory, layout.prepared).bind()
            self._plans[shapes] = run
            if len(self._plans) > KEPT_PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(shapes)
        return run

    def _arrays(self, inputs: Sequence[Array | None]) -> list[Array]:
        """Return the checked input arrays, with defaults in place of None."""
        slots = self.program.inputs
        if len(inputs) != len(slots):
            raise UsageError(
                "E671",
                f"{len(inputs)} arrays for {len(slots)} inputs",
                why="each input takes one array",
                fix="pass one array per input; `smelt inspect` shows the inputs",
            )
        return [
            input_array(self.program.slots[slot], self.defaults.get(i) if value is None else value)
            for i, (slot, value) in enumerate(zip(slots, inputs, strict=True))
        ]
