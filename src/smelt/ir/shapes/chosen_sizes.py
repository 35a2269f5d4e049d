"""Shape rules that track sizes through comparison, Where, Div, Mod, Min, Max and Clip.

A model computes shapes by nodes on small integer vectors; inference tracks the elements of such
vectors as numbers or expressions of dims. PyTorch's exporter writes ``expand(b, -1, s)`` as
``Where(Equal(sizes, -1), 1, sizes)``: no size is -1, so the result is known. The library,
onnx-shape-inference, follows a Where only if both sides are equal, and divides numbers only.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.node_inputs import first_inputs
from smelt.ir.same_shape import Dim
from smelt.ir.shapes.shape_registry import ShapeRule
from smelt.ir.shapes.tracked_elements import LARGEST
from smelt.ir.symbolic_dims.bounded_sizes import inside_bound
from smelt.ir.symbolic_dims.dim_texts import is_arithmetic
from smelt.ir.symbolic_dims.invented_dims import is_invented
from smelt.ir.symbolic_dims.redundant_bounds import without_redundant_bounds


def where_rule(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the rule of Where so that it also tracks the elements of ``Where(a == b, x, y)``.

    ``a``, ``b``, ``x`` and ``y`` are tracked sizes. An element whose comparison is not decided gets
    a new symbol.
    """

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape, then track the selected sizes."""
        library_rule(context, node)
        elements = _chosen_elements(context, node)
        if elements is not None:
            context.set_symbolic_value(node.outputs[0], elements)

    return infer


def _chosen_elements(context: ShapeInferenceContext, node: ir.Node) -> list[Dim] | None:
    """Return the elements of a Where whose condition compares sizes, or None if none is decided."""
    condition, x, y = node.inputs[:3]
    if condition is None or x is None or y is None:
        return None
    equal_or_none = _equalities(context, condition)
    if equal_or_none is None or not any(is_equal is not None for is_equal in equal_or_none):
        return None
    sides = [context.get_symbolic_value(value) for value in (x, y)]
    count = max(len(equal_or_none), *(len(side or ()) for side in sides))
    first, second = (_repeated_to(side, count) for side in sides)
    if first is None or second is None or len(equal_or_none) not in (1, count):
        return None
    if len(equal_or_none) < count:
        equal_or_none = equal_or_none * count
    choices = zip(equal_or_none, first, second, strict=True)
    return [_pick(context, is_equal, left, right) for is_equal, left, right in choices]


def _pick(context: ShapeInferenceContext, test: bool | None, left: Dim, right: Dim) -> Dim:
    """Return ``left`` if ``test`` is true, ``right`` if it is false.

    If ``test`` is None, undecided, return the value that both have in common, or a new symbol.
    """
    if test is None:
        return left if left == right else context.new_symbolic_dim()
    return left if test else right


def _repeated_to(elements: list[Dim] | None, count: int) -> list[Dim] | None:
    """Return ``elements`` broadcast to ``count``; None if they are unknown or of another length."""
    if elements is None or len(elements) not in (1, count):
        return None
    return elements if len(elements) == count else elements * count


def _equalities(context: ShapeInferenceContext, condition: ir.Value) -> list[bool | None] | None:
    """Return, per element of an Equal of two integer vectors, True, False or None (undecided)."""
    node = condition.producer()
    if node is None or node.domain or node.op_type != "Equal":
        return None
    sides = [context.get_symbolic_value(v) if v is not None else None for v in node.inputs]
    count = max((len(side) for side in sides if side is not None), default=0)
    first, second = (_repeated_to(side, count) for side in sides)
    if first is None or second is None:
        return None
    return [_are_equal(left, right) for left, right in zip(first, second, strict=True)]


def _are_equal(left: Dim, right: Dim) -> bool | None:
    """True if two elements are equal, False if they differ, None if neither is proved."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if isinstance(left, int):
        left, right = right, left
    if isinstance(right, int) and right < 0 and _is_size(left):
        return False
    return None


def _is_size(element: Dim) -> bool:
    """True if ``element`` is surely >= 0: a number >= 0, a symbol of the model, or a sum of these.

    An invented symbol may stand for an element of any sign, and a difference may be negative.
    """
    if isinstance(element, int):
        return element >= 0
    name = element.value
    return name is not None and "-" not in name and not is_invented(name)


def division_rule(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the rule of Div so that it divides non-negative sizes by numbers and sizes, rounding
    down."""
    return _binary_rule(library_rule, _quotient)


def modulo_rule(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the rule of Mod so that it computes with sizes and numbers.

    Models that roll by one row compute ``Mod(-1, N)``, those that pad to a multiple of 32
    ``Mod(-N, 32)``.
    """
    integer_rule = _binary_rule(library_rule, _remainder)

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Call the library's rule for C's fmod, and else compute remainders."""
        rule = library_rule if node.attributes.get_int("fmod", 0) else integer_rule
        rule(context, node)

    return infer


def _binary_rule(library_rule: ShapeRule, compute: Callable[[Dim, Dim], Dim | None]) -> ShapeRule:
    """Wrap the rule of a binary integer operator; ``compute`` returns one element or None."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape, then compute each element from the two operands' elements."""
        library_rule(context, node)
        integers = node.outputs[0].dtype in (ir.DataType.INT64, ir.DataType.INT32)
        if not integers or len(node.inputs) != 2:
            return
        sides = [context.get_symbolic_value(v) if v is not None else None for v in node.inputs]
        count = max((len(side) for side in sides if side is not None), default=0)
        left, right = (_repeated_to(side, count) for side in sides)
        if left is not None and right is not None:
            results = map(compute, left, right)
            elements = [context.new_symbolic_dim() if size is None else size for size in results]
            context.set_symbolic_value(node.outputs[0], elements)

    return infer


def _remainder(dividend: Dim, divisor: Dim) -> Dim | None:
    """Return the remainder with the sign of the divisor, as ONNX and Python define it, or None."""
    if isinstance(divisor, int) and isinstance(dividend, int):
        return dividend % divisor if divisor else None
    if divisor == 0 or not (_is_known(dividend) and _is_known(divisor) and _is_size(divisor)):
        return None
    return ir.SymbolicDim(f"Mod({dividend}, {divisor})")


def _is_known(dim: Dim) -> bool:
    """True for an integer, and for an expression of named sizes that is valid arithmetic."""
    return isinstance(dim, int) or (is_arithmetic(dim) and not is_invented(str(dim)))


def maximum_rule(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the rule of Max for two vectors of sizes; JAX clamps the starts of slices with it."""
    return _binary_rule(library_rule, lambda a, b: _max_or_min("Max", max, a, b))


def minimum_rule(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the rule of Min for two vectors of sizes."""
    return _binary_rule(library_rule, lambda a, b: _max_or_min("Min", min, a, b))


def clip_rule(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the rule of Clip so that it also bounds tracked sizes: ``Min(high, Max(low, size))``."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape, then bound each tracked size."""
        library_rule(context, node)
        sizes, lower_bound, upper_bound = first_inputs(node, 3)
        elements = context.get_symbolic_value(sizes) if sizes is not None else None
        if elements is None or node.outputs[0].dtype not in (ir.DataType.INT64, ir.DataType.INT32):
            return
        for name, compute, value in (("Max", max, lower_bound), ("Min", min, upper_bound)):
            if value is not None:
                (bound,) = context.get_symbolic_value(value) or [context.new_symbolic_dim()]
                bounded = [_max_or_min(name, compute, bound, size) for size in elements]
                elements = [
                    context.new_symbolic_dim() if size is None else size for size in bounded
                ]
        context.set_symbolic_value(node.outputs[0], elements)

    return infer


def descending_range_rule(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the rule of Range with step -1, as in ``Range(N - 1, -1, -1)``.

    The library counts symbolic ranges upwards only.
    """

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape; a range with step -1 has as many elements as start minus limit."""
        library_rule(context, node)
        operands = [context.get_symbolic_value(v) if v is not None else None for v in node.inputs]
        numbers = [
            elements[0] for elements in operands if elements is not None and len(elements) == 1
        ]
        if len(numbers) < 3 or numbers[2] != -1:
            return
        size = numbers[0] - numbers[1]
        if isinstance(size, ir.SymbolicDim) and _is_known(size) and _is_size(size):
            context.set_shape(node.outputs[0], ir.Shape([size]))

    return infer


MOST_BOUNDS = 4
"""Maximum number of Max and Min calls in one element; SymPy's time grows fast with them."""


def _max_or_min(name: str, compute: Callable[[int, int], int], a: Dim, b: Dim) -> Dim | None:
    """Return Max or Min (``name``) of two sizes; None if an operand is not known well enough.

    ``compute`` is Python's max or min, for numbers. Where one operand surely wins, it is returned
    itself; so is one that SymPy would only make longer.
    """
    if isinstance(a, int) and isinstance(b, int):
        return compute(a, b)
    operands = (b, a) if b == 0 else (a, b)
    texts = [str(operand) for operand in operands]
    if not (_is_known(a) and _is_known(b)) and not (name == "Min" and _is_capped(a, b)):
        return None
    if texts[0] == texts[1]:
        return a
    for bound, size in ((a, b), (b, a)):
        if name == "Max" and bound == 0 and inside_bound(str(size)):
            return size
        if name == "Max" and bound == 0 and not isinstance(size, int) and _is_size(0 - size):
            return 0
    if sum(text.count("Max(") + text.count("Min(") for text in texts) >= MOST_BOUNDS:
        return None
    return without_redundant_bounds(ir.SymbolicDim(f"{name}({', '.join(texts)})"))


def _is_capped(a: Dim, b: Dim) -> bool:
    """True if one of ``a`` and ``b`` is a symbol and the other a number > 1.

    Their Min, such as ``Min(_d0, 100)`` of a TopK, is kept even for an invented symbol: SymPy does
    not simplify it, so the symbol's sign does not matter.
    """
    number, other = (a, b) if isinstance(a, int) else (b, a)
    is_symbol = isinstance(other, ir.SymbolicDim) and (other.value or "").isidentifier()
    return is_symbol and isinstance(number, int) and number > 1


def _quotient(dividend: Dim, divisor: Dim) -> Dim | None:
    """Return ``dividend // divisor`` rounded toward zero, or None if it is not known."""
    if isinstance(divisor, int) and divisor == 0:
        return None
    if isinstance(dividend, int) and isinstance(divisor, int):
        quotient = abs(dividend) // abs(divisor)
        quotient = -quotient if (dividend < 0) != (divisor < 0) else quotient
        return quotient if quotient <= LARGEST else None  # -2**63 over -1 overflows
    if isinstance(dividend, int):
        return None
    if not isinstance(divisor, int):
        name = divisor.value or ""
        if not (name.isidentifier() and _is_size(divisor) and _is_size(dividend)):
            return None
        return _number_if_known(dividend // divisor)
    return dividend // divisor if divisor > 0 and _is_size(dividend) else None


def _number_if_known(size: Dim) -> Dim:
    """Return ``size`` as an int where its text is a number: ``N // N`` is a symbol called ``1``."""
    known = isinstance(size, ir.SymbolicDim) and (size.value or "").isdecimal()
    return int(str(size)) if known else size
