"""``smelt.merge``: one model of a decoder without past and one with past."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.errors import UsageError
from smelt.frontends.onnx import check_model, load
from smelt.frontends.onnx.read import Source
from smelt.ir import scope
from smelt.ir.cloning import clone_model
from smelt.ir.out_of_memory import explains_memory
from smelt.merging.branches import CONDITION, merge_branches
from smelt.merging.facts import Facts
from smelt.merging.outputs import Caches
from smelt.merging.verification import verify_branches


@explains_memory("merge")
def merge(
    decoder: Source,
    decoder_with_past: Source,
    *,
    condition: str = CONDITION,
    caches: Caches = "empty",
    verify: Literal["off", "final"] = "off",
    dims: Dims | None = None,
) -> ir.Model:
    """Return one model of a decoder without past and a decoder with past, with all weights once.

    The result has a bool input ``condition``, which chooses the branch of each run, the inputs of
    both models, and the outputs of the decoder. Inputs that a branch does not read may hold
    anything, such as past keys and values of length 0 in the first step. The layout is that of
    optimum's ``decoder_model_merged.onnx``.

    A decoder with past may lack outputs of the other, such as keys and values of an encoder. They
    are tensors without elements there; ``caches="repeated"`` returns the cached inputs instead.
    Opsets are raised to the higher of both. ``verify="final"`` runs each source and its branch on
    the same random inputs, at the sizes in ``dims``, and raises Mismatch E702 if they differ.

    Raises UsageError E665 for models that are no such pair, and E666 to E672 for inputs, outputs,
    operator sets or functions that do not agree.

    ::

        merged = smelt.merge("decoder_model.onnx", "decoder_with_past_model.onnx")
        smelt.save(merged, "decoder_model_merged.onnx")
    """
    if verify not in ("off", "final"):
        what, why = f"verify={verify!r} is not off or final", "it says whether to compare"
        raise UsageError("E607", what, why=why, fix="verify='final'")
    names = (_name(decoder, "the decoder"), _name(decoder_with_past, "the decoder with past"))
    return merged_decoders(
        (decoder, decoder_with_past),
        names,
        condition=condition,
        caches=caches,
        verified=verify == "final",
        dims=dims,
    )[0]


def merged_decoders(
    sources: tuple[Source, Source],
    names: tuple[str, str],
    *,
    condition: str = CONDITION,
    caches: Caches = "empty",
    verified: bool = False,
    dims: Dims | None = None,
) -> tuple[ir.Model, Facts]:
    """Merge as ``merge`` does, and return the model and its facts; ``names`` are for messages."""
    first, cached = (load(source, as_is=True) for source in sources)
    before = sum(map(scope.weight_bytes, (first, cached)))
    originals = [clone_model(model) for model in (first, cached)] if verified else []
    model, not_computed = merge_branches(first, cached, names, condition, caches)
    check_model(model)
    reports = []
    if verified:
        pairs = list(zip(names, originals, strict=True))
        reports = verify_branches(model, pairs, condition, dims)
    for report in reports:
        report.check()
    return model, Facts((before, scope.weight_bytes(model)), reports, not_computed, caches)


def _name(source: Source, otherwise: str) -> str:
    """Return the name of ``source`` in messages: its file, else ``otherwise``."""
    return Path(source).name if isinstance(source, str | Path) else otherwise
