"""The ways to round weights, each as a model whose products are then given fewer bits.

| method | model | codes of weights |
|---|---|---|
| `nearest` | as it is | the nearest |
| `scaled` | has scaled channels of activations (SmoothQuant, AWQ) | the nearest |
| `equalized` | has convolutions with channels of like magnitude | the nearest |
| `gptq` | as `scaled` | of 4 bits; later rows make up for the error of earlier ones |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import onnx_ir as ir

from smelt.ir.cloning import clone_model
from smelt.ir.constants import Constants
from smelt.ir.names import name_values
from smelt.precision.batches import Sample
from smelt.precision.int8.candidates import Candidate, result_name
from smelt.precision.int8.equalize import equalize
from smelt.precision.int8.gptq import compensated_blocks
from smelt.precision.int8.linear import Codes
from smelt.precision.int8.rows import rows_of_activations
from smelt.precision.int8.scaling import products_by_source, scale_activations
from smelt.precision.int8.writer import Format

Method = Literal["auto", "nearest", "equalized", "scaled", "gptq"]
METHODS: tuple[Method, ...] = ("auto", "nearest", "equalized", "scaled", "gptq")


@dataclass(frozen=True)
class Variant:
    """A model that computes what the source computes, and the codes that some products have.

    ``codes`` are by the name of the product's result.
    """

    method: Method
    model: ir.Model
    codes: Mapping[str, Codes] = field(default_factory=dict)


def variants(
    model: ir.Model,
    find: Callable[[ir.Model], Sequence[Candidate]],
    samples: Sequence[Sample],
    method: Method,
    format_: Format,
    say: Callable[[str], None],
    *,
    may_add: bool = True,
) -> Iterator[Variant]:
    """Yield the variants of ``model`` by ``method``; ``auto`` yields all that differ.

    ``find`` returns the candidates of a model; ``samples`` calibrate the scales and codes.
    ``may_add``: a scaled model may have more multiplications.
    """
    if method in ("auto", "nearest"):
        yield Variant("nearest", model)
    if method in ("auto", "equalized"):
        work = clone_model(model)
        if equalize(work) or method == "equalized":
            name_values(work)
            yield Variant("equalized", work)
    if method in ("nearest", "equalized"):
        return
    say("scaling activations")
    work = clone_model(model)
    scaled = scale_activations(work, find(model), samples, format_, may_add=may_add)
    name_values(work)
    if method == "scaled" or (method == "auto" and scaled):
        yield Variant("scaled", work)
    if method == "gptq" or (method == "auto" and format_.block):
        say("rounding weights by GPTQ")
        yield Variant("gptq", work, dict(_compensated(work, find(work), samples, format_)))


def _compensated(
    model: ir.Model, candidates: Sequence[Candidate], samples: Sequence[Sample], format_: Format
) -> Iterator[tuple[str, Codes]]:
    """Yield the name of the result and the codes of each product of matrices."""
    by_source = dict(products_by_source(model, candidates, Constants()))
    for source, rows in rows_of_activations(model, list(by_source), samples):
        for each in by_source[source]:
            axis = each.weight.inner
            array = each.matrix if axis == 0 else each.matrix.T
            codes = compensated_blocks(array, axis, format_.block, rows, format_.grid)
            yield result_name(each.node), codes
