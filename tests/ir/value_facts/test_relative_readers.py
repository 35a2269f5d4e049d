"""Who reads the relative error of a value, and who is content with a small absolute one."""

from __future__ import annotations

import pytest

from smelt.ir import text
from smelt.ir.value_facts.relative_readers import reads_relative_error

CONSTANTS = (
    "<float one = {1}, float half = {0.5}, float two = {2}, float tiny = {0.00001}, "
    "int64[2] shape = {3, 2}, int64[1] axis = {1}>"
)

READ = {
    "a logarithm": ("y = Log(s)", "Log"),
    "a reciprocal": ("y = Reciprocal(s)", "Reciprocal"),
    "a root": ("y = Sqrt(s)", "Sqrt"),
    "a divisor": ("y = Div(x, s)", "Div"),
    "an output, divided by what may be as small": ("y = Div(s, x)", "output"),
    "a power below 1": ("y = Pow(s, half)", "Pow"),
    "an unknown power": ("y = Pow(s, x)", "Pow"),
    "an output": ("y = Identity(s)", "output"),
    "an output of another shape": ("t = Transpose(s) y = Reshape(t, shape)", "output"),
    "an output in other units": ("y = Mul(s, two)", "output"),
    "a chosen one": ("b = Greater(x, half) y = Where(b, s, x)", "output"),
    "a test against next to nothing": ("b = Greater(s, tiny) y = Where(b, x, x)", "Greater"),
    "a logarithm of the difference to one": ("d = Sub(one, s) y = Log(d)", "Log"),
    "a logarithm of a clipped one": ("c = Clip(s, tiny, one) y = Log(c)", "Log"),
    "a logarithm of a product": ("p = Mul(s, x) y = Log(p)", "Log"),
    "a logarithm of a mixture": ("p = Mul(s, x) m = Add(p, x) y = Log(m)", "Log"),
    "a logarithm of a square": ("q = Pow(s, two) y = Log(q)", "Log"),
    "a share of the sum": ("t = ReduceSum(s, axis) u = Add(t, tiny) y = Div(x, u)", "Div"),
    "a logarithm of the joint probability": ("t = ReduceProd(s, axis) y = Log(t)", "Log"),
    "a logarithm of a mixture by weights": ("t = Transpose(x) m = MatMul(s, t) y = Log(m)", "Log"),
    "an output, scattered": ("i = Cast<to=7>(x) y = ScatterElements(x, i, s)", "output"),
    "a call that is not followed": ("y = other.Thing(s)", "Thing"),
    "a logarithm in a branch": (
        "b = ReduceSum(x) t = Greater(b, half) k = Tanh(s) y = If(t)<then_branch = "
        "one () => (float[2,3] u) { u = Log(s) }, else_branch = two () => (float[2,3] v) "
        "{ v = Identity(k) }>",
        "Log",
    ),
}
CONTENT = {
    "a product": "y = Mul(s, x)",
    "a gate and its complement": "d = Sub(one, s) p = Mul(d, x) q = Mul(s, x) y = Add(p, q)",
    "a product of matrices": "t = Transpose(x) y = MatMul(s, t)",
    "a sum": "y = Add(s, x)",
    "an exponent": "y = Pow(x, s)",
    "a square": "q = Pow(s, two) m = ReduceMean(q, axis) r = Sqrt(m) y = Div(x, r)",
    "an exponential": "e = Exp(s) y = Log(e)",
    "a usual threshold": "b = Greater(s, half) y = Where(b, x, x)",
    "a normalized product": "p = Mul(s, x) m = ReduceMean(p, axis) d = Sub(p, m) q = Mul(d, d) "
    "v = ReduceMean(q, axis) r = Sqrt(v) y = Div(d, r)",
    "nobody": "y = Tanh(x)",
}


def reader(body: str) -> str:
    graph = f"g (float[2,3] x) => (float[A,B] y) {CONSTANTS} {{ s = Sigmoid(x) {body} }}"
    model = text.parse(graph, 20, other=1)
    (value,) = (node.outputs[0] for node in model.graph if node.op_type == "Sigmoid")
    return reads_relative_error(value)


@pytest.mark.parametrize(("body", "expected"), READ.values(), ids=READ)
def test_read(body: str, expected: str) -> None:
    assert reader(body) == expected


@pytest.mark.parametrize("body", CONTENT.values(), ids=CONTENT)
def test_content(body: str) -> None:
    assert reader(body) == ""


def test_readers_that_are_too_many_count() -> None:
    steps = " ".join(f"v{i + 1} = Add(v{i}, x)" for i in range(500))
    assert reader(f"v0 = Mul(s, x) {steps} y = Tanh(v500)") == "too many readers to examine"
