"""Functions that cannot be called, or whose calls are ambiguous."""

from __future__ import annotations

from frontends.onnx.broken.change import Broken, Cases, changed, text
from onnx import helper

CALL = "g (float[4] x) => (float[4] y) { y = f.F(x) } "


def _function(function: str, call: str = CALL) -> Broken:
    return text(
        f'{call} <domain: "f", opset_import: ["" : 20, "f" : 1]> {function}', also=', "f" : 1'
    )


GOOD = _function("F (a) => (b) { b = Relu(a) }")

CASES: Cases = {
    "two functions of one name": changed(GOOD, lambda m: m.functions.append(m.functions[0])),
    "a function that calls itself": _function("F (a) => (b) { b = f.F(a) }"),
    "two functions that call each other": _function(
        'F (a) => (b) { b = f.G(a) } <domain: "f", opset_import: ["" : 20, "f" : 1]> G (a) => (b) { b = f.F(a) }'
    ),
    "a function that calls itself from a branch": _function(
        "F (a) => (b) { c = Cast<to = 9>(a) b = If(c) <then_branch = t () => (p) { p = f.F(a) }, else_branch = e () => (q) { q = Neg(a) }> }"
    ),
    "a function that nobody calls and that calls itself": _function(
        "G (a) => (b) { b = f.G(a) }", "g (float[4] x) => (float[4] y) { y = Relu(x) } "
    ),
    "a function without a name": changed(GOOD, lambda m: m.functions[0].ClearField("name")),
    "a function without a domain": changed(
        GOOD,
        lambda m: (m.functions[0].ClearField("domain"), setattr(m.graph.node[0], "domain", "")),
    ),
    "a function that imports no opset for a node": changed(
        GOOD, lambda m: m.functions[0].ClearField("opset_import")
    ),
    "a function with two inputs of one name": _function("F (a, a) => (b) { b = Relu(a) }"),
    "a function with two outputs of one name": _function("F (a) => (b, b) { b = Relu(a) }"),
    "a function with an attribute twice": changed(
        GOOD, lambda m: m.functions[0].attribute.extend(["k", "k"])
    ),
    "a function with an attribute with and without a default": changed(
        GOOD,
        lambda m: (
            m.functions[0].attribute.append("k"),
            m.functions[0].attribute_proto.append(helper.make_attribute("k", 1)),
        ),
    ),
    "a function with two defaults of one attribute": changed(
        GOOD,
        lambda m: m.functions[0].attribute_proto.extend(
            [helper.make_attribute("k", 1), helper.make_attribute("k", 2)]
        ),
    ),
    "a function with an input without a name": changed(
        GOOD, lambda m: m.functions[0].input.append("")
    ),
    "a function with an output that nothing writes": _function("F (a) => (b) { c = Relu(a) }"),
    "a function that reads what nothing writes": _function("F (a) => (b) { b = Add(a, w) }"),
    "a function that reads a value of the graph": _function("F (a) => (b) { b = Add(a, x) }"),
    "a function that writes a value twice": _function("F (a) => (b) { b = Relu(a) b = Neg(a) }"),
    "a function that writes its input": _function("F (a) => (b) { a = Relu(a) b = Neg(a) }"),
    "a function with a cycle": _function("F (a) => (b) { c = Add(a, b) b = Neg(c) }"),
    "a function with an unknown operator": _function("F (a) => (b) { b = Reluu(a) }"),
    "a reference to an attribute that the function lacks": _function(
        "F <k> (a) => (b) { b = Softmax<axis = @j>(a) }"
    ),
    "a reference of another type than the operator's attribute": _function(
        "F <k> (a) => (b) { b = Softmax<axis: float = @k>(a) }"
    ),
    "a call with too many inputs": _function(
        "F (a) => (b) { b = Relu(a) }", "g (float[4] x) => (float[4] y) { y = f.F(x, x) } "
    ),
    "a call with too many outputs": _function(
        "F (a) => (b) { b = Relu(a) }", "g (float[4] x) => (float[4] y) { y, z = f.F(x) } "
    ),
}
