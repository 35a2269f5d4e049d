"""Verification: interfaces, sizes, measured tolerance, functions and failures."""

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.check.compare import Tolerance
from smelt.check.verify import verify
from smelt.errors import InvalidModel, Mismatch, UsageError

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'


def model(text: str) -> ir.Model:
    return ir.from_onnx_text(HEADER + text)


def test_a_model_agrees_with_itself_at_each_size():
    graph = model("g (float[B,4] x) => (float[B,4] y) { y = Softmax(x) }")
    report = verify(graph, graph)
    assert report.ok
    assert [trial.sizes["B"] for trial in report.trials] == [1, 1, 3, 3, 3, 3]
    assert [trial.inputs for trial in report.trials[-2:]] == ["wide", "far"]
    assert report.worst.ulp == 0
    report.check()


def test_a_size_of_its_own_for_each_name():
    graph = model("g (float[B,S] x) => (float[B,S] y) { y = Neg(x) }")
    sizes = [trial.sizes for trial in verify(graph, graph, modes=("normal",)).trials]
    assert sizes == [{"B": 1, "S": 1}, {"B": 3, "S": 4}]
    chosen = verify(graph, graph, dims={"B": (2, 5), "S": 7}, modes=("normal",))
    assert [trial.sizes for trial in chosen.trials] == [{"B": 2, "S": 7}, {"B": 5, "S": 7}]


def test_an_unknown_dim_is_a_usage_error():
    graph = model("g (float[B] x) => (float[B] y) { y = Neg(x) }")
    with pytest.raises(UsageError) as caught:
        verify(graph, graph, dims={"C": 1})
    assert caught.value.code == "E633"


def test_errors_only_beyond_size_one_are_found():
    right = model("g (float[B,4] x) => (float[B,4] y) { y = Neg(x) }")
    wrong = model(
        "g (float[B,4] x) => (float[B,4] y) <int64[1] z = {0}, int64[1] o = {1}> "
        "{ f = Slice(x, z, o, z)  s = Shape(x)  e = Expand(f, s)  y = Neg(e) }"
    )
    report = verify(right, wrong, modes=("normal",))
    assert [trial.ok for trial in report.trials] == [True, False]
    with pytest.raises(Mismatch) as caught:
        report.check()
    assert caught.value.code == "E702"
    assert "B=3" in str(caught.value)


BRANCHES = """g (float[N] x, float[M] y, bool{dims} c) => (float[N] z) {{
    z = If(c) <then_branch = t () => (float[N] p) {{ p = {inner}(x, y) }},
               else_branch = e () => (float[N] q) {{ q = Neg(x) }}>
}}"""


@pytest.mark.parametrize("dims", ["", "[1]"])
def test_both_branches_of_an_if_are_compared_at_sizes_that_fit_each(dims):
    right, wrong = (model(BRANCHES.format(dims=dims, inner=op)) for op in ("Add", "Sub"))
    report = verify(right, wrong, modes=("normal",))
    assert [trial.ok for trial in report.trials] == [True, True, False, False]
    sizes = [(trial.sizes["N"], trial.sizes["M"]) for trial in report.trials]
    assert sizes[:2] == [(1, 1), (3, 4)]
    assert all(n == m for n, m in sizes[2:])


def test_rounding_is_allowed_but_no_more():
    source = model("g (float[B,64] x, float[64,64] w) => (float[B,64] y) { y = MatMul(x, w) }")
    other = model(
        "g (float[B,64] x, float[64,64] w) => (float[B,64] y) "
        "{ xt = Transpose<perm=[1,0]>(x)  wt = Transpose<perm=[1,0]>(w)  p = MatMul(wt, xt)  y = Transpose<perm=[1,0]>(p) }"
    )
    wrong = model(
        "g (float[B,64] x, float[64,64] w) => (float[B,64] y) <float c = {1.0005}> "
        "{ p = MatMul(x, w)  y = Mul(p, c) }"
    )
    assert verify(source, other).ok
    assert not verify(source, wrong).ok
    assert verify(source, wrong, tolerance=Tolerance(rtol=1e-3)).ok


def test_an_epsilon_that_vanished_is_found():
    text = "g (float[B,4] x) => (float[B,4] y) <float e = {1e-12}> { s = Mul(x, x) d = %s y = Div(s, d) }"
    assert not verify(model(text % "Add(s, e)"), model(text % "Identity(s)")).ok


def test_an_overridable_default_taken_for_a_constant_is_found():
    text = "g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}%s> { y = Mul(x, %s) }"
    assert not verify(model(text % ("", "w")), model(text % (", float[2] c = {1, 2}", "c"))).ok


INTERFACES = {
    "name of an input": "g (float[B,4] z) => (float[B,4] y) { y = Neg(z) }",
    "name of an output": "g (float[B,4] x) => (float[B,4] z) { z = Neg(x) }",
    "number of outputs": "g (float[B,4] x) => (float[B,4] y, float[B,4] z) { y = Neg(x) z = Neg(x) }",
    "element type": "g (double[B,4] x) => (double[B,4] y) { y = Neg(x) }",
    "rank": "g (float[B,4,1] x) => (float[B,4,1] y) { y = Neg(x) }",
    "fixed size": "g (float[B,5] x) => (float[B,5] y) { y = Neg(x) }",
}


@pytest.mark.parametrize("text", INTERFACES.values(), ids=INTERFACES.keys())
def test_a_changed_interface_is_a_mismatch(text):
    report = verify(model("g (float[B,4] x) => (float[B,4] y) { y = Neg(x) }"), model(text))
    assert not report.ok
    with pytest.raises(Mismatch) as caught:
        report.check()
    assert caught.value.code == "E700"


def test_a_dim_that_one_side_fixes_has_that_size():
    free = model("g (float[B,4] x) => (float[B,4] y) { y = Neg(x) }")
    fixed = model("g (float[2,4] x) => (float[2,4] y) { y = Neg(x) }")
    report = verify(free, fixed)
    assert report.ok
    assert {trial.sizes["B"] for trial in report.trials} == {2}


def test_functions_stand_on_either_side():
    graph = model(
        "g (float[B,4] x) => (float[B,4] y, float[B] s) { y = Tanh(x) s = ReduceSum<keepdims=0>(x, a) }".replace(
            "=> (float[B,4] y, float[B] s)", "=> (float[B,4] y, float[B] s) <int64[1] a = {1}>"
        )
    )

    def right(x):
        return {"a": np.tanh(x), "b": (x.sum(1),)}

    def wrong(x):
        return np.tanh(x) + np.float32(1e-3), x.sum(1)

    assert verify(right, graph).ok
    assert verify(graph, right).ok
    assert not verify(wrong, graph).ok
    x = np.float32([[1, 2]])
    assert verify(np.tanh, np.tanh, inputs=[x]).ok
    with pytest.raises(UsageError, match="one array per input, in order"):
        verify(right, graph, inputs={"x": x})


def test_a_function_of_integers_and_an_artifact_are_allowed_what_rounding_moves():
    graph = model(
        "g (int64[64] i) => (float[64] y) <float turn = {6.2831855}> "
        "{ c = Cast<to=1>(i) a = Sin(c) t = Add(c, turn) b = Cos(t) d = Sub(a, b) y = Exp(d) }"
    )
    artifact = smelt.compile(graph, target="host")

    def function(i):
        wide = i.astype(np.float64)
        near = np.sin(wide) - np.cos(wide + np.float32(6.2831855))
        return np.exp(near * (1 + 4e-7)).astype(np.float32)

    assert smelt.verify(function, artifact).ok
    assert not smelt.verify(lambda i: function(i) * np.float32(1.01), artifact).ok


def test_two_functions_need_inputs():
    with pytest.raises(UsageError) as caught:
        verify(np.tanh, np.tanh)
    assert caught.value.code == "E634"


def test_failing_where_the_source_works_is_a_mismatch():
    source = model("g (float[B] x) => (float[B] y) { y = Neg(x) }")
    broken = model(
        "g (float[B] x) => (float[B] y) <float[2] c = {0, 0}> { a = Neg(x)  y = Add(a, c) }"
    )
    report = verify(source, broken, dims={"B": (2, 3)}, modes=("normal",))
    assert report.trials[0].ok
    assert report.trials[1].failure
    assert not report.ok


def test_inputs_outside_the_source_are_left_out_unless_all_are():
    fixed = model("g (float[B] x) => (float[2,N] y) <int64[2] s = {2,-1}> { y = Reshape(x, s) }")
    report = verify(fixed, fixed, dims={"B": (3, 4)}, modes=("normal",))
    assert "Reshape" in report.trials[0].skipped
    assert report.ok
    with pytest.raises(InvalidModel):
        verify(fixed, fixed, dims={"B": (3, 5)})


def test_indices_that_rounding_decides_are_left_out_and_counted():
    source = model(
        f"g (float[B,2] x) => (int64[B] i) <float[2,64] w = {{{', '.join(['1.5'] * 128)}}}> "
        "{ h = MatMul(x, w)  i = ArgMax<axis=1, keepdims=0>(h) }"
    )
    assert verify(source, source).ok


def test_nan_and_infinity_are_compared():
    source = model("g (float[B,8] x) => (float[B,8] y) { y = Relu(x) }")
    wrong = model(
        "g (float[B,8] x) => (float[B,8] y) <float z = {0}> { n = IsNaN(x) r = Relu(x) y = Where(n, z, r) }"
    )
    assert verify(source, wrong).ok
    assert not verify(source, wrong, modes=("edges",), dims={"B": 16}).ok


def test_the_report_is_plain_data_and_a_table():
    import json

    graph = model("g (float[B,4] x) => (float[B,4] y) { y = Exp(x) }")
    report = verify(graph, graph)
    document = json.loads(json.dumps(report.to_json()))
    assert document["schema"] == "smelt.verify/2"
    assert document["ok"] is True
    assert "y" in str(report)


def test_tails_are_among_the_inputs_that_are_made_up():
    capped = model(
        "g (float[B,8] x) => (float[B,8] y) <float c = {50}, float d = {-50}>"
        "{ a = Min(x, c) y = Max(a, d) }"
    )
    plain = model("g (float[B,8] x) => (float[B,8] y) { y = Identity(x) }")
    failed = [trial.inputs for trial in verify(plain, capped).trials if not trial.ok]
    assert failed == ["wide", "far"]


def test_tails_at_which_the_source_overflows_say_nothing():
    graph = model("g (float[B,8] x) => (float[B,8] y) { y = Exp(x) }")
    inputs = [trial.inputs for trial in verify(graph, graph).trials]
    assert inputs == ["normal", "sparse", "normal", "sparse"]
