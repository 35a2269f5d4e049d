"""Branches and loop bodies that do not fit their nodes."""

from __future__ import annotations

import onnx
from frontends.onnx.broken.change import Broken, Cases, changed, graph
from onnx import helper

INPUTS = "float[4] x, bool b, int64 n"
ELSE = "else_branch = e () => (float[4] q) { q = Neg(x) }"


def _if(then: str, other: str = ELSE, results: str = "y") -> Broken:
    rest = "" if "y" in results else "y = Abs(x)"
    return graph(f"{results} = If(b) <then_branch = {then}, {other}> {rest}", inputs=INPUTS)


def _loop(body: str, results: str = "y", operands: str = "n, b, x") -> Broken:
    return graph(f"{results} = Loop({operands}) <body = {body}>", inputs=INPUTS)


def _scan(
    body: str,
    *,
    results: str = "s, y",
    operands: str = "x, x",
    options: str = "num_scan_inputs = 1",
) -> Broken:
    return graph(f"{results} = Scan<{options}, body = {body}>({operands})", inputs=INPUTS)


def _sequence_map(body: str, results: str = "t") -> Broken:
    return graph(
        f"s = SequenceConstruct(x, x) {results} = SequenceMap(s) <body = {body}> y = Relu(x)",
        inputs=INPUTS,
    )


def _shadow_input(model: onnx.ModelProto) -> None:
    body = model.graph.node[0].attribute[0].g
    body.initializer.append(helper.make_tensor("a", onnx.TensorProto.FLOAT, [4], [1, 2, 3, 4]))


LOOP = "l (int64 i, bool c, float[4] a) => (bool d, float[4] r) { d = Identity(c) r = Neg(a) }"
SCAN = "l (float[4] a, float e) => (float[4] r, float f) { r = Neg(a) f = Neg(e) }"

CASES: Cases = {
    "a then-branch of two results": _if(
        "t () => (float[4] p, float[4] r) { p = Relu(x) r = Abs(x) }"
    ),
    "an else-branch of no result": _if(
        "t () => (float[4] p) { p = Relu(x) }", "else_branch = e () => () { q = Neg(x) }"
    ),
    "an If of more results than its branches": _if(
        "t () => (float[4] p) { p = Relu(x) }", results="y, z"
    ),
    "a branch with an input": _if("t (float[4] a) => (float[4] p) { p = Relu(a) }"),
    "branches of two element types": _if(
        "t () => (int64[4] p) { p = Cast<to = 7>(x) }", results="z"
    ),
    "branches of two undeclared element types": _if(
        "t () => (p) { p = Cast<to = 7>(x) }", results="z"
    ),
    "a branch of a tensor and one of a sequence": _if(
        "t () => (seq(float[4]) p) { p = SequenceConstruct(x) }", results="z"
    ),
    "an If on floats": graph(
        f"y = If(x) <then_branch = t () => (float[4] p) {{ p = Relu(x) }}, {ELSE}>", inputs=INPUTS
    ),
    "an If of another type than its branches": graph(
        f"y = If(b) <then_branch = t () => (float[4] p) {{ p = Relu(x) }}, {ELSE}>",
        inputs=INPUTS,
        outputs="int64[4] y",
    ),
    "a loop body of too few inputs": _loop(
        "l (int64 i, bool c) => (bool d, float[4] r) { d = Identity(c) r = Neg(x) }"
    ),
    "a loop body of too many inputs": _loop(
        LOOP.replace("float[4] a)", "float[4] a, float[4] a2)")
    ),
    "a loop body of too few results": _loop(
        "l (int64 i, bool c, float[4] a) => (bool d) { d = Identity(c) r = Neg(a) }"
    ),
    "a loop of too few results": _loop(
        LOOP.replace("float[4] r)", "float[4] r, float[4] r2)").replace(
            "r = Neg(a)", "r = Neg(a) r2 = Abs(a)"
        )
    ),
    "a loop of too many results": _loop(LOOP, results="y, z"),
    "a loop body whose condition is no bool": _loop(
        LOOP.replace("bool d", "float[4] d").replace("d = Identity(c)", "d = Neg(a)")
    ),
    "a loop body that carries another type": _loop(
        LOOP.replace("float[4] r", "int64[4] r").replace("r = Neg(a)", "r = Cast<to = 7>(a)")
    ),
    "a loop body that takes another type": _loop(
        LOOP.replace("float[4] a", "int64[4] a").replace("float[4] r", "int64[4] r")
    ),
    "a loop body whose input is a weight, too": changed(_loop(LOOP), _shadow_input),
    "a scan body of too few inputs": _scan(
        "l (float[4] a) => (float[4] r, float f) { r = Neg(a) f = ReduceMax<keepdims = 0>(a) }"
    ),
    "a scan body of too few results": _scan(
        "l (float[4] a, float e) => (float[4] r) { r = Neg(a) f = Neg(e) }"
    ),
    "a scan of too few results": _scan(SCAN, results="y"),
    "a scan of more scan inputs than inputs": _scan(SCAN, options="num_scan_inputs = 3"),
    "a scan of no scan inputs": _scan(SCAN, options="num_scan_inputs = 0"),
    "scan directions of another number": _scan(
        SCAN, options="num_scan_inputs = 1, scan_input_directions = [0, 0]"
    ),
    "a scan direction of 2": _scan(
        SCAN, options="num_scan_inputs = 1, scan_output_directions = [2]"
    ),
    "scan axes of another number": _scan(
        SCAN, options="num_scan_inputs = 1, scan_output_axes = [0, 0]"
    ),
    "a scan body that carries another type": _scan(
        SCAN.replace("float[4] r", "int64[4] r").replace("r = Neg(a)", "r = Cast<to = 7>(a)"),
        results="s, y",
    ),
    "a sequence body of too many inputs": _sequence_map(
        "l (float[4] a, float[4] c) => (float[4] r) { r = Add(a, c) }"
    ),
    "a sequence body of too many results": _sequence_map(
        "l (float[4] a) => (float[4] r, float[4] q) { r = Neg(a) q = Abs(a) }"
    ),
    "a Loop without a body": graph("y = Loop(n, b, x)", inputs=INPUTS),
    "an If without an else-branch": graph(
        "y = If(b) <then_branch = t () => (float[4] p) { p = Relu(x) }>", inputs=INPUTS
    ),
}
