"""Write a decoder as C: the loop, its two programs, the weights and an example."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt.decoding.compiled import Models
from smelt.decoding.sources import Sources
from smelt.decoding.standalone.calls import calls_of
from smelt.decoding.standalone.plans import Part, context_of, parts_of
from smelt.decoding.standalone.state import HEAD_BYTES
from smelt.distribution import VERSION
from smelt.errors import UsageError
from smelt.ir.tensors.lazy_concat import concatenated_once
from smelt.native.emit.names import comment
from smelt.native.emit.unit import Unit
from smelt.native.emit.weights import BLOB_ALIGNMENT, Weight, blob
from smelt.native.kernels.register_blocks import for_machine
from smelt.native.packed_once import WeightFile, weights_in
from smelt.targets.base import Artifact, Plan
from smelt.targets.c.cpus import CPUS
from smelt.targets.c.emit import library_fields, rendered
from smelt.targets.c.options import Options, refused
from smelt.targets.c.versions import VERSIONS, Version
from smelt.targets.options import read_options
from smelt.targets.registry import find_target

if TYPE_CHECKING:
    from smelt.compiler import Source

WIDEST = VERSIONS[-1]
DECODER_VERSIONS = (*VERSIONS, Version("vnni", (*WIDEST.features, "avx512vnni"), WIDEST.lanes))
"""The x86 versions of the programs: those of any library, and one with int8 dot products."""

PER_LINE = 24
"""The bytes on a line of weights in C."""

_OPTIONS = ("name", "weights", "cpu", "alignment", "quantized")
"""The options of the target ``c`` that a decoder has."""

_FILES = {
    "{}.h": "decoder/decoder.h.j2",
    "{}.c": "decoder/decoder.c.j2",
    "{}_main.c": "decoder/main.c.j2",
}


def compile_decoder(
    model: Source,
    *,
    target: str = "c",
    context: int | None = None,
    weights_from: str | Path | None = None,
    **options: Any,
) -> Artifact:
    """Return the C files of a decoder that reads up to ``context`` tokens, by default 2,048 or the
    number that the model has room for.

    ``weights_from`` is a GGUF file or a checkpoint in place of the weights of ``model``.
    ``options`` are those of the target ``c``: name, weights, cpu, alignment and quantized. Raises
    UsageError E801 for a model that is no decoder, E806 for one with room for fewer tokens, E808
    for one that the loop in C cannot feed, and what ``smelt.compile`` raises.
    """
    if target != "c":
        why = f"the target {target!r} writes no loop of a decoder"
        fix = "--target c; smelt generate MODEL -o FOLDER compiles it for this machine"
        raise UsageError("E808", "the decoder cannot be written", why=why, fix=fix)
    chosen: Options = read_options(find_target("c"), options)
    for name in options:
        if name not in _OPTIONS:
            raise refused(
                f"{name}= and a decoder",
                f"a decoder has the options {', '.join(_OPTIONS)}",
                "leave it out",
            )
    models = Models(Sources(model, None, {}, weights_from, 1))
    room = context_of(models, context)
    with tempfile.TemporaryDirectory(prefix="smelt-decoder-") as folder:
        file = WeightFile(Path(folder) / "weights")
        with concatenated_once(), weights_in(file):
            parts = parts_of(models, room, "c", options | {"weights": "bin"})
            artifact = _artifact(models, parts, room, chosen)
        file.close()
    artifact.report["notes"] = list(models.step.network.notes)
    return artifact


def _artifact(models: Models, parts: Sequence[Part], context: int, options: Options) -> Artifact:
    """Return the files of a decoder whose programs are planned."""
    network = models.step.network
    weights: dict[tuple[str, bytes], Weight] = {}
    files: dict[str, bytes] = {}
    for part in parts:
        files |= _program_files(part, options, weights)
    data = blob(weights.values())
    form = options.form(len(data))
    form = "hex" if form == "string" else form
    state, calls = calls_of(network, parts, context)
    name = options.name
    fields = {
        "name": name,
        "upper": name.upper(),
        "title": comment(parts[0].plan.steps.name),
        "version": VERSION,
        "form": form,
        "vocabulary": network.vocabulary,
        "context": context,
        "memory_bytes": state.end,
        "alignment": state.alignment,
        "blob_bytes": len(data),
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
    files = {file.format(name): rendered(text, fields) for file, text in _FILES.items()} | files
    files |= _weight_files(data, form, fields)
    plan = parts[-1].plan
    facts = {
        "context": context,
        "memory_bytes": state.end,
        "weights_bytes": len(data),
        "arena_bytes": max(part.plan.memory.arena_bytes for part in parts),
    }
    whole: Plan[Any, Any] = Plan(plan.model, options)
    whole.facts |= facts
    return Artifact("c", plan.model, files, whole, dict(facts))


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
    with for_machine(CPUS[options.cpu].machine):
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
