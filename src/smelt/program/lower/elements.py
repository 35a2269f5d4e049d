"""Elements of small integer vectors, such as shapes that the model computes, as expressions of
sizes that a run knows.
"""

from __future__ import annotations

import re
from functools import cached_property

import onnx_ir as ir

from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.dims import names_of, symbols_of
from smelt.ir.symbolic_dims.invented_dims import every_value, is_invented
from smelt.program.instruction import Dim

DATA_DEPENDENT = ("NonZero", "Compress", "Unique", "NonMaxSuppression")
"""Operators whose result size depends on the data."""

_NAME = re.compile(r"\b_d\d+\b")


class Elements:
    """Call it with a value: its elements as numbers or expressions of known sizes.

    Shape inference finds them; it runs at the first call. It invents names for unnamed dims, but
    answers use the names that the values already have.
    """

    def __init__(self, model: ir.Model) -> None:
        """Begin without names; ``_names`` maps the names that inference invents to those of the
        model.
        """
        self._model = model
        self._names: dict[str, str] = {}

    def __call__(self, value: ir.Value) -> tuple[Dim, ...] | None:
        """Return the elements of ``value``; None if they do not follow from sizes of inputs and
        sizes of data-dependent results.
        """
        elements = self._shapes.elements(value)
        if elements is None:
            return None
        dims = tuple(map(self._renamed, elements))
        if any(not symbols_of(dim) <= self._known_names for dim in dims):
            return None
        are_named = (isinstance(dim, int) or dim.value is not None for dim in dims)
        return dims if all(are_named) else None

    def _renamed(self, dim: Dim) -> Dim:
        """Return ``dim`` with the names that the values had before inference."""
        if isinstance(dim, int) or dim.value is None or not is_invented(dim.value):
            return dim
        return ir.SymbolicDim(_NAME.sub(lambda m: self._names.get(m[0], m[0]), dim.value))

    @cached_property
    def _shapes(self) -> ShapeInference:
        """Inference of the model's shapes.

        It replaces the shapes of values; the old ones are put back. ``_names`` gets the old name of
        each dim to which inference gave a new one.
        """
        before = {value: value.shape for value in every_value(self._model)}
        shapes = ShapeInference(self._model)
        shapes.infer_model()
        for value, shape in before.items():
            if shape is None or value.shape is None or len(shape) != len(value.shape):
                continue
            for new, old in zip(value.shape.dims, shape.dims, strict=True):
                if (
                    isinstance(new, ir.SymbolicDim)
                    and isinstance(old, ir.SymbolicDim)
                    and old.value
                ):
                    self._names.setdefault(str(new), old.value)
            value.shape = shape
        return shapes

    @cached_property
    def _known_names(self) -> frozenset[str]:
        """The names of dims of model inputs and of results of data-dependent size."""
        graph = self._model.graph
        results = (
            value for node in graph if node.op_type in DATA_DEPENDENT for value in node.outputs
        )
        shapes = (value.shape for value in (*graph.inputs, *results) if value.shape is not None)
        return frozenset(name for shape in shapes for dim in shape.dims for name in names_of(dim))
