"""Write a decoder as C: the loop, its two programs, the weights and an example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from smelt.decoding.network import Network
from smelt.decoding.standalone.calls import calls_of
from smelt.decoding.standalone.plans import Part
from smelt.decoding.standalone.state import HEAD_BYTES
from smelt.distribution import VERSION
from smelt.native.emit.names import comment
from smelt.native.emit.unit import Unit
from smelt.native.emit.weights import BLOB_ALIGNMENT, Weight, blob
from smelt.native.kernels.register_blocks import for_machine
from smelt.targets.base import Artifact, Plan
from smelt.targets.c.emit import library_fields, rendered
from smelt.targets.c.options import Options
from smelt.targets.c.versions import VERSIONS, Version

WIDEST = VERSIONS[-1]
DECODER_VERSIONS = (*VERSIONS, Version("vnni", (*WIDEST.features, "avx512vnni"), WIDEST.lanes))
"""The x86 versions of the programs: those of any library, and one with int8 dot products."""

PER_LINE = 24
"""The bytes on a line of weights in C."""

_FILES = {
    "{}.h": "decoder/decoder.h.j2",
    "{}.c": "decoder/decoder.c.j2",
    "{}_main.c": "decoder/main.c.j2",
}


def c_artifact(network: Network, parts: Sequence[Part], context: int, options: Options) -> Artifact:
    """Return the files of a decoder whose programs are planned."""
    weights: dict[tuple[str, bytes], Weight] = {}
    files: dict[str, bytes] = {}
    for part in parts:
        files |= _program_files(part, options, weights)
    data = blob(weights.values())
    form = options.form(len(data))
    form = "hex" if form == "string" else form
    name = options.name
    title = parts[0].plan.steps.name
    fields = loop_fields(network, parts, context, name, title, form, len(data))
    files = {file.format(name): rendered(text, fields) for file, text in _FILES.items()} | files
    files |= _weight_files(data, form, fields)
    plan = parts[-1].plan
    facts = {
        "context": context,
        "memory_bytes": fields["memory_bytes"],
        "weights_bytes": len(data),
        "arena_bytes": max(part.plan.memory.arena_bytes for part in parts),
    }
    whole: Plan[Any, Any] = Plan(plan.model, options)
    whole.facts |= facts
    return Artifact("c", plan.model, files, whole, dict(facts))


def loop_fields(
    network: Network,
    parts: Sequence[Part],
    context: int,
    name: str,
    title: str,
    form: str,
    weights_bytes: int,
) -> dict[str, Any]:
    """Return the values of the variables of the templates of the loop, for the library ``name``.

    Raises UsageError E808 for a model that the loop cannot feed.
    """
    state, calls = calls_of(network, parts, context)
    return {
        "name": name,
        "upper": name.upper(),
        "title": comment(title),
        "version": VERSION,
        "form": form,
        "vocabulary": network.vocabulary,
        "context": context,
        "memory_bytes": state.end,
        "alignment": state.alignment,
        "blob_bytes": weights_bytes,
        "blob_alignment": BLOB_ALIGNMENT,
        "p2align": BLOB_ALIGNMENT.bit_length() - 1,
        "head_bytes": HEAD_BYTES,
        "calls": calls,
        "has_caches": bool(network.ports.caches),
        "regions": {key: at for key, at in state.offsets.items() if key in _REGIONS},
        "fills": list(state.fills.values()),
        "zeros": list(state.zeros.values()),
        "weights_pointer": f"{name}_weights",
    }


_REGIONS = frozenset(
    {"tokens", "positions", "logits", "seen", "order", "chances", "scores", "history", "arena"}
)
"""The regions that the loop names; it knows those of caches and masks by their offsets."""


def _program_files(
    part: Part, options: Options, weights: dict[tuple[str, bytes], Weight]
) -> dict[str, bytes]:
    """Return source and header of a program, which adds its constants to ``weights``."""
    name = f"{options.name}_{part.word}"
    plan = part.plan
    plan.options = replace(plan.options, name=name)
    with for_machine(options.machine):
        unit = Unit(name, plan.steps, plan.memory, constants="blob", weights=weights)
    fields = library_fields(plan, unit, "bin", sum(each.array.nbytes for each in weights.values()))
    fields |= {"weights_header": "", "versions": DECODER_VERSIONS}
    return {
        f"{name}.c": rendered("source.c.j2", fields),
        f"{name}.h": rendered("header.h.j2", fields),
    }


def _weight_files(data: bytes, form: str, fields: Mapping[str, object]) -> dict[str, bytes]:
    """Return the files of the weights: one to map, one in C, or one that the assembler includes."""
    name = fields["name"]
    if form == "bin":
        return {f"{name}_weights.bin": data}
    header = {f"{name}_weights.h": rendered("decoder/weights.h.j2", dict(fields))}
    if form == "incbin":
        source = rendered("weights.c.j2", dict(fields))
        return {**header, f"{name}_weights.c": source, f"{name}_weights.c.bin": data}
    lines = [
        "0x" + data[at : at + PER_LINE].hex(",").replace(",", ",0x")
        for at in range(0, len(data), PER_LINE)
    ]
    source = rendered("decoder/weights.c.j2", {**fields, "lines": lines or ["0"]})
    return {**header, f"{name}_weights.c": source}
