"""The context of onnx-shape-inference, which asks of a dim whether it is a number before all else.

``ir.SymbolicDim`` is a Protocol: to be told that an int is none costs ten times what is done with
the answer, and the library asks for each dim of each operand and result.

What is inferred again is merged with what was known: nothing is forgotten.
"""

from __future__ import annotations

import json

import onnx_ir as ir
from onnx_shape_inference import SYM_DATA_KEY, ShapeInferenceContext

from smelt.ir.dim_texts import symbolic_dim
from smelt.ir.known_dims import merged
from smelt.ir.same_shape import Dim


class ShapeContext(ShapeInferenceContext):  # type: ignore[misc]  # the library has no types
    """The library's context, with its two walks over dims at a tenth of their cost."""

    def name_anonymous_dims_in_shape(self, shape: ir.Shape) -> ir.Shape:
        """``shape`` itself if every dim has a size or a name, else one in which they have."""
        if _is_named(shape):
            return shape
        named: ir.Shape = super().name_anonymous_dims_in_shape(shape)
        return named

    @staticmethod
    def _check_no_anonymous_dims(shape: ir.Shape) -> None:
        if not _is_named(shape):
            ShapeInferenceContext._check_no_anonymous_dims(shape)

    def _refine_shape(self, value: ir.Value, existing: ir.Shape, inferred: ir.Shape) -> bool:
        dims = merged(existing.dims, inferred.dims)
        if dims is not None:
            value.shape = ir.Shape(dims)
        return dims is not None

    def set_symbolic_value(self, value: ir.Value, data: list[Dim]) -> None:
        """Note what ``value`` holds, beside what is noted already."""
        known = self._symbolic_values.get(value) if self.policy == "refine" else None
        if known is not None and len(known) == len(data):
            data = merged(known, data) or known
        super().set_symbolic_value(value, data)

    def get_symbolic_value(self, value: ir.Value) -> list[Dim] | None:
        """What ``value`` holds; what another context found is noted in the metadata."""
        known: list[Dim] | None = super().get_symbolic_value(value)
        if known is None and SYM_DATA_KEY in value.metadata_props:
            items = json.loads(value.metadata_props[SYM_DATA_KEY])
            known = [item if isinstance(item, int) else symbolic_dim(item) for item in items]
            self._symbolic_values[value] = known
        return known


def _is_named(shape: ir.Shape) -> bool:
    for dim in shape.dims:  # noqa: SIM110 - all() over a generator takes three times as long
        if not isinstance(dim, int) and dim.value is None:
            return False
    return True
