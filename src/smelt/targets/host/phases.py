"""The phases of the host target: lower and optimize, plan memory, write the files."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.ir.defaults import default_of
from smelt.ir.shapes.declared import declared
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.dims import binding_advice
from smelt.ir.symbolic_dims.size_constraints import check_of
from smelt.native.computed import is_computed_with_bound_sizes
from smelt.native.types import C_TYPES
from smelt.program.broken_branches import end_broken_branches
from smelt.program.instruction import Instruction, Program
from smelt.program.legality import check_program
from smelt.program.lower import lower, lower_alone
from smelt.program.lower.builder import Supports
from smelt.program.memory import MemoryPlan
from smelt.program.passes import optimize
from smelt.program.specialize import bind_declared, check_sizes_known, is_static
from smelt.targets.base import Artifact, Plan
from smelt.targets.host.any_sizes import AnySizesRunner
from smelt.targets.host.any_sizes.decided import has_refused_node
from smelt.targets.host.any_sizes.model import Planner
from smelt.targets.host.any_sizes.planning import Runner
from smelt.targets.host.compiled import Compiled
from smelt.targets.host.files import Files
from smelt.targets.host.kernels import kernel_of
from smelt.targets.host.kernels.kernel import Array
from smelt.targets.host.open_sizes import OpenSizes
from smelt.targets.host.options import Options
from smelt.targets.host.prepare import is_foreign, prepare, refusal
from smelt.targets.host.runner import HostRunner, Layout, lay_out
from smelt.targets.host.views import views_of


@dataclass(slots=True)
class HostProgram(Program):
    """The Program that NumPy runs, with its ``compiled`` forms, if any.

    With data-dependent sizes it has no instructions, and ``parts`` runs the model.
    """

    compiled: Compiled | None = None
    parts: AnySizesRunner | None = None


HostPlan: TypeAlias = Plan[HostProgram, Layout | None]
"""``memory`` is None if sizes are known only at run time."""

DTYPES = frozenset(C_TYPES)
"""NumPy with ``ml_dtypes`` has every element type of the native engine."""


def plan_steps(plan: HostPlan) -> None:
    """Set ``plan.steps`` to the Program of the model.

    A model with data-dependent sizes has no Program. Its ``plan.steps`` holds a runner that plans
    the parts of the model as a run learns their sizes. Raises Unsupported or an ErrorList for a
    model that has neither.
    """
    try:
        plan.steps = _program(plan.model, _options(plan))
    except (Unsupported, ErrorList):
        parts = None if has_refused_node(plan.model) else _runner_in_parts(plan)
        if parts is None:
            raise
        plan.steps = HostProgram(plan.model.graph.name or "model", [], (), (), {}, [], parts=parts)
        plan.facts["parts"] = parts.parts
        return
    plan.facts["instructions"] = len(plan.steps.instructions)


def _runner_in_parts(plan: HostPlan) -> AnySizesRunner | None:
    """Return a runner that runs the model part by part; None if a part cannot be lowered either.

    The caller then raises the error of the whole model.
    """
    options = _options(plan)
    planned: list[int] = []

    def runner(model: ir.Model, of_call: bool) -> Runner:
        """Return a runner of one part of the model.

        ``of_call``: the part has the sizes of one call. It may never run again, so NumPy runs it
        and nothing is compiled.
        """
        part_options = replace(options, engine="numpy") if of_call else options
        part: HostPlan = Plan(model, replace(part_options, views=False))
        part.steps = _program(model, part_options)
        planned.append(len(part.steps.instructions))
        plan_arena(part)
        return runner_of(part)

    try:
        parts = AnySizesRunner(plan.model, Planner(runner, computes), _defaults(plan.model))
    except (Unsupported, ErrorList):
        return None
    plan.facts["instructions"] = sum(planned)
    return parts


def _program(model: ir.Model, options: Options) -> HostProgram:
    """Return the Program of ``model``, and unless the engine is ``numpy``, its ``compiled`` form.

    Some operators, most of them quantized, have a kernel only in the native engine; for NumPy they
    are lowered to several instructions. A model with such operators is therefore lowered twice.

    Sizes are inferred again, so that unnamed input dims get names, and declared output shapes,
    which may be wrong, have no effect. Raises Unsupported or an ErrorList.
    """
    shapes = ShapeInference(model)
    shapes.infer_model()
    decomposed: list[Instruction] = []

    def decompose(program: Program, instruction: Instruction) -> bool:
        """Record ``instruction``; return whether both engines have a kernel for it.

        If not, it is lowered to several others.
        """
        decomposed.append(instruction)
        return _has_both_kernels(program, instruction)

    compiled = None
    try:
        program = _lowered_program(model, decompose)
        if options.engine != "numpy":
            waits = options.engine == "native"
            lowered = (
                _lowered_program(model, is_computed_with_bound_sizes)
                if decomposed
                else program.copy()
            )
            threads = options.threads
            open_sizes = None if is_static(lowered) else OpenSizes(model, threads)
            compiled = Compiled(lowered, waits=waits, threads=threads, open_sizes=open_sizes)
    finally:
        shapes.restore_interface()
    optimize(program, decompose=is_static(program), strided=is_static(program))
    _check(program)
    check_sizes_known(program, binding_advice(model.graph.inputs))
    parts = {field.name: getattr(program, field.name) for field in fields(program)}
    return HostProgram(**parts, compiled=compiled)


def _has_both_kernels(program: Program, instruction: Instruction) -> bool:
    """True if NumPy has a kernel for the instruction, and C has one once its sizes are bound."""
    in_numpy = kernel_of(instruction.op) is not None
    return in_numpy and is_computed_with_bound_sizes(program, instruction)


def _lowered_program(model: ir.Model, supports: Supports) -> Program:
    """Lower ``model``; where lowering left a size unknown, use the size that the model declares."""
    program = lower(model, supports)
    bind_declared(program, declared(model.graph))
    return program


def _options(plan: HostPlan) -> Options:
    """Return the options that the caller gave, else the default options."""
    return plan.options if plan.options is not None else Options()


def _check(program: Program) -> None:
    """Raise an ErrorList of instructions without a kernel, innermost bodies first."""
    for body in program.bodies:
        _check(body.program)
    check_program(program, "host", DTYPES, refusal)


def computes(model: ir.Model, node: ir.Node) -> bool:
    """True if ``node`` can be lowered as written; kernels may still refuse it at its sizes.

    References of declared operators take no sub-byte types; their bodies cast them. An ONNX Runtime
    operator that only its reference could run is replaced by its body, which can be compiled.
    """
    try:
        program = lower_alone(model, node, _has_both_kernels)
        for body in program.bodies:
            _check(body.program)
    except (Unsupported, ErrorList):
        return False
    if node.domain and any(slot.dtype.bitwidth < 8 for slot in program.slots):
        return False
    return not any(refusal(each) or is_foreign(each.op) for each in program.instructions)


def plan_arena(plan: HostPlan) -> None:
    """Set ``plan.memory`` to the memory plan for NumPy of a static program; else to None.

    A program with open sizes is planned for the shapes of each call. With the engine ``native``,
    compiled code runs the first call and has its own memory plan. The plan for NumPy is then made
    only if NumPy has to run a call, or a folder is written.

    Raises an ErrorList for a static program with a call that NumPy's kernels refuse, unless the
    cache has its compiled form: that form shows that the program can run.
    """
    waits = _options(plan).engine == "native" and not plan.steps.bodies
    plan.memory = None if waits else _memory_layout(plan.steps)
    compiled = plan.steps.compiled
    was_compiled = compiled is not None and compiled.cached_library is not None
    if waits and is_static(plan.steps) and not was_compiled:
        prepare(plan.steps)  # for its errors
    if plan.memory is None:
        return
    layout = plan.memory
    plan.facts["arena_bytes"] = layout.memory.arena_bytes
    plan.facts["arena_bound_bytes"] = layout.memory.bound_bytes
    plan.facts["instructions"] = len(layout.program.instructions)


def _memory_layout(program: HostProgram) -> Layout | None:
    """Return the memory layout of a static program; None for any other."""
    if program.parts is not None or not is_static(program):
        return None
    end_broken_branches(program, certain=False)  # kernels say what they refuse
    return lay_out(program)


def write_folder(plan: HostPlan) -> Artifact:
    """Write the model, and the memory plan as text; ``load`` returns the runner."""

    def memory() -> MemoryPlan | None:
        """Return the memory plan if it is known before a run."""
        layout = plan.memory or _memory_layout(plan.steps)
        return None if layout is None else layout.memory

    files = Files(plan.model, memory, _options(plan))
    load = partial(runner_of, plan)
    report = dict(plan.facts)
    if plan.steps.compiled is not None:
        plan.steps.compiled.note = report.update
    return Artifact("host", plan.model, files, plan, report=report, load=load)


def runner_of(plan: HostPlan) -> HostRunner | AnySizesRunner:
    """Return the callable that runs ``plan``, as a loaded artifact does."""
    program, view_caller = plan.steps, None
    if program.parts is not None:
        return program.parts
    if _options(plan).views and is_static(program):
        view_caller = views_of(program)
    defaults, check = _defaults(plan.model), check_of(plan.model)
    return HostRunner(program, defaults, plan.memory, program.compiled, view_caller, check)


def _defaults(model: ir.Model) -> dict[int, Array]:
    """Return the default arrays of inputs, by position."""
    defaults: dict[int, Array] = {}
    for index, value in enumerate(model.graph.inputs):
        default = default_of(value)
        if default is not None:
            defaults[index] = np.asarray(default.numpy())
    return defaults
