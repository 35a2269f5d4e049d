"""Recognize means, variances and standard deviations in all forms that exporters write.

A mean is a ReduceMean, or a sum over its count. A variance is the mean of squared deviations, or
``mean(x * x) - mean(x) ** 2``, with or without a guard against negative rounding errors. Dims of
size 1 may be inserted or dropped between the steps.

Why this is sound: these steps (reshapes, and operators with a constant of one element) keep the
elements in row-major order. So if a statistic has the shape of ``x`` with its reduced dims set to
1, each of its elements is broadcast to the slice that it was computed from. ``broadcasts_against``
checks that, and every use of a statistic against ``x`` must call it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.constants import Constants
from smelt.ir.floats import is_close
from smelt.ir.known_forms import is_known
from smelt.ir.same_shape import same_dim, same_shape
from smelt.ir.walk import Walk, attempt, both_orders
from smelt.passes.layout.merge_consecutive_transposes import permutation

RESHAPES = ("Reshape", "Unsqueeze", "Squeeze", "Flatten", "Identity")
"""Operators that keep the elements in row-major order."""

Axes: TypeAlias = tuple[int, ...]
_Mean: TypeAlias = tuple[ir.Value, Axes]


@dataclass(frozen=True)
class Deviation:
    """``sqrt(mean(square) + epsilon)`` over ``axes``, of ``x - mean(x)`` if centred, else of x.

    With ``groups``, the last axis of x holds channels, which are split into that many groups.
    """

    x: ir.Value
    axes: Axes
    epsilon: float
    centred: bool
    groups: int | None = None


class MomentReader:
    """Traces values back to the tensor whose mean or deviation they are.

    The nodes on the way are added to ``walk``. A method marked ``attempt`` adds none if it finds
    nothing.
    """

    def __init__(self, constants: Constants, walk: Walk) -> None:
        self.constants = constants
        self.walk = walk

    @attempt
    def inverse(self, value: ir.Value | None) -> Iterator[Deviation]:
        """Yield each Deviation whose reciprocal ``value`` may be."""
        node = self.walk.up(self.before_reshapes(value), "Reciprocal", "Div", "Pow")
        if node is None:
            return
        if node.op_type == "Pow":
            if self.is_number(node.inputs[1], -0.5):
                yield from self._root_of(node.inputs[0])
        elif node.op_type == "Reciprocal" or self.is_number(node.inputs[0], 1.0):
            yield from self.deviation(node.inputs[-1])

    @attempt
    def deviation(self, value: ir.Value | None) -> Iterator[Deviation]:
        """Yield each Deviation that ``value`` may be."""
        node = self.walk.up(self.before_reshapes(value), "Sqrt", "Pow")
        if node is not None and (node.op_type == "Sqrt" or self.is_number(node.inputs[1], 0.5)):
            yield from self._root_of(node.inputs[0])

    @attempt
    def mean(self, value: ir.Value | None) -> tuple[ir.Value, Axes] | None:
        """Return ``(x, axes)`` if ``value`` is the mean of x over ``axes``, else None."""
        node = self.walk.up(
            self.before_reshapes(value), "ReduceMean", "GlobalAveragePool", "Div", "Mul"
        )
        if node is None:
            return None
        if node.op_type in ("ReduceMean", "GlobalAveragePool"):
            return self._reduced(node)
        means = (self._mean_of_sum(node, *operands) for operands in _orders(node))
        return next((mean for mean in means if mean), None)

    @attempt
    def _mean_of_sum(
        self, node: ir.Node, total: ir.Value | None, count: ir.Value | None
    ) -> _Mean | None:
        """Return ``(x, axes)`` if ``node`` makes the sum ``total`` a mean of x over ``axes``, else
        None.

        ``node`` is a Div or Mul of ``total`` and ``count``.
        """
        reduction = self.walk.up(self.before_reshapes(total), "ReduceSum")
        reduced = self._reduced(reduction) if reduction is not None else None
        return reduced if reduced and self._makes_a_mean(count, node.op_type, *reduced) else None

    @attempt
    def square(self, value: ir.Value | None) -> ir.Value | None:
        """Return ``v`` if ``value`` is v * v, v ** 2 or abs(v) ** 2, else None."""
        node = self.walk.up(value, "Mul", "Pow")
        if node is None:
            return None
        same = node.op_type == "Mul" and node.inputs[0] is node.inputs[1]
        if not same and (node.op_type == "Mul" or not self.is_number(node.inputs[1], 2.0)):
            return None
        magnitude = self.walk.up(node.inputs[0], "Abs")
        base = magnitude.inputs[0] if magnitude is not None else node.inputs[0]
        # An exponent of higher rank would shift the axes for readers of the square.
        return base if base is not None and same_shape(base.shape, node.outputs[0].shape) else None

    @attempt
    def centred(self, value: ir.Value | None) -> tuple[ir.Value, Axes] | None:
        """Return ``(x, axes)`` if ``value`` is ``x - mean(x)`` or its Cast to a wider type."""
        cast = self.walk.up(value, "Cast")
        if cast is not None and value is not None and is_wider_float(cast.inputs[0], value):
            value = cast.inputs[0]
        node = self.walk.up(value, "Sub")
        mean_of = self.mean(node.inputs[1]) if node is not None else None
        if node is None or mean_of is None:
            return None
        if mean_of[0] is not node.inputs[0]:
            mean_of = _through_transpose(*mean_of, node.inputs[0])
        if mean_of is None:
            return None
        if not same_shape(mean_of[0].shape, node.outputs[0].shape):
            return None
        return mean_of if broadcasts_against(node.inputs[1], *mean_of) else None

    @attempt
    def is_centred(self, value: ir.Value | None, deviation: Deviation) -> bool:
        """True if ``value`` is x - mean(x) for the x and the axes of ``deviation``."""
        return self.centred(value) == (deviation.x, deviation.axes)

    def broadcasts(self, value: ir.Value | None, deviation: Deviation) -> bool:
        """True if ``value``, a statistic over the axes of ``deviation``, broadcasts to x slice by
        slice."""
        return broadcasts_against(value, deviation.x, deviation.axes)

    def ungrouped(self, deviation: Deviation) -> Deviation:
        """Return ``deviation`` in terms of the normalized tensor."""
        return deviation

    def before_repeats(self, value: ir.Value | None) -> ir.Value | None:
        """Return ``value`` before reshapes; the reader of groups also skips repetitions."""
        return self.before_reshapes(value)

    def before_reshapes(self, value: ir.Value | None) -> ir.Value | None:
        """Return ``value`` before operators that only change its shape, if there are any."""
        node = self.walk.up(value, *RESHAPES)
        while node is not None:
            value = node.inputs[0]
            node = self.walk.up(value, *RESHAPES)
        return value

    def is_number(self, value: ir.Value | None, number: float) -> bool:
        """True for a constant whose one element is ``number``."""
        return self.constants.is_number(value, number)

    @attempt
    def _root_of(self, value: ir.Value | None) -> Iterator[Deviation]:
        """Yield each Deviation whose square, ``variance + epsilon``, ``value`` may be."""
        total = self.walk.up(self.before_reshapes(value), "Add")
        if total is None:
            return
        for variance, constant in _orders(total):
            epsilon = self.constants.scalar(constant)
            if isinstance(epsilon, float) and epsilon > 0:
                for x, axes, is_centred in self._variance(variance):
                    yield Deviation(x, axes, epsilon, is_centred)

    @attempt
    def _variance(self, value: ir.Value | None) -> Iterator[tuple[ir.Value, Axes, bool]]:
        """Yield ``(x, axes, is_centred)`` for each way to read ``value`` as a mean of squares."""
        value = self._unguarded(self.before_repeats(value))
        mean_of = self.mean(value)
        base = self.square(mean_of[0]) if mean_of is not None else None
        if mean_of is None or base is None:
            yield from self._variance_of_squares(value)
            return
        mark = self.walk.mark()
        centred = self.centred(base)
        if centred is not None and centred[1] == mean_of[1]:
            yield (*centred, True)
        self.walk.back(mark)
        yield base, mean_of[1], False

    @attempt
    def _variance_of_squares(self, value: ir.Value | None) -> Iterator[tuple[ir.Value, Axes, bool]]:
        """Yield ``(x, axes, True)`` for ``mean(x * x) - mean(x) ** 2``, the variance around the
        mean of an x that no node centres."""
        difference = self.walk.up(value, "Sub")
        if difference is None:
            return
        squares, mean = self.mean(difference.inputs[0]), self.square(difference.inputs[1])
        centre = self.mean(mean)
        if squares is None or centre is None or squares[1] != centre[1]:
            return
        if self.square(squares[0]) is centre[0]:
            yield (*centre, True)

    def _unguarded(self, value: ir.Value | None) -> ir.Value | None:
        """Return ``value`` before a Max with 0 or Relu, which guards a variance against rounding;
        ``value`` itself without a guard.
        """
        node = self.walk.up(value, "Max", "Relu")
        if node is None or len(node.inputs) > 2:
            return value
        other_operands = [v for v in node.inputs if not self.is_number(v, 0.0)]
        return self.before_reshapes(other_operands[0]) if len(other_operands) == 1 else value

    def _reduced(self, node: ir.Node) -> tuple[ir.Value, Axes] | None:
        """Return operand and axes of a ReduceMean, ReduceSum or GlobalAveragePool; None without
        axes."""
        source = node.inputs[0]
        if source is None or source.shape is None:
            return None
        if node.op_type == "GlobalAveragePool":
            return source, tuple(range(2, len(source.shape)))
        axes = opset.reduction_axes(node, self.constants)
        return (source, axes) if axes else None

    def _makes_a_mean(
        self, value: ir.Value | None, op_type: str, source: ir.Value, axes: Axes
    ) -> bool:
        """True if ``value`` turns a sum over ``axes`` into a mean, by a Div or Mul
        (``op_type``)."""
        array = self.constants.get(value)
        assert source.shape is not None
        count = 1
        for axis in axes:
            size = source.shape[axis]
            if not isinstance(size, int):
                return False
            count *= size
        if array is None or array.size != 1 or array.dtype.kind not in "fV" or not count:
            return False
        number = array.reshape(-1)[0]
        if op_type == "Div":
            return is_close(number, count, 0)
        return is_close(number, 1 / count, 1)  # 1 / count may be rounded by 1 ulp


def _through_transpose(source: ir.Value, axes: Axes, x: ir.Value | None) -> _Mean | None:
    """Return a mean of ``source`` over ``axes`` as a mean of x, if x is a Transpose of ``source``.

    None unless the axes that remain have the same order in both.
    """
    node = x.producer() if x is not None else None
    if x is None or node is None or (node.domain, node.op_type) != ("", "Transpose"):
        return None
    if not is_known(node):
        return None
    perm = permutation(node) if node.inputs[0] is source else None
    if perm is None:
        return None
    kept = [axis for axis in perm if axis not in axes]
    if kept != sorted(kept):
        return None
    return x, tuple(index for index, axis in enumerate(perm) if axis in axes)


def is_wider_float(value: ir.Value | None, wide: ir.Value) -> bool:
    """True if both are floats and the type of ``wide`` has more bits."""
    floats = [v.dtype for v in (value, wide) if v is not None and v.dtype is not None]
    if len(floats) < 2 or not all(dtype.is_floating_point() for dtype in floats):
        return False
    return floats[0].bitwidth < floats[1].bitwidth


def _orders(node: ir.Node) -> tuple[tuple[ir.Value | None, ir.Value | None], ...]:
    """Return the operands of ``node`` as pairs: in both orders, but in one for a Div."""
    return both_orders(node)[:1] if node.op_type == "Div" else both_orders(node)


def broadcasts_against(value: ir.Value | None, x: ir.Value, axes: Axes) -> bool:
    """True if ``value`` broadcasts against ``x`` with one element for each slice over ``axes``."""
    producer = value.producer() if value is not None else None
    while producer is not None and producer.op_type == "Expand" and not producer.domain:
        if not is_known(producer):
            break
        value = producer.inputs[0]
        producer = value.producer() if value is not None else None
    if value is None or value.shape is None or x.shape is None:
        return False
    missing = len(x.shape) - len(value.shape)
    if missing < 0:
        return False
    pairs = enumerate(zip((*[1] * missing, *value.shape.dims), x.shape.dims, strict=True))
    return all(dim == 1 if i in axes else same_dim(dim, x_dim) for i, (dim, x_dim) in pairs)
