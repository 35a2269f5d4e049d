"""A mark for models that approximate their source because the user requested it.

The mark lies in the metadata of the model, so files keep it. A comparison of such a model with its
source reports the error instead of failing, unless the user gives a tolerance.
"""

from __future__ import annotations

import onnx_ir as ir

META_KEY = "smelt.approximation"


def note_approximation(model: ir.Model, what: str) -> None:
    """Mark ``model`` as approximate; ``what`` names the cause in a few words, as in ``weights of
    int4``."""
    model.metadata_props[META_KEY] = what


def approximation_of(model: ir.Model | None) -> str:
    """Return the cause noted in ``model``; empty if the model is exact or None."""
    return "" if model is None else model.metadata_props.get(META_KEY, "")
