"""Replace float operators between DequantizeLinear and QuantizeLinear by integer operators of ONNX.

| before | after |
|---|---|
| DequantizeLinear, Conv, Relu or Clip, QuantizeLinear | QLinearConv |
| DequantizeLinear, MatMul, QuantizeLinear | QLinearMatMul |
| DequantizeLinear, Gemm, or without QuantizeLinear | MatMulInteger, Add of the bias, Cast, Mul |
| DequantizeLinear, MaxPool or such, QuantizeLinear | the operator on codes, if scales are equal |

Other operators, such as Add and Concat, have no integer form in ONNX and stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.node_inputs import optional_input
from smelt.ir.shapes.inference import ShapeInference
from smelt.precision.int8.candidates import is_plain_gemm
from smelt.precision.int8.plan import FUSED, MOVING
from smelt.precision.int8.write import drop_unused, replace_value


@dataclass(frozen=True)
class Coded:
    """Codes with the scale and zero point of their DequantizeLinear or QuantizeLinear."""

    codes: ir.Value
    scale: ir.Value
    zero: ir.Value | None

    @classmethod
    def read_by(cls, node: ir.Node, index: int) -> Coded | None:
        """Return the codes behind an operand of ``node``; None if no DequantizeLinear makes it."""
        value = optional_input(node, index)
        source = value.producer() if value is not None else None
        if source is None or source.domain or source.op_type != "DequantizeLinear":
            return None
        codes, scale = source.inputs[:2]
        if codes is None or scale is None or "block_size" in source.attributes:
            return None
        return cls(codes, scale, optional_input(source, 2))

    @classmethod
    def made_of(cls, value: ir.Value) -> Coded | None:
        """Return the codes that a QuantizeLinear makes of ``value`` if nothing else reads it."""
        readers = list(value.uses())
        if len(readers) != 1 or value.is_graph_output():
            return None
        node = readers[0].node
        if node.domain or node.op_type != "QuantizeLinear" or readers[0].idx:
            return None
        scale = node.inputs[1]
        zero = optional_input(node, 2)
        return None if scale is None or zero is None else cls(node.outputs[0], scale, zero)


def use_integer_operators(model: ir.Model) -> None:
    """Replace quantized operators of the main graph of ``model`` in place; see the module."""
    writer = _Writer(model, ShapeInference(model), Constants())
    for node in list(model.graph):
        if node.domain or len(node.outputs) != 1:
            continue
        match node.op_type:
            case "Conv":
                writer.convolution(node)
            case "MatMul" | "Gemm":
                writer.product(node)
            case name if name in MOVING:
                writer.moved(node)
    drop_unused(model)


@dataclass(frozen=True)
class _Writer:
    """Adds integer operators to the main graph of ``model``."""

    model: ir.Model
    shapes: ShapeInference
    constants: Constants

    def before(self, node: ir.Node) -> Builder:
        """Return a builder that places nodes before ``node``."""
        return Builder(self.model, self.model.graph, self.shapes, before=node)

    def convolution(self, node: ir.Node) -> None:
        """Replace a Conv whose operands, bias and result are codes by QLinearConv."""
        x, weight, bias = (Coded.read_by(node, index) for index in range(3))
        end = self.quantized_end(node.outputs[0])
        if x is None or x.zero is None or weight is None or end is None:
            return
        if optional_input(node, 2) is not None and bias is None:
            return  # a float bias that has no int32 code
        codes = end.codes.producer()
        assert codes is not None
        b = self.before(codes)
        zero = self.zeros(b, weight)
        inputs = [x.codes, x.scale, x.zero, weight.codes, weight.scale, zero, end.scale, end.zero]
        inputs += [bias.codes] if bias else []
        made = b.add(ir.Node("", "QLinearConv", inputs, list(node.attributes.values())))[0]
        replace_value(self.model, end.codes, made)

    def product(self, node: ir.Node) -> None:
        """Replace a MatMul or plain Gemm of codes by QLinearMatMul or MatMulInteger."""
        x, weight = Coded.read_by(node, 0), Coded.read_by(node, 1)
        operand = node.inputs[0]
        if x is None or x.zero is None or weight is None or not is_plain_gemm(node):
            return
        if operand is None or operand.shape is None or len(operand.shape) < 2:
            return
        end = self.quantized_end(node.outputs[0])
        codes = end.codes.producer() if end is not None else None
        b = self.before(node if codes is None else codes)
        matrix = self.matrix(b, node, weight)
        if end is not None and optional_input(node, 2) is None:
            zero = self.zeros(b, weight)
            inputs = (x.codes, x.scale, x.zero, matrix, weight.scale, zero, end.scale, end.zero)
            replace_value(self.model, end.codes, b.op("QLinearMatMul", *inputs))
            return
        sums = b.op("MatMulInteger", x.codes, matrix, x.zero)
        bias, added = Coded.read_by(node, 2), optional_input(node, 2)
        if bias is not None:
            sums, added = b.op("Add", sums, bias.codes), None
        scales = [self.constants.get(each.scale, None) for each in (x, weight)]
        assert scales[0] is not None
        assert scales[1] is not None
        factor = np.asarray(scales[0] * scales[1], np.float32)
        scale = b.constant(factor, name=b.free_name("product_scale"))
        result = b.op("Mul", b.cast(sums, ir.DataType.FLOAT), scale)
        result = result if added is None else b.op("Add", result, added)
        if end is None:
            replace_value(self.model, node.outputs[0], result)
        else:
            made = b.op("QuantizeLinear", result, end.scale, end.zero)
            replace_value(self.model, end.codes, made)

    def moved(self, node: ir.Node) -> None:
        """Let an operator that moves or chooses elements read and return codes."""
        x, end = Coded.read_by(node, 0), Coded.made_of(node.outputs[0])
        if x is None or end is None or (x.scale, x.zero) != (end.scale, end.zero):
            return
        made = self.before(node).like(node, x.codes, *node.inputs[1:])
        replace_value(self.model, end.codes, made)

    def quantized_end(self, value: ir.Value) -> Coded | None:
        """Return the codes that QuantizeLinear makes of ``value`` or of the Relu or Clip behind it.

        A Relu or Clip is skipped if the least and the greatest code stand for numbers within its
        bounds: rounding to codes then clips as it does.
        """
        end = Coded.made_of(value)
        readers = list(value.uses())
        if end is not None or len(readers) != 1 or value.is_graph_output():
            return end
        node = readers[0].node
        if node.domain or node.op_type not in FUSED or readers[0].idx:
            return None
        end = Coded.made_of(node.outputs[0])
        return end if end is not None and self.codes_clip(node, end) else None

    def codes_clip(self, node: ir.Node, end: Coded) -> bool:
        """True if a Relu or Clip changes no code of ``end``: its bounds are the outermost codes."""
        scale = self.constants.get(end.scale, None)
        zero = self.constants.get(end.zero, None)
        if scale is None or zero is None or scale.ndim:
            return False
        bounds: list[float] = [0.0, np.inf]
        if node.op_type == "Clip":
            for index, default in ((1, -np.inf), (2, np.inf)):
                value = optional_input(node, index)
                bound = self.constants.get(value, None)
                if value is not None and bound is None:
                    return False
                bounds[index - 1] = default if bound is None else float(bound.reshape(()))
        limits = np.iinfo(zero.dtype)
        low, high = np.rint(np.asarray(bounds) / float(scale)) + int(zero)
        return bool(low <= limits.min and high >= limits.max)

    def zeros(self, b: Builder, weight: Coded) -> ir.Value:
        """Return the zero point of a symmetric ``weight``, in the shape of its scales."""
        if weight.zero is not None:
            return weight.zero
        scale = self.constants.get(weight.scale, None)
        assert scale is not None
        return b.constant(np.zeros(scale.shape, np.int8), name=b.free_name("weight_zero_point"))

    def matrix(self, b: Builder, node: ir.Node, weight: Coded) -> ir.Value:
        """Return the codes of a weight as MatMul reads them, transposed for a Gemm with transB."""
        if node.op_type != "Gemm" or not node.attributes.get_int("transB", 0):
            return weight.codes
        array = self.constants.get(weight.codes, None)
        if array is None or not scope.has_one_use(weight.codes):
            return b.op("Transpose", weight.codes, perm=[1, 0])
        return b.constant(np.ascontiguousarray(array.T), name=b.free_name(str(weight.codes.name)))
