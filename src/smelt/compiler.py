"""The whole compiler: source -> model -> passes -> phases of a target -> artifact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.check.modes import Verify, open_verifier, refuse_unknown_mode
from smelt.check.pass_reports import Reports
from smelt.consumers.find import find_consumers
from smelt.errors import UsageError, not_installed
from smelt.frontends import onnx as onnx_frontend
from smelt.frontends.onnx.inline import inline_functions
from smelt.frontends.stablehlo.detect import is_exported
from smelt.ir.bounds import sizes_from_zero
from smelt.ir.collector import paused_collector
from smelt.ir.defaults import warn_of_defaults
from smelt.ir.operand_facts.check import refuse_misfits
from smelt.ir.opsets.versions import set_ir_version, traced_opset
from smelt.ir.out_of_memory import explains_memory
from smelt.ir.tensors.constants_on_disk import new_memory_budget
from smelt.operators import expand
from smelt.passes import pipeline as language
from smelt.passes.base import PassContext
from smelt.passes.interface.image_input_preprocess import put_channels_first
from smelt.passes.interface.materialize_symbolic_dims import bind_or_bound_dims
from smelt.passes.opset import bring_to_opset, raise_where_needed, widen_bfloat16, without_gaps
from smelt.passes.run import Observer, count_nodes, run
from smelt.precision.half import HalfOptions, half_conversion, refuse_half
from smelt.spans import span
from smelt.targets.backend import rules_of
from smelt.targets.base import Artifact, Target
from smelt.targets.consumers import refuse_consumers
from smelt.targets.evaluator import evaluator_of
from smelt.targets.onnx.last_opsets import last_opset
from smelt.targets.options import read_options
from smelt.targets.phases import run_phases
from smelt.targets.registry import find_target
from smelt.targets.selection import select
from smelt.targets.support import computes_of, kernels_of, operators_beyond_onnx, whole_operators

if TYPE_CHECKING:
    import onnx

Source: TypeAlias = "ir.Model | onnx.ModelProto | bytes | str | Path"

HIGHEST_OPSET = 23
"""The highest opset to which passes raise models; JAX functions are converted to it, too."""


@explains_memory("the trace")
def trace(
    fn: Callable[..., Any],
    *specs: Any,
    channels_first: Sequence[str] | str = (),
    **options: Any,
) -> ir.Model:
    """Return the model of a JAX function; ``options`` are those of ``smelt.frontends.jax.trace``.

    ``fn`` may also be the result of ``jax.export``: the object, its bytes or a file; ``specs``
    default to its own. ``channels_first`` names channels-last inputs and outputs of ``fn`` (NHWC)
    that become NCHW. Raises UsageError E108 for unknown names, E603 for ports of less than 3 dims.
    """
    try:
        from smelt.frontends.jax import trace as trace_jax
    except ModuleNotFoundError as error:
        if error.name not in ("jax", "jaxlib"):
            raise
        raise not_installed("jax", "jax", "converting a JAX function") from error

    with paused_collector(), span("trace") as phase:
        model = trace_jax(fn, *specs, **options)
        if channels_first:
            put_channels_first(model, channels_first)
        phase.note(nodes=count_nodes(model))
    return model


@explains_memory("load")
def load(source: Source, *, opset: int | None = None, inline: bool = True) -> ir.Model:
    """Load an ONNX model from a path, bytes or a ModelProto; see ``smelt.frontends.onnx.load``."""
    with paused_collector():
        return onnx_frontend.load(source, opset=opset, inline=inline)


def optimize_model(
    model: ir.Model,
    *,
    pipeline: str | language.Steps = "default",
    verify: Verify = "off",
    dims: Mapping[str, int | tuple[int, ...]] | None = None,
    samples: Sequence[Mapping[str, np.ndarray]] | None = None,
    operators: frozenset[tuple[str, str]] = frozenset(),
    kernels: frozenset[str] | None = None,
    computes: Callable[[ir.Model, ir.Node], bool] | None = None,
    observers: Iterable[Observer] = (),
    rewrites: int | None = None,
    opset: int | None = None,
    ir_version: int | None = None,
    highest_opset: int = HIGHEST_OPSET,
    for_runtime: bool = True,
    keep_bfloat16: bool = False,
    functions: bool = False,
    consumers: str | Sequence[str] = (),
    half: HalfOptions | str | None = None,
) -> Reports:
    """Run ``pipeline`` on ``model`` in place, and report each pass.

    The model is first brought to the ONNX ``opset`` (Unsupported E230 or E231 if impossible), or
    without one to the lowest opset that rules support. If a rule then needs a newer operator, the
    opset is raised to at most ``highest_opset`` and the pipeline runs again, without passes that
    changed the interface; 0, or a given ``opset``, prevents this. Both are reported as passes.
    ``ir_version`` is that of the written file (E232 if it is too low for the opset).

    ``verify`` compares numbers at the sizes in ``dims``, or on ``samples`` as in ``smelt.verify``,
    at the end or after each pass; a difference beyond the declared exactness raises Mismatch E701.
    ``operators`` are those beyond ONNX that passes may make, ``kernels`` the operators of ONNX that
    they may make (None: all); ``Target`` explains ``computes``. ``rewrites`` limits the edits.
    ``for_runtime`` replaces operators that ONNX Runtime lacks, and bfloat16 by float32 where it has
    no kernel, unless ``keep_bfloat16``. Operators beyond ONNX become standard ones in line, unless
    ``functions`` keeps them. The result has operators and an opset that ``consumers`` support.
    ``half`` converts it at the end; ``Reports.half`` has the error on ``samples`` or random inputs.
    """
    refuse_unknown_mode(verify)
    steps = pipeline if isinstance(pipeline, tuple) else language.parse(pipeline)
    if chosen := find_consumers(consumers):
        steps, kernels, computes = chosen.steps(steps), chosen.accepted_of(kernels), chosen.takes
        highest_opset = min(highest_opset, chosen.highest_opset)
        opset, ir_version = chosen.versions(model, opset, ir_version)
    if steps and "freeze-defaults" not in map(str, steps):
        warn_of_defaults(model)
    watching = list(observers)
    to_half = half_conversion(model, half, samples, dims, native=keep_bfloat16)
    with (
        paused_collector(),
        new_memory_budget(),
        sizes_from_zero(model),
        span("optimize", nodes_before=count_nodes(model)) as phase,
    ):
        if verify != "off":
            checker = open_verifier(verify, model, steps, dims, samples)
            watching.append(checker)
        with span("prepare"):
            cx = PassContext.of(model, evaluator_of(model))
            refuse_misfits(model, cx.shapes)
        cx.operators, cx.kernels = operators, kernels
        cx.computes = partial(computes, model) if computes is not None else None
        cx.rewrites_left = rewrites
        reports = Reports(bring_to_opset(cx, opset, watching))
        if for_runtime and not keep_bfloat16:
            reports += widen_bfloat16(cx, watching)
        reports += run(cx, steps, watching)
        highest_opset = highest_opset if opset is None else 0
        while raised := raise_where_needed(cx, reports, highest_opset, last_opset, watching):
            interface = {report.text for report in reports if report.stats.interface}
            reports += [raised, *run(cx, language.without_steps(steps, interface), watching)]
        if for_runtime:
            reports += without_gaps(cx, steps, reports, watching, functions=functions)
        set_ir_version(model, ir_version)
        cx.shapes.restore_interface()
        if verify != "off":
            checker.finish(model)
            reports.evidence = checker.evidence
        if to_half is not None:
            reports.half = to_half(model)
        phase.note(nodes_after=cx.index().count)
    return reports


@explains_memory("optimize")
def optimize(model: Source, *, opset: int | None = None, **options: Any) -> Any:
    """Return an optimized copy of ``model``; ``options`` are those of ``optimize_model``.

    The copy is an ``ir.Model``, or a ModelProto if ``model`` is a ModelProto or bytes.
    """
    options["opset"] = opset
    with paused_collector():
        if isinstance(model, ir.Model):
            work = onnx_frontend.adopt(model, opset)
            optimize_model(work, **options)
            onnx_frontend.restore_defaults(work)
            return work
        work = onnx_frontend.load(model, opset=opset, keep_opset=True)
        optimize_model(work, **options)
        return work if isinstance(model, str | Path) else onnx_frontend.to_proto(work, spent=True)


@explains_memory("compile")
def compile_model(
    source: Source | Callable[..., Any],
    *specs: Any,
    target: str | Target = "onnx",
    pipeline: str = "default",
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    opset: int | None = None,
    ir_version: int | None = None,
    keep_opset: bool = False,
    verify: Verify = "off",
    samples: Sequence[Mapping[str, np.ndarray]] | None = None,
    x64: bool | None = None,
    tracing: Mapping[str, Any] | None = None,
    observers: Iterable[Observer] = (),
    fallback: str | Target | None = None,
    strict: bool = False,
    consumers: str | Sequence[str] = (),
    half: HalfOptions | str | None = None,
    **options: Any,
) -> Artifact:
    """Compile a model, or a JAX function with its input specs, for ``target``.

    ``tracing`` has further options of ``trace``, such as ``{"static": {"train": False}}``. ``dims``
    binds symbolic dims to sizes, or bounds them, as in ``{"B": (1, 16)}``, for targets that plan
    memory ahead. ``opset``, ``ir_version``, ``verify``, ``samples`` and ``half`` are those of
    ``optimize_model``; ``keep_opset`` runs no pass that needs a newer opset. ``observers`` watch
    the passes. ``options`` are the target's own. Nodes that the target lacks go to ``fallback``, or
    its own; ``strict`` forbids that, and a trace that skips checks or prints. Raises Unsupported.
    """
    chosen = find_target(target)
    if not isinstance(dims or {}, Mapping):
        what, fix = f"dims= got a {type(dims).__name__}", 'give sizes by name: {"B": 1}'
        raise UsageError("E633", what, why="it takes a dict from names to sizes", fix=fix)
    named = None if strict else fallback or chosen.fallback
    other = None if named is None else find_target(named)
    own_options = read_options(chosen, options)
    refuse_half(half, chosen)
    refuse_consumers(consumers, chosen)
    steps = language.parse_all(pipeline, chosen.passes)
    with paused_collector():
        traced = {"x64": x64, "strict": strict, **whole_operators(chosen), **(tracing or {})}
        model = source_model(source, specs, opset, traced)
        if model.functions and not chosen.functions:
            with span("inline"):
                inline_functions(model)
        if dims:
            with span("bind dims"):
                bind_or_bound_dims(model, dims, checked=chosen.limits.bounded_dims)
        highest = 0 if keep_opset else min(HIGHEST_OPSET, chosen.limits.opset[1])
        with sizes_from_zero(model):
            reports = optimize_model(
                model,
                pipeline=steps,
                verify=verify,
                dims={name: n for name, n in (dims or {}).items() if isinstance(n, tuple)} or None,
                operators=operators_beyond_onnx(chosen),
                kernels=kernels_of(chosen, other),
                computes=computes_of(chosen, other),
                opset=opset,
                ir_version=ir_version,
                highest_opset=highest,
                samples=samples,
                observers=observers,
                for_runtime=chosen.onnx_runtime,
                keep_bfloat16=getattr(own_options, "keep_bfloat16", False),
                functions=getattr(own_options, "functions", False),
                consumers=consumers,
                half=half,
            )
            prepare = partial(_prepare_for_fallback, target=chosen, fallback=other)
            artifact = run_phases(model, chosen, own_options, other, prepare)
    artifact.report.setdefault("passes", [report.to_json() for report in reports])
    artifact.report |= reports.facts()
    return artifact


def _prepare_for_fallback(part: ir.Model, target: Target, fallback: Target | None) -> None:
    """Prepare ``part``, which ``target`` does not support, as a whole model for ``fallback``.

    Operators of ``target`` become standard ones; then passes and selection of ``fallback`` run.
    """
    assert fallback is not None
    expand(part, target.operators)
    fixed: dict[str, Any] = {"highest_opset": 0, "for_runtime": False}
    steps = language.parse_all("", fallback.passes)
    optimize_model(part, pipeline=steps, kernels=fallback.kernels, **fixed)
    select(part, rules_of(fallback, fallback.options() if fallback.options is not None else None))


def source_model(
    source: Any, specs: tuple[Any, ...], opset: int | None, tracing: dict[str, Any]
) -> ir.Model:
    """Return ``source`` as a model: trace a function or an exported program, load an ONNX model.

    ``opset`` is the opset of the result, ``tracing`` holds the options of ``trace``. Raises the
    errors of ``trace`` and ``load``, and UsageError E608 if an ONNX model comes with specs.
    """
    if is_exported(source) or (callable(source) and not isinstance(source, ir.Model)):
        return trace(source, *specs, **tracing | traced_opset(opset))
    if specs or tracing.keys() - {"x64", "strict", "dft", "complex_dots"}:
        what = "input specs or a checkpoint are given for an ONNX model"
        why = "a model has types and weights of its own"
        fix = "leave out the specs and the checkpoint; smelt.fill_weights fills a model"
        raise UsageError("E608", what, why=why, fix=fix)
    if isinstance(source, ir.Model):
        return onnx_frontend.adopt(source, opset)
    return onnx_frontend.load(source, opset=opset, keep_opset=True)
