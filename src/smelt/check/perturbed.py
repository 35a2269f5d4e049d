"""Perturbed runs of a model: the same computation with other rounding errors.

Moving inputs and weights is not enough. Where ``1 + tanh(x)`` cancels, the error is that of the
rounded tanh, and no movement of ``x`` shows it. So results of operators that round are moved, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.errors import SmeltError
from smelt.ir.floats import float_info, is_float, is_half, spacing
from smelt.ir.names import Names
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.rounding import ROUNDING

SMALLEST_WEIGHT = 8
"""The smallest initializer that is moved; smaller ones are scales, exponents or limits."""

FACTORS = 64
"""The number of different factors 1 +- eps for each element type."""

ROUNDING_IN_HALF = ROUNDING | {"Add", "Cast", "CastLike", "Div", "Mean", "Mul", "Pow", "Sub", "Sum"}
"""Operators whose 16-bit results are moved.

In 16 bits a sum or product rounds as much as the rest of a layer together, and a Cast from float32
drops the last places of inputs.
"""


class PerturbedModel:
    """A model whose weights and rounding factors are additional inputs; ``model`` is changed.

    One session then serves all perturbed runs; opening one for each would cost more than the runs.
    """

    def __init__(self, model: ir.Model, rng: np.random.Generator) -> None:
        """Turn weights into inputs, and insert a factor after each node that rounds.

        A run feeds 1 + eps or 1 - eps into each factor, and perturbed weights into the new inputs.
        """
        self.model, self._rng = model, rng
        self._weights: list[np.ndarray] = []
        self._factors: dict[np.dtype, list[ir.Value]] = {}
        _infer_types(model)
        graph = model.graph
        self._names = Names(value.name or "" for value in (*graph.inputs, *graph.outputs))
        for value in list(graph.initializers.values()):
            if _is_weight(value):
                self._release(value)
        for inner in (graph, *(function.graph for function in model.functions.values())):
            for node in list(inner):
                if not node.domain and rounds(node):
                    self._scale(inner, node)
        for factors in self._factors.values():
            graph.inputs.extend(factors)

    def draw(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the additional inputs of one run: weights moved by one ulp, and factors
        1 +- eps.
        """
        moved = [jitter(weight, rng) for weight in self._weights]
        for dtype, factors in self._factors.items():
            moved += [_factor(dtype, rng) for _ in factors]
        return moved

    def _release(self, value: ir.Value) -> None:
        """Turn an initializer into an input, so that each run can move its elements.

        No runtime accepts inputs of less than 8 bits; such a weight is moved here, once.
        """
        tensor = value.const_value
        assert tensor is not None
        array = tensor.numpy()
        if tensor.dtype.bitwidth < 8:
            value.const_value = ir.Tensor(jitter(array, self._rng), name=value.name)
            return
        graph = self.model.graph
        graph.initializers.pop(value.name or "")
        value.const_value = None
        value.type, value.shape = ir.TensorType(tensor.dtype), ir.Shape(array.shape)
        graph.inputs.append(value)
        self._weights.append(array)

    def _scale(self, graph: ir.Graph, node: ir.Node) -> None:
        """Insert a Mul by 1 +- eps between the result of ``node`` and its consumers."""
        value = node.outputs[0]
        assert value.dtype is not None
        readers = list(value.uses())
        factor = self._factor_for(graph, node)
        if is_half(value.dtype.numpy()):
            steps = _scaled_in_float32(value, factor)
        else:
            steps = [ir.Node("", "Mul", [value, factor])]
        graph.insert_after(node, steps)
        for number, step in enumerate(steps[:-1]):
            step.outputs[0].name = f"{value.name}.scaling.{number}"
        result = steps[-1].outputs[0]
        result.type, result.shape = value.type, value.shape
        for use in readers:
            use.node.replace_input_with(use.idx, result)
        for index, output in enumerate(graph.outputs):
            if output is value:
                graph.outputs[index] = result
                result.name, value.name = value.name, f"{value.name}.rounded"
        result.name = result.name or f"{value.name}.scaled"

    def _factor_for(self, graph: ir.Graph, node: ir.Node) -> ir.Value:
        """Return the value by which the result of ``node`` is multiplied: 1 + eps or 1 - eps.

        In the main graph it is one of ``FACTORS`` new inputs, which several nodes share. A function
        cannot read model inputs, so its factors are constants.
        """
        value = node.outputs[0]
        assert value.dtype is not None
        dtype = value.dtype.numpy()
        if graph is not self.model.graph:
            tensor = ir.Tensor(_factor(dtype, self._rng))
            constant = ir.Node("", "Constant", [], [ir.AttrTensor("value", tensor)])
            graph.insert_before(node, constant)
            constant.outputs[0].name = f"{value.name}.factor"
            return constant.outputs[0]
        pool = self._factors.setdefault(dtype, [])
        index = int(self._rng.integers(FACTORS))
        while len(pool) <= index:
            name = self._names.numbered("factor")
            pool.append(ir.Value(name=name, type=ir.TensorType(value.dtype), shape=ir.Shape(())))
        return pool[index]


def _factor(dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Return 1 + eps or 1 - eps at random: a rounding error of one unit in the last place."""
    return np.asarray(1 + float(float_info(dtype).eps) * rng.choice([-1.0, 1.0]), dtype)


def rounds(node: ir.Node) -> bool:
    """True if the first result of ``node`` is a float that the operator rounds."""
    dtype = node.outputs[0].dtype if node.outputs else None
    if dtype is None or not is_float(dtype.numpy()):
        return False
    return node.op_type in (ROUNDING_IN_HALF if is_half(dtype.numpy()) else ROUNDING)


def _scaled_in_float32(value: ir.Value, factor: ir.Value) -> Sequence[ir.Node]:
    """Return nodes that scale 16-bit floats in float32, because few runtimes have 16-bit kernels.

    Small whole numbers stay unchanged: they are exact, and may be counts or indices.
    """
    assert value.dtype is not None
    nodes: list[ir.Node] = []

    def step(op_type: str, *inputs: ir.Value, **attributes: int | ir.Tensor) -> ir.Value:
        """Add a node and return its output."""
        nodes.append(ir.node(op_type, inputs, attributes))
        return nodes[-1].outputs[0]

    exact_below = np.float32(2 ** (float_info(value.dtype.numpy()).nmant + 1))
    as_float32 = step("Cast", value, to=int(ir.DataType.FLOAT))
    is_whole = step("Equal", step("Floor", as_float32), as_float32)
    limit = step("Constant", value=ir.Tensor(exact_below))
    is_small = step("Less", step("Abs", as_float32), limit)
    scaled = step("Mul", as_float32, step("Cast", factor, to=int(ir.DataType.FLOAT)))
    chosen = step("Where", step("And", is_whole, is_small), as_float32, scaled)
    step("Cast", chosen, to=int(value.dtype))
    return nodes


def _infer_types(model: ir.Model) -> None:
    """Infer types to find the float results; the interface of the model stays as declared."""
    shapes = ShapeInference(model)
    try:
        shapes.infer_model()
    except SmeltError:
        return  # running the model will report the error
    shapes.restore_interface()


def _is_weight(value: ir.Value) -> bool:
    """True for a float initializer of at least ``SMALLEST_WEIGHT`` elements that is not
    an input.
    """
    tensor = value.const_value
    if tensor is None or value.is_graph_input() or tensor.dtype == ir.DataType.STRING:
        return False
    return tensor.size >= SMALLEST_WEIGHT and is_float(tensor.dtype.numpy())


def jitter(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return ``array`` with each element moved up or down by one ulp; zeros, NaN and inf stay."""
    step = np.where(rng.integers(0, 2, array.shape), 1.0, -1.0)
    with np.errstate(all="ignore"):
        if array.dtype.kind == "f":
            moved = np.nextafter(array, array.dtype.type(np.inf) * step.astype(array.dtype))
        else:
            as_double = array.astype(np.float64)
            moved = (as_double + step * spacing(as_double, array.dtype)).astype(array.dtype)
        usable = np.isfinite(moved) & np.isfinite(array) & (array != 0)
    return np.asarray(np.where(usable, moved, array))
