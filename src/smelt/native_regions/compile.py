"""Compile for ONNX Runtime with native regions, and keep them if they are faster here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import onnx_ir as ir

from smelt.compiler import Source, compile_model, source_model
from smelt.errors import SmeltError, UsageError
from smelt.ir.bounds import bounds_of, readable_bounds
from smelt.ir.cloning import clone_model
from smelt.ir.scope import nodes
from smelt.native_regions.artifact import NativeArtifact, with_library
from smelt.native_regions.regions import Regions, native_regions
from smelt.runtime.inputs import random_inputs
from smelt.runtime.interface import interface_of
from smelt.runtime.latency import interleaved_timings
from smelt.targets.base import Artifact
from smelt.targets.ort.artifact import OrtArtifact
from smelt.targets.registry import find_target

PAYS, HARMLESS = 0.98, 1.02
"""Regions are kept if the model takes at most the first share of the time without them, as a mean
over the sizes, and at most the second at each of them."""

SECONDS = 3.0
"""Seconds of timing at each of the sizes."""


def compile_with_regions(
    source: Source | Callable[..., Any],
    *specs: Any,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    tracing: Mapping[str, Any] | None = None,
    threads: int = 1,
    measure: bool = True,
    **options: Any,
) -> OrtArtifact:
    """Compile for the target ``ort``, with a library of C for the parts that it computes faster.

    ``dims`` gives sizes or bounds of symbolic dims, as for the target ``c``; nodes with other open
    sizes stay with ONNX Runtime. ``threads`` is the number of threads of its sessions; costly
    kernels of fixed sizes are split for them, others run on one thread. ``options`` are those of
    ``smelt.compile`` and of the target.

    The result has the model without regions, too. ``measure`` times both at the largest sizes and
    at the geometric means of the bounds, and returns the artifact without regions if these do not
    pay; ``report["native regions"]`` has the figures. Raises the errors of a compile, UsageError
    E661 without a C compiler, and E660 with ``weights``, because regions do not compute with these.
    """
    _refuse_weights(options.get("weights"))
    model = source_model(source, specs, options.get("opset"), dict(tracing or {}))
    plain = compile_model(clone_model(model), target="ort", dims=dims, **options)
    assert isinstance(plain, OrtArtifact)
    regions = _regions(model, dims, threads, str(options.get("pipeline", "default")))
    report: dict[str, Any] = {
        "regions": regions.count,
        "nodes": regions.nodes,
        "nodes left": sum(1 for _ in nodes(regions.model)) - regions.count,
        "refused": regions.refused,
    }
    result: OrtArtifact = plain
    if regions.library:
        result = _joined(plain, regions).advised(replace(plain.advice, threads=threads))
        if measure:
            report["ratios"] = ratios = _ratios(plain, result, threads)
            if isinstance(ratios, str) or not _pay(ratios):
                result = plain
    report["kept"] = result is not plain
    result.report["native regions"] = report
    result.plan.facts["native regions"] = _in_words(report)
    return result


def _refuse_weights(weights: str | None) -> None:
    """Raise UsageError E660 for the option ``weights``."""
    if weights:
        raise UsageError(
            "E660",
            f"native regions are compiled with weights={weights!r}",
            why="the C of a region computes with the weights of the model as they are",
            fix="leave out the weights, or compile without native regions",
        )


def _regions(
    model: ir.Model,
    dims: Mapping[str, int | tuple[int, int]] | None,
    threads: int,
    pipeline: str,
) -> Regions:
    """Return the model with its regions replaced, after the passes of ``pipeline``."""
    optimized = compile_model(model, target="onnx", dims=dims, pipeline=pipeline).plan.model

    def compile_region(part: ir.Model, name: str) -> Artifact:
        """Compile one part to C that runs on any CPU of this architecture."""
        bounds = dict(bounds_of(part.graph)) or None
        return compile_model(part, target="c", dims=bounds, name=name, threads=threads)

    return native_regions(optimized, find_target("c"), compile_region)


def _joined(plain: OrtArtifact, regions: Regions) -> NativeArtifact:
    """Return the artifact with the files of ``plain``, the model with regions, and the library."""
    options = replace(plain.plan.options, name=f"{plain.plan.options.name}.native")
    with_regions = compile_model(regions.model, target="ort", pipeline="", **vars(options))
    assert isinstance(with_regions, OrtArtifact)
    return with_library(plain, with_regions, regions.library)


def _pay(ratios: Sequence[float]) -> bool:
    """True if the regions save time over all sizes, and cost none at any."""
    return math.prod(ratios) ** (1 / len(ratios)) <= PAYS and max(ratios) <= HARMLESS


def _ratios(plain: OrtArtifact, native: OrtArtifact, threads: int) -> list[float] | str:
    """Return the time of ``native`` over that of ``plain`` at each of the sizes, or why a model
    does not run on made-up inputs."""
    interface = interface_of(plain.model)
    bounds = readable_bounds(plain.model.graph)
    sessions = [artifact.session(threads=threads) for artifact in (plain, native)]
    ratios = []
    for sizes in _sizes(interface.symbols(), bounds):
        try:
            values = random_inputs(plain.model, sizes)
            plain(*values)  # its failure has a code
        except SmeltError as error:
            return f"{error.code} {error.what}"
        feeds = {
            port.name: value
            for port, value in zip(interface.inputs, values, strict=True)
            if value is not None
        }
        runs = [partial(session.run, None, feeds) for session in sessions]
        ratios.append(round(interleaved_timings(runs, seconds=SECONDS)[1].ratio, 3))
    return ratios


def _sizes(symbols: Sequence[str], bounds: Mapping[str, tuple[int, int]]) -> list[dict[str, int]]:
    """Return the sizes to time at: the largest, and the geometric means of the bounds."""
    largest = {name: bounds.get(name, (1, 1))[1] for name in symbols}
    means = {}
    for name in symbols:
        low, high = bounds.get(name, (1, 1))
        means[name] = max(1, round(math.sqrt(max(low, 1) * high)))
    return [largest] if means == largest else [largest, means]


def _in_words(report: Mapping[str, Any]) -> str:
    """Return the report as one line."""
    if not report["regions"]:
        why = f" ({report['refused'][0]})" if report["refused"] else ""
        return f"none{why}; nodes with open sizes need bounds, as --dim batch=1..8"
    counts = f"{report['nodes']} nodes in {report['regions']}"
    ratios = report.get("ratios")
    if isinstance(ratios, str):
        return f"left out: the model does not run on made-up inputs ({ratios})"
    times = "" if ratios is None else f", {' and '.join(map(str, ratios))} of the time without them"
    return f"{counts}{times}" if report["kept"] else f"left out: {counts}{times}"
