"""The context of onnx-shape-inference, which asks of a dim whether it is a number before all else.

``ir.SymbolicDim`` is a Protocol: to be told that an int is none costs ten times what is done with
the answer, and the library asks for each dim of each operand and result.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext


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


def _is_named(shape: ir.Shape) -> bool:
    for dim in shape.dims:  # noqa: SIM110 - all() over a generator takes three times as long
        if not isinstance(dim, int) and dim.value is None:
            return False
    return True
