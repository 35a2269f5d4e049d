"""Compile a decoder into files that hold its loop, its two programs and its weights."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt.decoding.compiled import Models
from smelt.decoding.sources import Sources
from smelt.decoding.standalone.c_files import c_artifact
from smelt.decoding.standalone.plans import context_of, parts_of
from smelt.decoding.standalone.wasm_files import wasm_artifact
from smelt.errors import UsageError
from smelt.ir.tensors.lazy_concat import concatenated_once
from smelt.native.packed_once import WeightFile, weights_in
from smelt.targets.base import Artifact
from smelt.targets.c.options import refused
from smelt.targets.options import read_options
from smelt.targets.registry import find_target

if TYPE_CHECKING:
    from smelt.compiler import Source

_OPTIONS = {
    "c": ("name", "weights", "cpu", "alignment", "quantized"),
    "wasm": ("name", "weights", "plain", "quantized"),
}
"""The targets that write decoders, and their options that a decoder has."""


def compile_decoder(
    model: Source,
    *,
    target: str = "c",
    context: int | None = None,
    weights_from: str | Path | None = None,
    **options: Any,
) -> Artifact:
    """Return the files of a decoder that reads up to ``context`` tokens, by default 2,048 or the
    number that the model has room for.

    ``target`` is ``c`` or ``wasm``. ``weights_from`` is a GGUF file or a checkpoint in place of the
    weights of ``model``. ``options`` are those of the target: name, weights and quantized; cpu and
    alignment for ``c``, plain for ``wasm``. Raises UsageError E801 for a model that is no decoder,
    E806 for one with room for fewer tokens, E808 for one that the loop cannot feed, and what
    ``smelt.compile`` raises.
    """
    if target not in _OPTIONS:
        why = f"the target {target!r} writes no loop of a decoder"
        fix = "--target c or wasm; smelt generate MODEL -o FOLDER compiles it for this machine"
        raise UsageError("E808", "the decoder cannot be written", why=why, fix=fix)
    chosen = read_options(find_target(target), options)
    for name in options:
        if name not in _OPTIONS[target]:
            known = ", ".join(_OPTIONS[target])
            raise refused(f"{name}= and a decoder", f"its options are {known}", "leave it out")
    models = Models(Sources(model, None, {}, weights_from, 1))
    room = context_of(models, context)
    write = c_artifact if target == "c" else wasm_artifact
    with tempfile.TemporaryDirectory(prefix="smelt-decoder-") as folder:
        file = WeightFile(Path(folder) / "weights")
        with concatenated_once(), weights_in(file):
            parts = parts_of(models, room, target, options)
            artifact = write(models.step.network, parts, room, chosen)
        file.close()
    artifact.report["notes"] = list(models.step.network.notes)
    return artifact
