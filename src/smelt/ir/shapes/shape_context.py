"""The context of onnx-shape-inference with fast tests for dims.

``ir.SymbolicDim`` is a Protocol: an isinstance test of an int costs ten times the rest of the work,
and the library tests each dim of each operand and result. Newly inferred facts are merged with
known facts.
"""

from __future__ import annotations

import json

import onnx_ir as ir
from onnx_shape_inference import SYM_DATA_KEY, ShapeInferenceContext

from smelt.ir.same_shape import Dim
from smelt.ir.shapes.known_dims import merged_statements
from smelt.ir.symbolic_dims.dim_texts import symbolic_dim


class ShapeContext(ShapeInferenceContext):  # type: ignore[misc]  # the library has no types
    """The state of one inference, which shape rules read and write: elements, and invented names.

    It is the library's context, with two walks over dims at a tenth of their cost.
    """

    def name_anonymous_dims_in_shape(self, shape: ir.Shape) -> ir.Shape:
        """Return ``shape``, with invented names for dims that are neither sized nor named."""
        if _is_named(shape):
            return shape
        named: ir.Shape = super().name_anonymous_dims_in_shape(shape)
        return named

    @staticmethod
    def _check_no_anonymous_dims(shape: ir.Shape) -> None:
        """Raise the library's error if a dim is neither a number nor named; most shapes pass a
        fast test.
        """
        if not _is_named(shape):
            ShapeInferenceContext._check_no_anonymous_dims(shape)

    def _refine_shape(self, value: ir.Value, existing: ir.Shape, inferred: ir.Shape) -> bool:
        """Merge ``inferred`` into the shape of ``value``; return True if that adds a fact."""
        dims = merged_statements(existing.dims, inferred.dims)
        if dims is not None:
            value.shape = ir.Shape(dims)
        return dims is not None

    def set_symbolic_value(self, value: ir.Value, data: list[Dim]) -> None:
        """Note the elements of ``value``, merged with those already noted."""
        known = self._symbolic_values.get(value) if self.policy == "refine" else None
        if known is not None and len(known) == len(data):
            data = merged_statements(known, data) or known
        super().set_symbolic_value(value, data)

    def forget_symbolic_values(self) -> None:
        """Erase the noted elements of all values."""
        self._symbolic_values.clear()

    def get_symbolic_value(self, value: ir.Value) -> list[Dim] | None:
        """Return the known elements of ``value``, also those that another context noted in the
        metadata; None if it has none.
        """
        known: list[Dim] | None = super().get_symbolic_value(value)
        if known is None and SYM_DATA_KEY in value.metadata_props:
            items = json.loads(value.metadata_props[SYM_DATA_KEY])
            known = [item if isinstance(item, int) else symbolic_dim(item) for item in items]
            self._symbolic_values[value] = known
        return known


def forget_symbolic_value(context: ShapeInferenceContext, value: ir.Value) -> None:
    """Erase the elements that ``context`` has noted for ``value``."""
    context._symbolic_values.pop(value, None)


def _is_named(shape: ir.Shape) -> bool:
    """True if each dim is a number or has a name."""
    for dim in shape.dims:  # noqa: SIM110 - all() over a generator takes three times as long
        if not isinstance(dim, int) and dim.value is None:
            return False
    return True
