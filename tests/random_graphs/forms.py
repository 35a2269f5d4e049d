"""Other forms of a drawn model that mean the same: functions, and how old files are written."""

from __future__ import annotations

import random

import onnx
import onnx_ir as ir
from onnx import helper

DOMAIN = "drawn"


def rewritten(model: ir.Model, seed: int) -> onnx.ModelProto:
    """``model`` with some nodes as calls of functions, or in IR version 3 or 4."""
    rng = random.Random(seed)
    proto = ir.to_proto(model)
    form = rng.choice(["functions", "functions", "IR 3", "IR 4"])
    if form == "functions":
        _outline(proto, rng)
        return proto
    proto.ir_version = int(form[-1])
    if form == "IR 3":
        for tensor in proto.graph.initializer:
            shape = list(tensor.dims)
            given = helper.make_tensor_value_info(tensor.name, tensor.data_type, shape)
            proto.graph.input.append(given)
    return proto


def _outline(proto: onnx.ModelProto, rng: random.Random) -> None:
    """Every third node becomes a function, some of which call another."""
    imports = [*proto.opset_import, helper.make_opsetid(DOMAIN, 1)]
    for index, node in enumerate(proto.graph.node):
        graphs = any(attr.type == onnx.AttributeProto.GRAPH for attr in node.attribute)
        if graphs or not node.input or "" in [*node.input, *node.output] or rng.random() > 0.35:
            continue
        given = [f"i{k}" for k in range(len(node.input))]
        results = [f"o{k}" for k in range(len(node.output))]
        inner = [f"t{k}" for k in range(len(node.output))]
        body = onnx.NodeProto()
        body.CopyFrom(node)
        body.input[:], body.output[:] = given, inner
        first = body
        if rng.random() < 0.3:
            name = f"Inner{index}"
            inside = helper.make_function(DOMAIN, name, given, inner, [body], imports)
            proto.functions.append(inside)
            first = helper.make_node(name, given, inner, domain=DOMAIN)
        ends = [helper.make_node("Identity", [a], [b]) for a, b in zip(inner, results, strict=True)]
        name = f"Outer{index}"
        outside = helper.make_function(DOMAIN, name, given, results, [first, *ends], imports)
        proto.functions.append(outside)
        node.domain, node.op_type = DOMAIN, name
        del node.attribute[:]
    proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))
