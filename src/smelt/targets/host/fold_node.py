"""Compute one node on constants with the NumPy kernels, for constant folding.

``runtime.fold`` uses this for operators whose reference kernels in onnx are slow, missing, or
unlike those of runtimes. A node that ONNX Runtime may compute differently is not folded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from smelt.errors import SmeltError
from smelt.ir.shapes.inference import ShapeInference
from smelt.program.instruction import Instruction, Program
from smelt.program.lower import lower
from smelt.program.resampling import CROP, Sampling, depends_on_rounding
from smelt.targets.host.eager import run


def compute_node(
    node: ir.Node, inputs: Sequence[np.ndarray | None], opset: int
) -> list[np.ndarray] | None:
    """Return the outputs of ``node`` on ``inputs``, or None if it must not be folded.

    An absent input is None; every output must be present. ``opset`` is the ONNX opset of the node's
    graph.
    """
    if (may_differ := MAY_DIFFER.get(node.op_type)) is not None and may_differ(node):
        return None
    model = _model_of(node, inputs, opset)
    try:
        ShapeInference(model).infer_model()
        program = lower(model)
        # ONNX Runtime refuses some of these operators on empty tensors, such as AveragePool.
        if any(0 in slot.shape for slot in program.slots):
            return None
        if any(_resample_may_differ(program, step) for step in program.instructions):
            return None
        return list(run(program))
    except SmeltError:
        return None


def _pool_may_differ(node: ir.Node) -> bool:
    """True for a pooling that ONNX Runtime may compute differently.

    These are: dilations with SAME padding, indices of maxima with padding, and averages or p-norms
    of half floats.
    """
    is_dilated = any(step != 1 for step in node.attributes.get_ints("dilations", ()))
    if is_dilated and node.attributes.get_string("auto_pad", "").startswith("SAME"):
        return True
    attributes = node.attributes
    is_padded = any(attributes.get_ints("pads", ())) or attributes.keys() & {
        "auto_pad",
        "ceil_mode",
    }
    if len(node.outputs) > 1 and is_padded:
        return True
    is_half = node.outputs[0].dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
    return is_half and node.op_type != "MaxPool"


def _is_cubic(node: ir.Node) -> bool:
    """True for a cubic GridSample, at whose border ONNX Runtime clamps each pixel by itself."""
    return node.attributes.get_string("mode", "linear") in ("cubic", "bicubic")


def _layer_may_differ(node: ir.Node) -> bool:
    """True for a recurrent layer with other attributes than direction and size, such as
    activations, clipping or layout.
    """
    return not node.attributes.keys() <= {"direction", "hidden_size", "linear_before_reset"}


MAY_DIFFER: Mapping[str, Callable[[ir.Node], bool]] = {
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pool_may_differ),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _layer_may_differ),
    "GridSample": _is_cubic,
}
"""Operator to a predicate: True if ONNX Runtime may compute the node differently."""


def _resample_may_differ(program: Program, step: Instruction) -> bool:
    """True if ``step`` resizes an axis in a way that ONNX Runtime may compute differently.

    These are: crops, ``exclude_outside``, interpolated integers, and nearest neighbors whose choice
    depends on how coordinates are rounded.
    """
    if step.op != "Resample":
        return False
    sampling, (source,), (result,) = Sampling.of(step.attributes), step.inputs, step.outputs
    if sampling.coordinates == CROP or sampling.exclude_outside:
        return True
    if sampling.mode != "nearest":
        # Integers are computed as floats, which the runtime rounds differently.
        return program.instructions[0].op == "Cast"
    axis = step.attributes["axis"]
    assert isinstance(axis, int)
    size, count = (program.slots[slot].sizes[axis] for slot in (source, result))
    return depends_on_rounding(sampling, size, count)


def _model_of(node: ir.Node, inputs: Sequence[np.ndarray | None], opset: int) -> ir.Model:
    """Return a model with a copy of ``node`` whose operands are constants."""
    operands = [
        None if array is None else _constant(f"operand_{i}", array, value)
        for i, (array, value) in enumerate(zip(inputs, node.inputs, strict=True))
    ]
    results = [
        ir.Value(name=f"result_{i}", type=value.type, shape=value.shape)
        for i, value in enumerate(node.outputs)
    ]
    copy = ir.Node("", node.op_type, operands, node.attributes.values(), outputs=results)
    graph = ir.Graph(
        (),
        results,
        nodes=[copy],
        initializers=[value for value in operands if value is not None],
        opset_imports={"": opset},
        name="folded",
    )
    return ir.Model(graph, ir_version=10)


def _constant(name: str, array: np.ndarray, value: ir.Value | None) -> ir.Value:
    """Return a constant with the data of ``array`` and the type of ``value``."""
    assert value is not None
    tensor = ir.Tensor(array, dtype=value.dtype, name=name)
    return ir.Value(name=name, type=value.type, shape=ir.Shape(array.shape), const_value=tensor)
