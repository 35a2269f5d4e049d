"""Choose the regions of a model, compile them, and join them with the rest of the model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir

from smelt.errors import SmeltError
from smelt.ir.bounds import readable_bounds
from smelt.ir.partition import Part, models_of_parts, partition
from smelt.native_regions.library import SOURCE, Region, library_source
from smelt.native_regions.replace import replace_regions
from smelt.runtime.c_library import PORTABLE_FLAGS, build
from smelt.targets.base import Artifact, Target
from smelt.targets.legality import refusal

FEWEST_NODES = 4
"""A region of fewer nodes saves less than the call of its operator takes."""

BITS_OF_BYTE = 8

CompileRegion = Callable[[ir.Model, str], Artifact]
"""Compiles a part of a model for the target ``c``, with the name of its files and functions."""


@dataclass
class Regions:
    """A model whose regions are nodes, the library for them, and the regions that were not taken.

    ``nodes`` counts the nodes in regions; ``refused`` has reasons.
    """

    model: ir.Model
    library: bytes
    nodes: int
    count: int
    refused: list[str] = field(default_factory=list)


def native_regions(
    model: ir.Model, target: Target[Any, Any], compile_region: CompileRegion
) -> Regions:
    """Return ``model`` with its regions replaced by nodes, and the library that computes them.

    ``target`` is the target ``c``, which tells the nodes that it takes. ``model`` is changed. The
    library is empty if there is no region.
    """
    parts = _partition(model, target)
    copy = model.clone()
    copied_parts = _partition(copy, target)
    pieces = models_of_parts(copy, copied_parts)
    refused: list[str] = []
    compiled: dict[int, Artifact] = {}
    for index, (part, piece) in enumerate(zip(copied_parts, pieces, strict=True)):
        if part.taken:
            try:
                artifact = compile_region(piece, f"region{index}")
            except SmeltError as error:
                refused.append(f"{error.code} {error.what}")
                continue
            why = _obstacle(artifact)
            if why:
                refused.append(why)
            else:
                compiled[index] = artifact
    library = build_library(list(compiled.values())) if compiled else b""
    if compiled:
        replace_regions(model, parts, {index: f"region{index}" for index in compiled})
    nodes = sum(len(parts[index].nodes) for index in compiled)
    return Regions(model, library, nodes, len(compiled), refused)


def _partition(model: ir.Model, target: Target[Any, Any]) -> list[Part]:
    """Return the parts of ``model``: the regions that ``target`` takes, and the other parts."""
    bounds = readable_bounds(model.graph)
    is_taken = {node: not refusal(target, node, bounds) for node in model.graph}
    return partition(model.graph, is_taken.__getitem__, lambda nodes: FEWEST_NODES - len(nodes))


def _obstacle(artifact: Artifact) -> str:
    """Return why a compiled part cannot be an operator of ONNX Runtime; empty if it can."""
    program = artifact.plan.steps
    slots = [program.slots[slot] for slot in (*program.inputs, *program.outputs)]
    if program.returned_sizes:
        return "a size of its results depends on its data"
    if any(slot.dtype.bitwidth < BITS_OF_BYTE for slot in slots):
        return "an input or output has elements of less than a byte"
    plain = {str(dim) for slot in slots[: len(program.inputs)] for dim in slot.shape}
    if any(str(each.size) not in plain for each in program.input_sizes):
        return "no input has one of its sizes as a dim"
    return ""


def build_library(artifacts: Sequence[Artifact]) -> bytes:
    """Return the shared library of the regions, built by this machine's C compiler.

    Raises what ``runtime.c_library.build`` raises.
    """
    regions = [_region(artifact) for artifact in artifacts]
    files: dict[str, bytes] = {SOURCE: library_source(regions).encode()}
    for artifact in artifacts:
        files.update(_sources(artifact))
    with tempfile.TemporaryDirectory(prefix="smelt-regions-") as folder:
        return build(files, Path(folder), PORTABLE_FLAGS, "regions").read_bytes()


def _sources(artifact: Artifact) -> Iterator[tuple[str, bytes]]:
    """Return the files of a part that its library is built from."""
    for name, data in artifact.files.items():
        if not name.endswith(".json"):
            yield name, data


def _region(artifact: Artifact) -> Region:
    """Return the facts of a compiled part that the library needs."""
    plan = artifact.plan
    memory = plan.memory
    return Region(
        plan.options.name,
        plan.steps,
        max(memory.arena_bytes, memory.alignment),
        memory.alignment,
        plan.options.threads,
    )


def facts_of(regions: Regions) -> Mapping[str, Any]:
    """Return figures for the report."""
    return {"regions": regions.count, "nodes": regions.nodes, "refused": regions.refused}
