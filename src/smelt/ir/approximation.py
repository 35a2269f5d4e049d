"""Models that compute what their source does only roughly, as someone asked: a mark that says so.

It is in the metadata of the model, so files keep it. Who compares such a model with its source
reports how far apart they are, where nobody says how far they may be.
"""

from __future__ import annotations

import onnx_ir as ir

META_KEY = "smelt.approximation"


def note_approximation(model: ir.Model, what: str) -> None:
    """Mark ``model``; ``what`` says in a few words what is rough, as in ``weights of int4``."""
    model.metadata_props[META_KEY] = what


def approximation_of(model: ir.Model | None) -> str:
    """What is rough in ``model``; empty if nothing is, or nothing is known."""
    return "" if model is None else model.metadata_props.get(META_KEY, "")
