"""Rules that are wrong on purpose, each with a model on which it shows.

A verifier that misses one of these is broken.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.pattern import op, var
from smelt.ir.rule import rule
from smelt.passes.base import rule_pass

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'


@rule(op("Relu", var("x")))
def drop_relu(m, b):
    return m["x"]


@rule(op("Div", var("x"), op("Add", var("s"), var("e"))))
def forget_epsilon(m, b):
    return b.op("Div", m["x"], m["s"])


@rule(op("Sub", var("x"), var("y")))
def swap_operands(m, b):
    return b.op("Sub", m["y"], m["x"]) if m["x"].name == "x" else None


@rule(op("Transpose", var("x")))
def drop_transpose(m, b):
    return m["x"]


@rule(op("Softmax", var("x"), name="root"))
def softmax_over_the_batch(m, b):
    return b.op("Softmax", m["x"], axis=0) if m.root.attributes["axis"].as_int() == 1 else None


@rule(op("Cast", op("Cast", var("x"))))
def keep_fractions(m, b):
    return m["x"]


@rule(op("Max", var("x"), var("y")))
def max_is_min(m, b):
    return b.op("Min", m["x"], m["y"])


@rule(op("Mul", var("x"), var("c")))
def round_constant(m, b):
    array = m.array("c")
    if array is None or np.array_equal(array, np.round(array, 2)):
        return None
    return b.op("Mul", m["x"], b.constant(np.round(array, 2)))


@rule(op("Gather", var("t"), var("i")))
def gather_backwards(m, b):
    if m["i"].producer() is not None:
        return None
    last = b.constant(np.array(4, np.int64))
    return b.op("Gather", m["t"], b.op("Sub", last, m["i"]))


@rule(op("Expand", var("x"), var("s")), same_shape=True)
def expand_first_row(m, b):
    zero, one = b.constant(np.array([0], np.int64)), b.constant(np.array([1], np.int64))
    if m["x"].producer() is not None:
        return None
    return b.op("Expand", b.op("Slice", m["x"], zero, one, zero), m["s"])


WRONG = {
    drop_relu: "g (float[B,4] x) => (float[B,4] y) { y = Relu(x) }",
    forget_epsilon: "g (float[B,4] x) => (float[B,4] y) <float e = {1e-12}> { s = Mul(x, x)  d = Add(s, e)  y = Div(x, d) }",
    swap_operands: "g (float[B,4] x, float[B,4] z) => (float[B,4] y) { y = Sub(x, z) }",
    drop_transpose: "g (float[4,4] x) => (float[4,4] y) { y = Transpose<perm = [1,0]>(x) }",
    softmax_over_the_batch: "g (float[B,4] x) => (float[B,4] y) { y = Softmax<axis = 1>(x) }",
    keep_fractions: "g (float[B,4] x) => (float[B,4] y) { i = Cast<to = 7>(x)  y = Cast<to = 1>(i) }",
    max_is_min: "g (float[B,4] x, float[B,4] z) => (float[B,4] y) { y = Max(x, z) }",
    round_constant: "g (float[B,4] x) => (float[B,4] y) <float c = {1.001}> { y = Mul(x, c) }",
    gather_backwards: "g (int64[B] i) => (float[B] y) <float[5] t = {1,2,3,4,5}> { y = Gather(t, i) }",
    expand_first_row: "g (float[B,4] x, float[B,4] z) => (float[B,4] y) { s = Shape(z)  y = Expand(x, s) }",
}


def model(text: str) -> ir.Model:
    return ir.from_onnx_text(HEADER + text)


def wrong_pass(rule_):
    return rule_pass(rule_.name, "A pass that is wrong on purpose.", [rule_])


HARMLESS_RULE = rule(op("Identity", var("x")), name="drop_identity")(lambda m, b: m["x"])
HARMLESS = rule_pass("drop_identity", "A pass that is right.", [HARMLESS_RULE])
