"""Whole models over another algebra."""

from __future__ import annotations

import pathlib
from typing import Any

import onnx_ir as ir

from smelt.compiler import Source
from smelt.frontends import onnx as onnx_frontend
from smelt.operators.over_semiring import over_semiring as of_model
from smelt.operators.semiring import Semiring


def over_semiring(model: Source, semiring: str | Semiring) -> Any:
    """Replace plus and times in ``model`` by those of ``semiring``; see ``smelt.operators``.

    ``model`` is what ``smelt.optimize`` takes; a ModelProto or bytes give a ModelProto. Raises
    UsageError E657 for no semiring, and an ErrorList of Unsupported E659 for operators without a
    meaning over it.
    """
    if isinstance(model, ir.Model):
        return of_model(model, semiring)
    changed = of_model(onnx_frontend.load(model), semiring)
    return changed if isinstance(model, str | pathlib.Path) else onnx_frontend.to_proto(changed)
