"""Attributes without a value, with several values, or with a value of another type."""

from __future__ import annotations

from frontends.onnx.broken.change import Broken, Cases, attribute, changed, graph
from onnx import AttributeProto, helper


def _square(body: str) -> Broken:
    return graph(body, inputs="float[2,2] x", outputs="float[2,2] y")


CASES: Cases = {
    "an attribute twice": changed(
        graph("y = Softmax<axis = 0>(x)"),
        lambda m: m.graph.node[0].attribute.append(helper.make_attribute("axis", -1)),
    ),
    "an attribute without a name": attribute(lambda a: a.ClearField("name")),
    "an attribute without a type": attribute(lambda a: a.ClearField("type")),
    "an attribute of type 99": attribute(
        lambda a: a.ClearField("type"), lambda a: a.MergeFromString(b"\xa0\x01\x63")
    ),
    "an attribute with two values": attribute(lambda a: setattr(a, "f", 1.0)),
    "an attribute of type FLOAT that holds an INT": attribute(
        lambda a: setattr(a, "type", AttributeProto.FLOAT)
    ),
    "an attribute of another type than its schema says": attribute(
        lambda a: a.CopyFrom(helper.make_attribute("axis", 0.5))
    ),
    "an attribute of another type in a domain of its own": changed(
        graph(
            "y = mine.F<a = 1>(x)",
        ),
        lambda m: (
            m.opset_import.add(domain="mine", version=1),
            setattr(m.graph.node[0].attribute[0], "type", AttributeProto.STRING),
        ),
    ),
    "an unknown attribute": graph("y = Relu<slope = 1.0>(x)"),
    "a missing attribute": graph("y = Concat(x)"),
    "a reference outside a function": attribute(
        lambda a: (a.ClearField("i"), setattr(a, "ref_attr_name", "axis"))
    ),
    "a reference that holds a value": attribute(lambda a: setattr(a, "ref_attr_name", "axis")),
    "a text attribute that is no text": changed(
        graph('y = Gelu<approximate = "none">(x)'),
        lambda m: setattr(m.graph.node[0].attribute[0], "s", b"\xff\xfe"),
    ),
    "a permutation with an axis twice": _square("y = Transpose<perm = [0, 0]>(x)"),
    "a permutation of another rank": _square("y = Transpose<perm = [0, 1, 2]>(x)"),
    "a permutation below zero": _square("y = Transpose<perm = [-1, 0]>(x)"),
    "an equation of two terms for one input": _square('y = Einsum<equation = "ij,jk">(x)'),
    "an equation that returns an axis of no input": _square('y = Einsum<equation = "ij->iz">(x)'),
    "an equation that returns an axis twice": _square('y = Einsum<equation = "ij->ii">(x)'),
    "an equation of other signs": _square('y = Einsum<equation = "i@->i">(x)'),
    "a Constant without a value": changed(
        graph("c = Constant<value_float = 1.0>() y = Add(x, c)"),
        lambda m: m.graph.node[0].ClearField("attribute"),
    ),
    "a Constant with two values": changed(
        graph("c = Constant<value_float = 1.0>() y = Add(x, c)"),
        lambda m: m.graph.node[0].attribute.append(helper.make_attribute("value_int", 1)),
    ),
    "a tensor attribute without a tensor": changed(
        graph("c = Constant<value = float {1}>() y = Add(x, c)"),
        lambda m: m.graph.node[0].attribute[0].ClearField("t"),
    ),
    "a Cast to no type": graph("y = Cast<to = 0>(x)"),
    "a Cast to type 99": graph("y = Cast<to = 99>(x)"),
}
