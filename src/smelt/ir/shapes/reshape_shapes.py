"""The shape of a Reshape by counting the factors of its dims, where that suffices.

The library, onnx-shape-inference, multiplies and divides dims as SymPy expressions, and prints each
step: half a millisecond for a symbolic batch. Nearly always, the size for a -1 is a number, a dim
of the operand, or a product of distinct names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.onnx_ir_private import expression_of
from smelt.ir.same_shape import Dim
from smelt.ir.shapes.shape_registry import ShapeRule
from smelt.ir.symbolic_dims.clamped_dims import bound_of


def counted_first(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the rule of Reshape: count factors, and call the library only where that fails."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape by counting factors, or else by the library."""
        dims = _result(context, node)
        if dims is None:
            library_rule(context, node)
            _divide_exactly(node)
            _drop_clamp(node)
            return
        dtype = node.inputs[0].dtype if node.inputs[0] is not None else None
        context.set_shape_and_dtype(node.outputs[0], ir.Shape(dims), dtype)

    return infer


def _divide_exactly(node: ir.Node) -> None:
    """Remove the floor from dims of the result that are polynomials of the operand's dims.

    ``floor((N**2 + N)/(N + 1))`` becomes ``N``. A Reshape keeps every element, so the quotient is
    exact.
    """
    data, result = node.inputs[0], node.outputs[0]
    if data is None or data.shape is None or result.shape is None:
        return
    dims = list(result.shape.dims)
    for index, dim in enumerate(dims):
        if not isinstance(dim, int) and "floor" in (dim.value or ""):
            dims[index] = exact_quotient(data.shape.dims, dims[:index] + dims[index + 1 :]) or dim
    if dims != list(result.shape.dims):
        result.shape = ir.Shape(dims)


def _drop_clamp(node: ir.Node) -> None:
    """Replace Min(64, N) in the result by N if both shapes agree otherwise.

    Positions that are clamped to a table of 64 rows have such a dim. A run with N > 64 fails at
    this Reshape, because the number of elements must match; so both dims are equal in every run
    that succeeds. Sizes of inputs are assumed to be positive.
    """
    data, result = node.inputs[0], node.outputs[0]
    if data is None or data.shape is None or result.shape is None:
        return
    sides = [[*shape.dims] for shape in (data.shape, result.shape)]
    if prod(dim for dim in sides[0] if isinstance(dim, int)) != prod(
        dim for dim in sides[1] if isinstance(dim, int)
    ):
        return
    symbols_before, symbols_after = (
        [dim for dim in side if not isinstance(dim, int)] for side in sides
    )
    whole_dims = [dim for dim in symbols_before if dim not in symbols_after]
    clamped_dims = [dim for dim in symbols_after if dim not in symbols_before]
    if (
        len(symbols_before) == len(symbols_after)
        and len(whole_dims) == len(clamped_dims) == 1
        and bound_of(*clamped_dims, *whole_dims)
    ):
        axis = sides[1].index(clamped_dims[0])
        result.shape = ir.Shape([*sides[1][:axis], whole_dims[0], *sides[1][axis + 1 :]])


def exact_quotient(dims: Sequence[Dim], others: Sequence[Dim]) -> Dim | None:
    """Return the product of ``dims`` over that of ``others`` if it is an integer polynomial, else
    None."""
    import sympy

    factors = [dim if isinstance(dim, int) else expression_of(dim) for dim in (*dims, *others)]
    if None in factors:
        return None
    numerator = sympy.Mul(*factors[: len(dims)])
    denominator = sympy.Mul(*factors[len(dims) :])
    if denominator == 0:
        return None
    size = sympy.cancel(numerator / denominator)
    if sympy.fraction(sympy.together(size))[1] != 1 or size.has(sympy.floor):
        return None
    return int(size) if size.is_Integer else ir.SymbolicDim(size)


def _result(context: ShapeInferenceContext, node: ir.Node) -> list[Dim] | None:
    """Return the result dims of a Reshape to a constant shape, found by counting; else None."""
    if len(node.inputs) != 2 or node.attributes:
        return None
    data, target = node.inputs
    if data is None or target is None or data.shape is None or target.const_value is None:
        return None
    if context.get_symbolic_value(data) is not None:
        return None  # the library also passes on the elements
    if any(not isinstance(dim, int) and dim.value is None for dim in data.shape.dims):
        return None
    return reshaped(data.shape.dims, target.const_value.numpy().reshape(-1).tolist())


def reshaped(dims: Sequence[Dim], target: Sequence[int]) -> list[Dim] | None:
    """Return ``dims`` after a Reshape to ``target``; None if counting does not suffice.

    A 0 keeps a dim, and one -1 stands for the remaining factors.
    """
    if any(number < -1 or (number == 0 and i >= len(dims)) for i, number in enumerate(target)):
        return None
    result = [number or dims[index] for index, number in enumerate(target)]
    if -1 not in target:
        return result
    hole = target.index(-1)
    size = quotient(dims, result[:hole] + result[hole + 1 :])
    if size is None:
        return None
    result[hole] = size
    return result


def quotient(dims: Sequence[Dim], others: Sequence[Dim]) -> Dim | None:
    """Return the product of ``dims`` over that of ``others``; None if it is no plain product."""
    name_counts = Counter(dim.value for dim in dims if not isinstance(dim, int))
    name_counts.subtract(dim.value for dim in others if not isinstance(dim, int))
    numerator = prod(dim for dim in dims if isinstance(dim, int))
    denominator = prod(dim for dim in others if isinstance(dim, int))
    if min(numerator, denominator, *(dim for dim in others if isinstance(dim, int))) < 1:
        return None
    if numerator % denominator or any(count not in (0, 1) for count in name_counts.values()):
        return None
    names = sorted(str(name) for name, count in name_counts.items() if count)
    factor = numerator // denominator
    if not names:
        return factor
    if not all(name.isidentifier() for name in names):
        return None
    return ir.SymbolicDim("*".join(names if factor == 1 else [str(factor), *names]))
