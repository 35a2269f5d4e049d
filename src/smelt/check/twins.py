"""Twins of a model: the same computation, rounded another way.

Moving inputs and weights alone is not enough: where ``1 + tanh(x)`` cancels, an error of one ulp
in the tanh is all that is left, and no movement of ``x`` shows it.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.floats import float_info, is_float, spacing

SMALLEST_WEIGHT = 8
"""Elements of an initializer that is moved; fewer are settings (scales, exponents, limits)."""

ROUNDING = frozenset(
    {
        *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Attention", "AveragePool"),
        *("BatchNormalization", "Celu", "Conv", "ConvTranspose", "Cos", "Cosh", "Div", "Elu"),
        *("Erf", "Exp", "Gelu", "Gemm", "GlobalAveragePool", "GroupNormalization"),
        *("InstanceNormalization", "LayerNormalization", "Log", "LogSoftmax", "MatMul", "Mish"),
        *("Pow", "RMSNormalization", "ReduceL2", "ReduceLogSumExp", "ReduceMean", "ReduceSum"),
        *("Reciprocal", "Selu", "Sigmoid", "Sin", "Sinh", "Softmax", "Softplus", "Sqrt", "Swish"),
        *("Tan", "Tanh"),
    }
)
"""Operators whose results are rounded. Sums and products of two are left alone: of numbers that
happen to be integers they are exact, and what comes after may depend on it."""


def shake(model: ir.Model, rng: np.random.Generator) -> None:
    """Move the weights of ``model`` by one ulp each, and scale each rounded result by 1 +- eps."""
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if tensor is not None and _is_weight(value):
            value.const_value = ir.Tensor(jitter(tensor.numpy(), rng), name=value.name)
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        for node in list(graph):
            if node.op_type in ROUNDING and not node.domain:
                _scale(graph, node, rng, in_function=graph is not model.graph)


def _scale(graph: ir.Graph, node: ir.Node, rng: np.random.Generator, *, in_function: bool) -> None:
    """Let all readers of the result see it times 1 + eps or 1 - eps, as an output too."""
    value = node.outputs[0]
    if value.dtype is None or not is_float(value.dtype.numpy()):
        return
    dtype = value.dtype.numpy()
    eps = float(float_info(dtype).eps) * rng.choice([-1.0, 1.0])
    factor = _factor(graph, node, ir.Tensor(np.asarray(1 + eps, dtype)), in_function)
    readers = list(value.uses())
    scaled = ir.Node("", "Mul", [value, factor])
    graph.insert_after(node, scaled)
    result = scaled.outputs[0]
    result.type, result.shape = value.type, value.shape
    for use in readers:
        use.node.replace_input_with(use.idx, result)
    for index, output in enumerate(graph.outputs):
        if output is value:
            graph.outputs[index] = result
            result.name, value.name = value.name, f"{value.name}.rounded"
    result.name = result.name or f"{value.name}.scaled"


def _factor(graph: ir.Graph, node: ir.Node, tensor: ir.Tensor, in_function: bool) -> ir.Value:
    """A constant that is there before ``node``; functions have no initializers."""
    name = f"{node.outputs[0].name}.factor"
    if in_function:
        constant = ir.Node("", "Constant", [], [ir.AttrTensor("value", tensor)])
        graph.insert_before(node, constant)
        constant.outputs[0].name = name
        return constant.outputs[0]
    type_ = ir.TensorType(tensor.dtype)
    value = ir.Value(name=name, type=type_, shape=ir.Shape(()), const_value=tensor)
    graph.register_initializer(value)
    return value


def _is_weight(value: ir.Value) -> bool:
    tensor = value.const_value
    if tensor is None or value.is_graph_input() or tensor.dtype == ir.DataType.STRING:
        return False
    return tensor.size >= SMALLEST_WEIGHT and is_float(tensor.dtype.numpy())


def jitter(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """``array`` with each element moved up or down by one ulp; zeros and non-numbers stay."""
    step = np.where(rng.integers(0, 2, array.shape), 1.0, -1.0)
    with np.errstate(all="ignore"):
        if array.dtype.kind == "f":
            moved = np.nextafter(array, array.dtype.type(np.inf) * step.astype(array.dtype))
        else:
            wide = array.astype(np.float64)
            moved = (wide + step * spacing(wide, array.dtype)).astype(array.dtype)
        usable = np.isfinite(moved) & np.isfinite(array) & (array != 0)
    return np.asarray(np.where(usable, moved, array))
