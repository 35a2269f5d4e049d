"""Optimize a decoder: caches grow in place, and logits are computed for the last token."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from smelt.compiler import optimize
from smelt.decoding.appended import append_in_place
from smelt.decoding.causality import model_vocabulary, refuse_fixed_length, refuse_later_tokens
from smelt.decoding.find_ports import ports_of
from smelt.decoding.last_row import keep_last_row
from smelt.decoding.network import OPEN, Network
from smelt.decoding.state import Array
from smelt.decoding.table_rows import rows_read_by
from smelt.decoding.weights import feed
from smelt.ir.cloning import clone_model
from smelt.ir.shapes.inference import ShapeInference


@dataclass(frozen=True)
class Optimized:
    """An optimized decoder, and what a run needs to know of it."""

    model: ir.Model
    network: Network


def optimized(
    model: ir.Model,
    given: Mapping[str, Array],
    carried: Collection[str] = (),
    *,
    is_first: bool = False,
    weights: Mapping[str, ir.TensorProtocol] | None = None,
) -> Optimized:
    """Return ``model`` optimized, with caches that grow in place, and logits of the last token.

    ``given`` are the inputs that the caller gives, ``carried`` those that another model computes
    in the first call. ``is_first``: the model computes the first call, and has no past to read.
    ``weights`` replace those of the model. Raises UsageError E801 if ``model`` is not a decoder,
    and E805 for weights that do not fit.
    """
    notes: tuple[str, ...] = ()
    if weights is not None:
        model = clone_model(model)
        notes = tuple(feed(model, weights))
    model = optimize(model)
    ShapeInference(model).infer_model()
    for value in list(model.graph.inputs) if is_first else ():
        if not value.uses():  # the pasts of a merged decoder
            model.graph.inputs.remove(value)
    ports = ports_of(model, given, carried)
    if not ports.caches and not is_first:
        refuse_fixed_length(model, ports)
        refuse_later_tokens(model, ports, given)
    words = model_vocabulary(model, ports)
    keep_last_row(model, ports.logits)
    appended = append_in_place(model, ports)
    network = Network(
        ports=ports,
        inputs={value.name or "": _dims(value.shape) for value in model.graph.inputs},
        outputs=tuple(value.name or "" for value in model.graph.outputs),
        vocabulary=words,
        appended=appended,
        positions=None if ports.positions is None else rows_read_by(model, ports.positions),
        notes=notes,
    )
    return Optimized(model, network)


def _dims(shape: ir.Shape | None) -> tuple[int | str, ...]:
    """Return sizes, and names of open sizes."""
    return tuple(dim if isinstance(dim, int) else dim.value or OPEN for dim in shape or ())
