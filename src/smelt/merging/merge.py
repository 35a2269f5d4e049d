"""``smelt.merge``: one model of a decoder without past and one with past."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.verification import Report
from smelt.errors import UsageError
from smelt.frontends.onnx import check_model, load
from smelt.frontends.onnx.read import Source
from smelt.ir import scope
from smelt.ir.cloning import clone_model
from smelt.ir.out_of_memory import explains_memory
from smelt.merging.branches import CONDITION, merge_branches
from smelt.merging.outputs import Caches
from smelt.merging.verification import verify_branches


@dataclass
class Merged:
    """A merged model, and what a command tells about it.

    ``weights`` are the bytes of weights of the sources together and of the merged model.
    ``not_computed`` are outputs that the branch with past lacks; ``caches`` says what they hold.
    """

    model: ir.Model
    weights: tuple[int, int]
    not_computed: list[str] = field(default_factory=list)
    caches: Caches = "empty"
    reports: list[Report] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON data."""
        return {
            "weights": list(self.weights),
            "not_computed": self.not_computed,
            "caches": self.caches,
            "verification": [report.to_json() for report in self.reports],
        }


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
    names = tuple(
        _name(source, word)
        for source, word in ((decoder, "the decoder"), (decoder_with_past, "the decoder with past"))
    )
    merged = merged_decoders(
        (decoder, decoder_with_past),
        (names[0], names[1]),
        condition=condition,
        caches=caches,
        verify=verify == "final",
        dims=dims,
    )
    for report in merged.reports:
        report.check()
    return merged.model


def merged_decoders(
    sources: tuple[Source, Source],
    names: tuple[str, str],
    *,
    condition: str = CONDITION,
    caches: Caches = "empty",
    verify: bool = False,
    dims: Dims | None = None,
) -> Merged:
    """Merge as ``merge`` does, and return the model with its facts; reports are not yet checked."""
    first, cached = (load(source, as_is=True) for source in sources)
    before = sum(map(scope.weight_bytes, (first, cached)))
    originals = [clone_model(model) for model in (first, cached)] if verify else []
    model, not_computed = merge_branches(first, cached, names, condition, caches)
    check_model(model)
    merged = Merged(model, (before, scope.weight_bytes(model)), not_computed, caches)
    if verify:
        pairs = list(zip(names, originals, strict=True))
        merged.reports = verify_branches(model, pairs, condition, dims)
    return merged


def _name(source: Source, otherwise: str) -> str:
    """Return the name of ``source`` in messages: its file, else ``otherwise``."""
    return Path(source).name if isinstance(source, str | Path) else otherwise
