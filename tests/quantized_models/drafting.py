"""Small float models with random weights, written operator by operator."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Draft:
    """A graph in the making; every operator gives back the name of its result."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)

    def weight(self, *shape: int) -> str:
        return self.constant(self.rng.normal(size=shape).astype(np.float32) * 0.3)

    def positive(self, *shape: int) -> str:
        return self.constant(self.rng.uniform(0.5, 1.5, size=shape).astype(np.float32))

    def scalar(self, value: float) -> str:
        return self.constant(np.float32(value))

    def ints(self, *values: int) -> str:
        return self.constant(np.asarray(values, np.int64))

    def constant(self, array: np.ndarray | np.generic) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, op_type: str, *operands: str, **attributes: object) -> str:
        return self.ops(op_type, *operands, outputs=1, **attributes)[0]

    def ops(
        self, op_type: str, *operands: str, outputs: int, **attributes: object
    ) -> tuple[str, ...]:
        number = len(self.nodes)
        names = tuple(f"{op_type}_{number}_{place}" for place in range(outputs))
        self.nodes.append(
            helper.make_node(op_type, operands, names, name=f"node_{number}", **attributes)
        )
        return names

    def mean(self, x: str, *axes: int) -> str:
        if self.opset < 18:
            return self.op("ReduceMean", x, axes=list(axes))
        return self.op("ReduceMean", x, self.ints(*axes))

    def model(self, shape: tuple[int, ...], result: str) -> onnx.ModelProto:
        """The model of one input ``x`` of ``shape``, which returns ``result``."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", [x], [y], self.initializers)
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=10 if self.opset > 20 else 8
        )
        return onnx.shape_inference.infer_shapes(model)
