"""Recognize the arithmetic of normalizations, in every spelling that exporters leave.

A normalization divides ``x`` or ``x - mean(x)`` by ``sqrt(mean(square) + epsilon)``. Frameworks
differ in how they write each part: a mean as ReduceMean or as a sum over n, kept or squeezed and
reshaped; a variance as the mean of squared deviations or as ``mean(x*x) - mean(x)**2``; the
quotient as Div, or Mul by a Reciprocal, a Pow or a Div of one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from smelt.ir import opset, scope
from smelt.ir.constants import Constants
from smelt.ir.floats import is_close
from smelt.ir.shapes import same_dim

MOVES = ("Reshape", "Unsqueeze", "Squeeze", "Expand")


@dataclass
class NormForm:
    """A recognized normalization of ``x`` over ``axes``.

    ``scale`` is a further factor of the product, if there is one. ``nodes`` are all nodes that
    take part, so that the caller can ask whether others read them.
    """

    x: ir.Value
    axes: tuple[int, ...]
    epsilon: float
    centred: bool
    scale: ir.Value | None = None
    nodes: list[ir.Node] = field(default_factory=list)


class NormReader:
    """Reads one product or quotient; every method notes the nodes that it walks through."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.nodes: list[ir.Node] = []

    def read(self, root: ir.Node) -> NormForm | None:
        """The normalization whose last operation is ``root``, a Mul or a Div."""
        self.nodes = [root]
        numerator, denominators, scale = self._quotient(root)
        if numerator is None or denominators is None:
            return None
        found = self._deviation(denominators)
        if found is None:
            return None
        variance, epsilon = found
        form = self._normalized(numerator, variance)
        if form is None:
            return None
        form.epsilon, form.scale, form.nodes = epsilon, scale, self.nodes
        return form

    # -- the quotient ------------------------------------------------------------------------

    def _quotient(self, root: ir.Node) -> tuple[ir.Value | None, ir.Value | None, ir.Value | None]:
        """Numerator, what it is divided by, and a further factor."""
        if root.op_type == "Div":
            return root.inputs[0], root.inputs[1], None
        a, b = root.inputs
        for first, second in ((a, b), (b, a)):
            inverse = self._inverse(second)
            if inverse is not None:
                return first, inverse, None
        for first, second in ((a, b), (b, a)):
            product = self._node(second, "Mul")
            if product is None:
                continue
            for factor, other in (product.inputs, tuple(reversed(product.inputs))):
                inverse = self._inverse(factor)
                if inverse is not None:
                    self.nodes.append(product)
                    return first, inverse, other
        return None, None, None

    def _inverse(self, value: ir.Value | None) -> ir.Value | None:
        """``d`` where ``value`` is 1/d; Pow with exponent -1/2 stands for 1/sqrt."""
        node = self._node(value, "Reciprocal", "Div", "Pow", *MOVES)
        if node is None:
            return None
        if node.op_type in MOVES:
            inner = self._inverse(node.inputs[0])
            if inner is not None:
                self.nodes.append(node)
            return inner
        divides = node.op_type == "Reciprocal"
        if node.op_type == "Div":
            divides = self._is_number(node.inputs[0], 1.0)
        if node.op_type == "Pow" and self._is_number(node.inputs[1], -0.5):
            return value
        if not divides:
            return None
        self.nodes.append(node)
        return node.inputs[-1]

    def _deviation(self, value: ir.Value) -> tuple[ir.Value, float] | None:
        """The variance and epsilon in ``sqrt(variance + epsilon)``, or in its Pow."""
        value = self._unmoved(value)
        node = self._node(value, "Sqrt", "Pow")
        if node is None:
            return None
        if node.op_type == "Pow" and not any(
            self._is_number(node.inputs[1], power) for power in (0.5, -0.5)
        ):
            return None
        self.nodes.append(node)
        total = self._node(node.inputs[0], "Add")
        if total is None:
            return None
        for variance, epsilon in (total.inputs, tuple(reversed(total.inputs))):
            number = self.constants.scalar(epsilon)
            if isinstance(number, float) and variance is not None:
                self.nodes.append(total)
                return variance, number
        return None

    # -- mean and variance -------------------------------------------------------------------

    def _normalized(self, numerator: ir.Value, variance: ir.Value) -> NormForm | None:
        """Match the variance with what it is the variance of."""
        variance = self._unclipped(self._unmoved(variance))
        centred = self._node(numerator, "Sub")
        if centred is not None and centred.inputs[0] is not None:
            x = centred.inputs[0]
            axes = self._mean_of(centred.inputs[1], x, x)
            if axes is not None and self._is_variance(variance, x, numerator, axes):
                self.nodes.append(centred)
                return NormForm(x, axes, 0.0, True)
        axes = self._mean_of_square(variance, numerator, numerator)
        return None if axes is None else NormForm(numerator, axes, 0.0, False)

    def _is_variance(
        self, variance: ir.Value, x: ir.Value, centred: ir.Value, axes: tuple[int, ...]
    ) -> bool:
        if self._mean_of_square(variance, centred, x) == axes:
            return True
        difference = self._node(variance, "Sub")
        if difference is None:
            return False
        squares, square = difference.inputs
        if squares is None or square is None or self._mean_of_square(squares, x, x) != axes:
            return False
        mean = self._squared(square)
        if mean is None or self._mean_of(mean, x, None) != axes:
            return False
        self.nodes.append(difference)
        return True

    def _mean_of_square(
        self, value: ir.Value | None, of: ir.Value, like: ir.Value
    ) -> tuple[int, ...] | None:
        """The axes, if ``value`` is the mean of ``of`` squared."""
        for squared, axes in self._means(value):
            if self._is_same(self._squared(squared), of):
                return axes
        return None

    def _is_same(self, value: ir.Value | None, other: ir.Value) -> bool:
        """True for one value, or for one difference that is computed twice."""
        if value is other:
            return True
        first, second = self._node(value, "Sub"), self._node(other, "Sub")
        if first is None or second is None or first.inputs != second.inputs:
            return False
        self.nodes.append(first)
        return True

    def _mean_of(
        self, value: ir.Value | None, x: ir.Value, broadcast: ir.Value | None
    ) -> tuple[int, ...] | None:
        """The axes, if ``value`` is the mean of ``x`` and stands in place against ``broadcast``."""
        if value is None:
            return None
        inner = self._unmoved(value)
        for source, axes in self._means(inner):
            fits = broadcast is None or _stands_against(value, broadcast, axes)
            if source is x and fits:
                return axes
        return None

    def _means(self, value: ir.Value | None) -> list[tuple[ir.Value, tuple[int, ...]]]:
        """What ``value`` is the mean of, and over which axes: none or one."""
        value = self._unmoved(value) if value is not None else None
        node = self._node(value, "ReduceMean", "Div", "Mul")
        if node is None:
            return []
        if node.op_type == "ReduceMean":
            total, factor = node, 1.0
        else:
            found = self._sum_and_factor(node)
            if found is None:
                return []
            total, factor = found
        source, axes = total.inputs[0], opset.reduction_axes(total, self.constants)
        if source is None or not axes or source.shape is None:
            return []
        sizes = [source.shape[axis] for axis in axes]
        if total is not node:
            count = 1
            for size in sizes:
                if not isinstance(size, int):
                    return []
                count *= size
            if source.dtype is None or not _is_one_over(factor, count, source.dtype):
                return []
            self.nodes.append(total)
        self.nodes.append(node)
        return [(source, axes)]

    def _sum_and_factor(self, node: ir.Node) -> tuple[ir.Node, float] | None:
        """A ReduceSum and the number that it is multiplied with."""
        pairs = [(node.inputs[0], node.inputs[1])]
        if node.op_type == "Mul":
            pairs.append((node.inputs[1], node.inputs[0]))
        for summed, constant in pairs:
            total, number = self._node(summed, "ReduceSum"), self.constants.scalar(constant)
            if total is not None and isinstance(number, float) and number:
                return total, (1 / number if node.op_type == "Div" else number)
        return None

    def _squared(self, value: ir.Value | None) -> ir.Value | None:
        """``v`` where ``value`` is v*v, v**2 or abs(v)**2."""
        node = self._node(value, "Mul", "Pow")
        if node is None:
            return None
        same = node.op_type == "Mul" and node.inputs[0] is node.inputs[1]
        if not same and not (node.op_type == "Pow" and self._is_number(node.inputs[1], 2.0)):
            return None
        self.nodes.append(node)
        magnitude = self._node(node.inputs[0], "Abs")
        if magnitude is not None:
            self.nodes.append(magnitude)
            return magnitude.inputs[0]
        return node.inputs[0]

    # -- small steps -------------------------------------------------------------------------

    def _unmoved(self, value: ir.Value) -> ir.Value:
        """``value`` before the operators that only insert or drop dims of size 1, or repeat."""
        node = self._node(value, *MOVES)
        while node is not None and node.inputs[0] is not None:
            self.nodes.append(node)
            value = node.inputs[0]
            node = self._node(value, *MOVES)
        return value

    def _unclipped(self, value: ir.Value) -> ir.Value:
        """``value`` before a Max with 0, which guards a variance against rounding."""
        node = self._node(value, "Max", "Relu")
        if node is None:
            return value
        others = [v for v in node.inputs if v is not None and not self._is_number(v, 0.0)]
        if len(others) != 1:
            return value
        self.nodes.append(node)
        return self._unmoved(others[0])

    def _node(self, value: ir.Value | None, *op_types: str) -> ir.Node | None:
        node = value.producer() if value is not None else None
        if node is None or node.domain or node.op_type not in op_types:
            return None
        return node if node.graph is self.nodes[0].graph else None

    def _is_number(self, value: ir.Value | None, number: float) -> bool:
        return self.constants.is_number(value, number)


def _is_one_over(factor: float, count: int, dtype: ir.DataType) -> bool:
    return count > 0 and is_close(dtype.numpy().type(factor), 1 / count, 1)


def _stands_against(value: ir.Value, x: ir.Value, axes: tuple[int, ...]) -> bool:
    """True if ``value`` has the shape of ``x`` with the reduced dims 1, or repeated."""
    if value.shape is None or x.shape is None or len(value.shape) != len(x.shape):
        return False
    pairs = enumerate(zip(value.shape.dims, x.shape.dims, strict=True))
    return all(same_dim(a, b) or (i in axes and a == 1) for i, (a, b) in pairs)


def is_closed(nodes: list[ir.Node]) -> bool:
    """True if only the first of ``nodes``, the root, has results that others read."""
    members = set(nodes)
    for node in members - {nodes[0]}:
        for value in node.outputs:
            if value.is_graph_output():
                return False
            if any(reader not in members for reader in scope.consumers(value)):
                return False
    return True
