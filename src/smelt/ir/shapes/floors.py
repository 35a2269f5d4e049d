"""Sizes with nested floor divisions, as stacks of strided convolutions produce them.

``floor(floor(N/5)/2)`` is ``floor(N/10)``: for integers c and q > 0, the floor of ``(floor(x) +
c)/q`` is that of ``(x + c)/q`` (Graham, Knuth, Patashnik: Concrete Mathematics, 3.11). Exporters
write the second form, and both must be recognized as one size.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.onnx_ir_private import expression_of
from smelt.ir.shapes.shape_registry import ShapeRule
from smelt.ir.symbolic_dims.dim_texts import is_plain


def flattened(library_rule: ShapeRule) -> ShapeRule:
    """Wrap a shape rule so that nested floor divisions in its sizes are merged."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape, then merge nested floors."""
        library_rule(context, node)
        for output in node.outputs:
            if output.shape is not None and any(_is_deep(dim) for dim in output.shape.dims):
                output.shape = ir.Shape([one_floor(dim) for dim in output.shape.dims])

    return infer


def _is_deep(dim: int | ir.SymbolicDim) -> bool:
    """True if the text of ``dim`` has more than one floor."""
    return isinstance(dim, ir.SymbolicDim) and (dim.value or "").count("floor(") > 1


def one_floor(dim: int | ir.SymbolicDim) -> int | ir.SymbolicDim:
    """Return ``dim`` with nested floor divisions merged."""
    if isinstance(dim, int) or not _is_deep(dim) or not is_plain(dim.value or ""):
        return dim
    import sympy

    expression = expression_of(dim)
    flat = expression.replace(sympy.floor, lambda inside: sympy.floor(_without_floor(inside)))
    return dim if flat == expression else ir.SymbolicDim(flat)


def _without_floor(inside: Any) -> Any:
    """Return ``(x + c)/q`` for ``(floor(x) + c)/q`` with integers c and q > 0, else ``inside``."""
    import sympy

    numerator, denominator = sympy.fraction(sympy.together(inside))
    terms = sympy.Add.make_args(sympy.expand(numerator))
    floors = [term for term in terms if isinstance(term, sympy.floor)]
    is_integer = all(term.is_Integer for term in terms if term not in floors)
    if len(floors) != 1 or not is_integer or not (denominator.is_Integer and denominator > 0):
        return inside
    return (sum(terms) - floors[0] + floors[0].args[0]) / denominator
