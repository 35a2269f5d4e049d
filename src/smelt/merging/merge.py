"""``smelt.merge``: one model of two decoders, or of two models one after the other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
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
from smelt.merging.connect import connect as connect_models
from smelt.merging.facts import Facts
from smelt.merging.outputs import Caches
from smelt.merging.ties import tie_embeddings as tie_weights
from smelt.merging.verification import verify_branches, verify_chain


@explains_memory("merge")
def merge(
    first: Source,
    second: Source,
    *,
    connect: Mapping[str, str] | None = None,
    condition: str = CONDITION,
    caches: Caches = "empty",
    tie_embeddings: bool = False,
    verify: Literal["off", "final"] = "off",
    dims: Dims | None = None,
) -> ir.Model:
    """Return one model of a decoder without past and a decoder with past, with all weights once.

    The result has a bool input ``condition``, which chooses the branch of each run, the inputs of
    both models, and the outputs of the first. Inputs that a branch does not read may hold anything,
    such as past keys and values of length 0 in the first step. The layout is that of optimum's
    ``decoder_model_merged.onnx``. A decoder with past may lack outputs of the other, such as keys
    and values of an encoder. Its branch returns empty tensors for them, or the cached inputs with
    ``caches="repeated"``.

    With ``connect``, such as ``{"hidden": "x"}``, the result computes one model after the other:
    the output ``hidden`` of the first is the input ``x`` of the second. An input of the first may
    be connected, too. If both models have an input or output of one name, that of the second gets
    a prefix: the name of its file, or ``second_``.

    With ``tie_embeddings``, an output projection that equals the transposed embedding is stored as
    a Transpose of the embedding. The file is smaller. ONNX Runtime transposes once, when it opens
    the file; other runtimes may transpose in each run.

    Opsets are raised to the higher of both. ``verify="final"`` compares the result with its sources
    on random inputs, at the sizes in ``dims``, and raises Mismatch E702 if they differ. Raises
    UsageError E665 to E673 for models that do not fit together.

    ::

        merged = smelt.merge("decoder_model.onnx", "decoder_with_past_model.onnx")
        smelt.save(merged, "decoder_model_merged.onnx")
    """
    if verify not in ("off", "final"):
        what, why = f"verify={verify!r} is not off or final", "it says whether to compare"
        raise UsageError("E607", what, why=why, fix="verify='final'")
    names = (_name(first, "the first model"), _name(second, "the second model"))
    options = Options(verify == "final", dims, tie_embeddings)
    if connect is not None:
        return connected_models((first, second), names, connect, options)[0]
    return merged_decoders((first, second), names, options, condition, caches)[0]


@dataclass(frozen=True)
class Options:
    """Whether a merge compares its result with the sources, at which sizes, and ties embeddings."""

    verified: bool = False
    dims: Dims | None = None
    tie_embeddings: bool = False


def merged_decoders(
    sources: tuple[Source, Source],
    names: tuple[str, str],
    options: Options = Options(),
    condition: str = CONDITION,
    caches: Caches = "empty",
) -> tuple[ir.Model, Facts]:
    """Merge as ``merge`` does, and return the model and its facts; ``names`` are for messages."""
    models, originals, before = _loaded(sources, options.verified)
    model, not_computed = merge_branches(*models, names, condition, caches)
    tied = _finish(model, options)
    reports = []
    if options.verified:
        pairs = list(zip(names, originals, strict=True))
        reports = verify_branches(model, pairs, condition, options.dims)
    for report in reports:
        report.check()
    weights = (before, scope.weight_bytes(model))
    return model, Facts(weights, reports, not_computed, caches, tied=tied)


def connected_models(
    sources: tuple[Source, Source],
    names: tuple[str, str],
    pairs: Mapping[str, str],
    options: Options = Options(),
) -> tuple[ir.Model, Facts]:
    """Connect as ``merge`` does, and return the model and its facts; ``names`` are for messages."""
    models, originals, bytes_before = _loaded(sources, options.verified)
    prefix = "second_"
    if isinstance(sources[1], str | Path) or names[1].endswith(".onnx"):
        prefix = re.sub(r"\W", "_", Path(names[1]).stem) + "_"
    model, renamed = connect_models(*models, pairs, names, prefix)
    tied = _finish(model, options)
    reports = []
    if options.verified:
        named_models = list(zip(names, originals, strict=True))
        reports.append(verify_chain(model, named_models, pairs, renamed, options.dims))
        reports[0].check()
    weights = (bytes_before, scope.weight_bytes(model))
    return model, Facts(weights, reports, renamed=renamed, tied=tied)


def _finish(model: ir.Model, options: Options) -> list[str]:
    """Tie embeddings if requested, then check ``model``; return the names of tied weights."""
    tied = tie_weights(model) if options.tie_embeddings else []
    check_model(model)
    return tied


def _loaded(
    sources: tuple[Source, Source], copied: bool
) -> tuple[tuple[ir.Model, ir.Model], list[ir.Model], int]:
    """Return both models, copies of them, and the bytes of the weights of both.

    The merge empties the models. The copies are for a comparison with the result, and only made if
    ``copied``.
    """
    first, second = (load(source, as_is=True) for source in sources)
    copies = [clone_model(model) for model in (first, second)] if copied else []
    return (first, second), copies, scope.weight_bytes(first) + scope.weight_bytes(second)


def _name(source: Source, otherwise: str) -> str:
    """Return the name of ``source`` in messages: its file, else ``otherwise``."""
    return Path(source).name if isinstance(source, str | Path) else otherwise
