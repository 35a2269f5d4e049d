"""What small vectors of integers hold, in terms of the symbolic dims of the inputs of a model."""

from __future__ import annotations

from functools import cached_property

import onnx_ir as ir

from smelt.ir.dims import names_of, symbols_of
from smelt.ir.shapes import ShapeInference
from smelt.program.instruction import Dim


class Elements:
    """Answers by the inference of shapes, which runs when something is asked for first."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model

    def __call__(self, value: ir.Value) -> tuple[Dim, ...] | None:
        """The elements of ``value``, each told by the sizes of inputs; None if one is not."""
        found = self._shapes.elements(value)
        if found is None or any(not symbols_of(dim) <= self._told for dim in found):
            return None
        known = (isinstance(dim, int) or dim.value is not None for dim in found)
        return tuple(found) if all(known) else None

    @cached_property
    def _shapes(self) -> ShapeInference:
        shapes = ShapeInference(self._model)
        shapes.infer_model()
        return shapes

    @cached_property
    def _told(self) -> frozenset[str]:
        """The dims that the sizes of the inputs tell."""
        shapes = (value.shape for value in self._model.graph.inputs if value.shape is not None)
        return frozenset(name for shape in shapes for dim in shape.dims for name in names_of(dim))
