"""TensorSel: from a quantized ONNX model (QuantizeLinear and DequantizeLinear) to units of the NPU.

A compound is listed in any order: a rule of more nodes goes first, so a convolution takes its Relu
along, and a QuantizeLinear that no unit ends with is left for the fallback.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from examples.npu.operators import DOMAIN
from smelt.ir.build import Builder
from smelt.ir.pattern import Op, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule

CONV = op("Conv", var("x"), var("w"), rest=True, name="unit")
PRODUCT = op("MatMul", var("x"), var("w"), name="unit")
DENSE = op("Gemm", var("x"), var("w"), rest=True, name="unit")


def ends(unit: Op) -> Op:
    """``unit``, perhaps a Relu, and the quantization of the result."""
    return op("QuantizeLinear", unit, var("scale"), var("zero"))


def scale_of(m: Match, node: ir.Node | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Scale and zero point of a QuantizeLinear or DequantizeLinear, if both are constants."""
    if node is None or len(node.inputs) < 3:
        return None
    scale, zero = m.array(node.inputs[1], None), m.array(node.inputs[2], None)
    return None if scale is None or zero is None else (scale, zero)


def read(m: Match, value: ir.Value | None) -> tuple[ir.Value, np.ndarray, np.ndarray] | None:
    """What ``value`` is dequantized from, with scale and zero point."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type != "DequantizeLinear":
        return None
    found = scale_of(m, node)
    return None if found is None or node.inputs[0] is None else (node.inputs[0], *found)


def unit(m: Match, b: Builder, relu: bool) -> Replacement:
    """The command of the unit behind the match, or why there is none."""
    node = m.node("unit")
    x, w, end = read(m, m["x"]), read(m, m["w"]), scale_of(m, m.root)
    if x is None or w is None or end is None:
        return Miss("an operand is not dequantized by constants")
    weights = m.array(w[0], None)
    if weights is None or weights.dtype != np.int8 or x[0].dtype != ir.DataType.INT8 or w[2].any():
        return Miss(
            "the weights are not constant int8 with zero point 0, or the operand is not int8"
        )
    if x[1].size > 1 or end[0].size > 1 or end[1].dtype != np.int8:
        return Miss("the operand or the result has scales for channels, or is not int8")
    conv = node.op_type == "Conv"
    if node.op_type == "Gemm":
        plain = {"alpha": 1.0, "beta": 1.0, "transA": 0}
        given = {name: attr.value for name, attr in node.attributes.items() if name != "transB"}
        if any(plain[name] != value for name, value in given.items()):
            return Miss("a Gemm that scales or transposes its operand")
        weights = weights.T if node.attributes.get_int("transB", 0) else weights
        if w[1].size > 1:
            return Miss("a Gemm with scales for channels")
    if (not conv and weights.ndim != 2) or (
        m["x"].shape is None or len(m["x"].shape) != (4 if conv else 2)
    ):
        return Miss("neither two spatial dims nor a matrix")
    channels = weights.shape[0 if conv else 1]
    if w[1].size not in (1, channels):
        return Miss("the weights have scales for blocks")
    bias = _bias(m, node, x[1] * w[1].reshape(-1), channels)
    if bias is None:
        return Miss("the bias is not constant")
    more = _window(node, weights.shape[2:]) if conv else {}
    if more is None:
        return Miss("automatic padding")
    return b.op(
        "ConvRelu" if conv else "MatMulRelu",
        x[0],
        b.constant(np.ascontiguousarray(weights)),
        b.constant(bias),
        domain=DOMAIN,
        x_scale=float(x[1]),
        x_zero=int(x[2]),
        w_scales=tuple(map(float, w[1].reshape(-1))),
        y_scale=float(end[0]),
        y_zero=int(end[1]),
        relu=int(relu),
        **more,
    )


def _bias(m: Match, node: ir.Node, scale: np.ndarray, channels: int) -> np.ndarray | None:
    """The bias in units of the sums, int32."""
    value = node.inputs[2] if len(node.inputs) > 2 else None
    if value is None:
        return np.zeros(channels, np.int32)
    quantized = read(m, value)
    real = m.array(value, None)
    if quantized is not None:
        stored = m.array(quantized[0], None)
        real = None if stored is None else (stored - quantized[2]) * quantized[1]
    if real is None or real.size not in (1, channels):
        return None
    return np.rint(np.broadcast_to(real.reshape(-1), channels) / scale).astype(np.int32)


def _window(node: ir.Node, kernel: tuple[int, ...]) -> dict[str, object] | None:
    if node.attributes.get_string("auto_pad", "NOTSET") != "NOTSET":
        return None
    return {
        "kernel_shape": tuple(kernel),
        "strides": tuple(node.attributes.get_ints("strides") or (1, 1)),
        "dilations": tuple(node.attributes.get_ints("dilations") or (1, 1)),
        "pads": tuple(node.attributes.get_ints("pads") or (0, 0, 0, 0)),
        "group": node.attributes.get_int("group", 1),
    }


@rule(one_of(*(ends(each) for each in (CONV, PRODUCT, DENSE))))
def take_unit(m: Match, b: Builder) -> Replacement:
    return unit(m, b, relu=False)


@rule(one_of(*(ends(op("Relu", each)) for each in (CONV, PRODUCT, DENSE))))
def take_unit_with_relu(m: Match, b: Builder) -> Replacement:
    return unit(m, b, relu=True)


def _scaled(m: Match, b: Builder, name: str) -> Replacement:
    found = scale_of(m, m.root)
    if found is None or found[0].size > 1 or found[1].dtype != np.int8:
        return Miss("no int8 with one scale")
    return b.op(name, m["x"], domain=DOMAIN, scale=float(found[0]), zero=int(found[1]))


@rule(op("QuantizeLinear", var("x"), var("scale"), var("zero")), benefit=0)
def leave_quantize(m: Match, b: Builder) -> Replacement:
    return _scaled(m, b, "Quantize")


@rule(op("DequantizeLinear", var("x"), var("scale"), var("zero")), benefit=0)
def leave_dequantize(m: Match, b: Builder) -> Replacement:
    return _scaled(m, b, "Dequantize")


RULES = (leave_quantize, leave_dequantize, take_unit, take_unit_with_relu)
