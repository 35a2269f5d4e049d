"""Reduction keeps the nodes that the check needs and removes all others; candidates are valid
models.
"""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from long_models import chain
from wrong_rules import HARMLESS, WRONG, drop_relu, model, wrong_pass

from smelt.check.bisect import bisect, still_wrong
from smelt.check.reduce import reduce
from smelt.errors import UsageError
from smelt.frontends.onnx import to_proto
from smelt.ir import scope
from smelt.passes.base import PassContext
from smelt.passes.pipeline import Step
from smelt.passes.run import run
from smelt.runtime.runner import open_runner


def parsed(text):
    return ir.serde.deserialize_model(onnx.parser.parse_model(text))


def has_pair(candidate):
    """True if a Softmax reads an Erf."""
    softmaxes = [node for node in scope.nodes(candidate) if node.op_type == "Softmax"]
    before = [node.inputs[0].producer() for node in softmaxes]
    return any(node is not None and node.op_type == "Erf" for node in before)


def ops(candidate):
    return [node.op_type for node in scope.nodes(candidate)]


@pytest.mark.parametrize("at", [0, 431])
def test_a_thousand_nodes_become_the_two_that_matter(at):
    found = reduce(parsed(chain(1000, at, "Erf", "Softmax")), has_pair)
    assert ops(found.model) == ["Erf", "Softmax"]
    assert found.nodes == (1000, 2)
    assert found.runs <= 60
    assert found.complete


def test_equal_arguments_give_equal_models():
    source = parsed(chain(80, 30, "Erf", "Softmax"))
    first, second = (to_proto(reduce(source, has_pair).model) for _ in range(2))
    assert first.SerializeToString() == second.SerializeToString()
    assert len(source.graph) == 80


def test_every_candidate_is_a_model_that_runs():
    seen = []

    def check(candidate):
        proto = to_proto(candidate)
        onnx.checker.check_model(proto, full_check=True)
        open_runner(proto, "onnxruntime")
        seen.append(len(candidate.graph))
        return has_pair(candidate)

    reduce(parsed(chain(40, 11, "Erf", "Softmax")), check)
    assert len(set(seen)) > 5


def reaches_input(candidate):
    """True if a Softmax depends on h0."""
    softmaxes = [node for node in candidate.graph if node.op_type == "Softmax"]
    seen = set()
    while softmaxes:
        node = softmaxes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if any(value is not None and value.name == "h0" for value in node.inputs):
            return True
        softmaxes += [value.producer() for value in node.inputs if value is not None]
    return False


def test_nodes_between_are_passed_by_where_the_way_matters():
    found = reduce(parsed(chain(300, 250, "Softmax")), reaches_input)
    assert ops(found.model) == ["Softmax"]


def test_a_result_becomes_a_constant_where_it_may_be_no_input():
    text = (
        '<ir_version: 10, opset_import: ["" : 20]>\n'
        "g (float[2,3] x) => (float[2,3] y) <int64[2] s = {3, 3}> "
        "{ k = ConstantOfShape(s) c = Exp(k) y = MatMul(x, c) }"
    )

    def check(candidate):
        return "MatMul" in ops(candidate) and len(candidate.graph.inputs) == 1

    found = reduce(parsed(text), check)
    assert ops(found.model) == ["MatMul"]
    [node] = found.model.graph
    assert [value.is_initializer() for value in node.inputs].count(True) == 1


BRANCHES = """<ir_version: 10, opset_import: ["" : 20]>
g (float[4] x, bool p) => (float[4] y, float[4] z) <float[4] w = {1,2,3,4}> {
    a = Mul(x, w) b = Exp(x)
    q = If(p) <then_branch = t () => (float[4] r) { c = Add(a, w) d = Erf(c) e = Softmax(d) r = Neg(e) },
               else_branch = f () => (float[4] s) { s = Neg(b) }>
    y = Relu(q) z = Tanh(b)
}"""


def test_branches_are_opened():
    found = reduce(parsed(BRANCHES), has_pair)
    assert ops(found.model) == ["Erf", "Softmax"]


def test_nodes_inside_a_body_go_while_it_stays():
    def check(candidate):
        return any(
            "Erf" in [node.op_type for node in graph]
            for graph in scope.graphs_below(candidate.graph)
            if graph is not candidate.graph
        )

    found = reduce(parsed(BRANCHES), check)
    assert "Softmax" not in ops(found.model)
    assert "Mul" not in ops(found.model)
    assert len(ops(found.model)) <= 4
    onnx.checker.check_model(to_proto(found.model), full_check=True)


def test_calls_are_opened():
    text = (
        '<ir_version: 10, opset_import: ["" : 20, "my" : 1]>\n'
        "g (float[4] x) => (float[4] y) { a = my.f(x) b = my.f(a) y = Exp(b) }"
        '<domain: "my", opset_import: ["" : 20]> '
        "f (p) => (q) { h = Neg(p) i = Erf(h) q = Softmax(i) }"
    )
    found = reduce(parsed(text), has_pair)
    assert ops(found.model) == ["Erf", "Softmax"]
    assert not found.model.functions


def test_sizes_and_weights_shrink_together():
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]>\n'
        "g (float[B,12,768] x) => (float[B,12,12,64] y) { m = MatMul(x, w) "
        "s = Constant<value_ints = [0, 12, 12, 64]>() y = Reshape(m, s) }"
    )
    weights = np.random.default_rng(0).standard_normal((768, 768)).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))

    def check(candidate):
        return {"MatMul", "Reshape"} <= set(ops(candidate)) and "w" in candidate.graph.initializers

    found = reduce(proto, check)
    assert found.weight_bytes[0] == weights.nbytes
    assert found.weight_bytes[1] <= 64
    open_runner(found.model)


def test_weights_that_must_stay_large_say_nothing():
    weights = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]>\n'
        "g (float[8,8] x) => (float[8,8] y) { y = MatMul(x, w) }"
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    found = reduce(proto, lambda m: m.graph.initializers["w"].shape == (8, 8))
    assert not found.model.graph.initializers["w"].const_value.numpy().any()


def test_runs_can_be_limited_and_interrupted():
    source = parsed(chain(100, 50, "Erf", "Softmax"))
    found = reduce(source, has_pair, runs=5)
    assert (found.runs, found.complete) == (5, False)
    assert found.nodes[1] < 100
    calls = []

    def interrupted(candidate):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return has_pair(candidate)

    stopped = reduce(source, interrupted)
    assert (stopped.complete, stopped.interrupted) == (False, True)
    assert "stopped by Ctrl-C" in str(stopped)
    assert "stopped by Ctrl-C" not in str(found)


def test_a_model_without_the_pattern_is_refused():
    with pytest.raises(UsageError, match="E621"):
        reduce(parsed(chain(5, 0)), has_pair)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda item: item.name)
def test_the_pass_at_fault_is_wrong_on_the_small_model_too(wrong):
    steps = (Step(HARMLESS), Step(wrong_pass(wrong)))

    def optimize(work, limit, watching):
        cx = PassContext.of(work)
        cx.rewrites_left = limit
        return run(cx, steps, watching)

    source = model(WRONG[wrong])
    culprit = bisect(source, optimize)
    found = reduce(source, still_wrong(culprit, optimize))
    again = bisect(found.model, optimize)
    assert again is not None
    assert again.pass_text == culprit.pass_text
    assert len(found.model.graph) <= len(source.graph)
    assert drop_relu is not wrong or ops(found.model) == ["Relu"]
