"""``smelt extract``: the part of a model between any values, which computes what it did inside."""

import numpy as np
import onnx
import pytest
from small_models import HEADER, MODEL

import smelt as api
from smelt.runtime.runner import run

CHAIN = HEADER + (
    "g (float[B,4] x, float[4] z) => (float[B,4] y, float[B,4] u) "
    "<float[4] w = {1,2,3,4}, float[4] v = {5,6,7,8}> "
    "{ a = Mul(x, w) b = Relu(a) c = Add(b, v) y = Sub(c, z) u = Exp(a) }"
)
BRANCH = HEADER + (
    "g (float[4] x, bool p) => (float[4] y) <float[4] w = {1,2,3,4}> "
    "{ a = Mul(x, w) b = Exp(x) y = If(p) <then_branch = t () => (float[4] q) { q = Add(a, w) }, "
    "else_branch = e () => (float[4] r) { r = Neg(b) }> }"
)


def part(smelt, model, tmp_path, *arguments):
    result = smelt("extract", model, *arguments, "-o", tmp_path / "part.onnx")
    assert result.exit_code == 0, result.stderr
    proto = onnx.load(tmp_path / "part.onnx")
    onnx.checker.check_model(proto, full_check=True)
    return proto


def names(values):
    return [value.name for value in values]


def test_a_part_takes_and_gives_inner_values(smelt, write, tmp_path):
    proto = part(smelt, write(CHAIN), tmp_path, "--inputs", "a", "--outputs", "c")
    assert (names(proto.graph.input), names(proto.graph.output)) == (["a"], ["c"])
    assert [node.op_type for node in proto.graph.node] == ["Relu", "Add"]
    assert names(proto.graph.initializer) == ["v"]
    [dim, four] = proto.graph.input[0].type.tensor_type.shape.dim
    assert (dim.dim_param, four.dim_value) == ("B", 4)
    x = np.array([[1, -1, 2, -2]], np.float32)
    np.testing.assert_array_equal(run(proto, [x])[0], [[6, 6, 9, 8]])


def test_omitted_ends_are_those_of_the_model(smelt, write, tmp_path):
    proto = part(smelt, write(CHAIN), tmp_path, "--outputs", "u")
    assert (names(proto.graph.input), names(proto.graph.initializer)) == (["x"], ["w"])
    proto = part(smelt, write(CHAIN), tmp_path, "--inputs", "b,z,a")
    assert (names(proto.graph.input), names(proto.graph.output)) == (["b", "z", "a"], ["y", "u"])
    assert [node.op_type for node in proto.graph.node] == ["Add", "Sub", "Exp"]


def test_weights_become_inputs_and_order_is_that_of_the_names(smelt, write, tmp_path):
    proto = part(smelt, write(CHAIN), tmp_path, "--inputs", "v,w,x", "--outputs", "c,a")
    assert (names(proto.graph.input), names(proto.graph.output)) == (["v", "w", "x"], ["c", "a"])
    assert not proto.graph.initializer


def test_branches_see_the_new_input(smelt, write, tmp_path):
    proto = part(smelt, write(BRANCH), tmp_path, "--inputs", "p,a,b", "--outputs", "y")
    assert [node.op_type for node in proto.graph.node] == ["If"]
    a, b = np.ones(4, np.float32), np.full(4, 3, np.float32)
    np.testing.assert_array_equal(run(proto, [np.array(True), a, b])[0], [2, 3, 4, 5])
    np.testing.assert_array_equal(run(proto, [np.array(False), a, b])[0], -b)
    proto = part(smelt, write(BRANCH), tmp_path, "--outputs", "b")
    assert [node.op_type for node in proto.graph.node] == ["Exp"]


def test_one_of_two_results_is_cut_while_the_other_is_needed(smelt, write, tmp_path):
    text = HEADER + (
        "g (float[4] x) => (float[2] y) <int64[2] s = {2, 2}> "
        "{ a, b = Split(x, s) c = Exp(a) y = Add(c, b) }"
    )
    proto = part(smelt, write(text), tmp_path, "--inputs", "x,a", "--outputs", "y")
    x, a = np.arange(4, dtype=np.float32), np.zeros(2, np.float32)
    np.testing.assert_array_equal(run(proto, [x, a])[0], [3, 4])


def test_functions_stay_only_where_they_are_called(smelt, write, tmp_path):
    text = (
        '<ir_version: 10, opset_import: ["" : 20, "my" : 1]>\n'
        "g (float[4] x) => (float[4] y) { a = my.f(x) b = my.h(a) y = Exp(b) }"
        '<domain: "my", opset_import: ["" : 20]> f (p) => (q) { q = Neg(p) }'
        '<domain: "my", opset_import: ["" : 20]> h (p) => (q) { q = Abs(p) }'
    )
    proto = part(smelt, write(text), tmp_path, "--inputs", "a")
    assert names(proto.functions) == ["h"]


def test_weights_beside_the_model_stay_beside(smelt, tmp_path, write):
    proto = onnx.load(write(CHAIN.replace("float[4] v = {5,6,7,8}", "float[4] v = {5,6,7,8}")))
    for tensor in proto.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.ones((64, 4), np.float32), tensor.name))
    options = {"save_as_external_data": True, "size_threshold": 0, "location": "w.data"}
    onnx.save(proto, tmp_path / "big.onnx", **options)
    part(smelt, tmp_path / "big.onnx", tmp_path, "--outputs", "a")
    assert (tmp_path / "part.onnx.data").stat().st_size < 2 * (tmp_path / "w.data").stat().st_size
    [weight] = onnx.load(tmp_path / "part.onnx").graph.initializer
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(weight), np.ones((64, 4)))


def test_an_input_with_a_default_becomes_a_weight(smelt, write, tmp_path):
    proto = onnx.load(write(CHAIN))
    default = onnx.numpy_helper.from_array(np.ones(4, np.float32), "z")
    proto.graph.initializer.append(default)
    (tmp_path / "d.onnx").write_bytes(proto.SerializeToString())
    cut = part(smelt, tmp_path / "d.onnx", tmp_path, "--inputs", "c", "--outputs", "y")
    assert (names(cut.graph.input), names(cut.graph.initializer)) == (["c"], ["z"])
    kept = part(smelt, tmp_path / "d.onnx", tmp_path, "--outputs", "y", "--inputs", "c,z")
    assert (names(kept.graph.input), names(kept.graph.initializer)) == (["c", "z"], ["z"])


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--outputs", "cc"), "E618", "did you mean 'c'?"),
        (("--outputs", "q"), "E618", "no value 'q'"),
        (("--inputs", "a,a"), "E618", "listed twice"),
        (("--inputs", "b", "--outputs", "y"), "E619", "z: "),
        (("--inputs", "b", "--outputs", "y"), "E619", "--inputs b,z"),
        (("--inputs", "z", "--outputs", "c"), "E619", "x: "),
        ((), "E637", "--outputs"),
    ],
)
def test_wrong_inputs_and_outputs_are_refused(smelt, write, tmp_path, arguments, code, says):
    result = smelt("extract", write(CHAIN), *arguments, "-o", tmp_path / "p.onnx")
    assert (result.exit_code, result.stderr[:4]) == (2, code)
    assert says in result.stderr
    assert not (tmp_path / "p.onnx").exists()


def test_values_of_inner_graphs_and_without_types_are_refused(smelt, write, tmp_path):
    out = ("-o", tmp_path / "p.onnx")
    inner = smelt("extract", write(BRANCH), "--outputs", "r", *out)
    assert "value of an inner graph" in inner.stderr
    text = (
        '<ir_version: 10, opset_import: ["" : 20, "other" : 1]>\n'
        "g (float[4] x) => (float[4] y) { a = other.F(x) y = Exp(a) }"
    )
    for side in ("--inputs", "--outputs"):
        unknown = smelt("extract", write(text), side, "a", *out)
        assert (unknown.exit_code, unknown.stderr[:4]) == (2, "E620")
        assert "other.F" in unknown.stderr


def test_names_with_commas_streams_json_and_python(smelt, write, tmp_path, document):
    proto = onnx.load(write(CHAIN))
    proto.graph.node[0].output[0] = "a,1"
    proto.graph.node[1].input[0] = proto.graph.node[4].input[0] = "a,1"
    data = proto.SerializeToString()
    result = smelt("extract", "-", "--inputs", "a,1", "--outputs", "b,u", "-o", "-", stdin=data)
    assert result.exit_code == 0, result.stderr
    assert names(onnx.load_model_from_string(result.stdout_bytes).graph.input) == ["a,1"]
    assert "2 of 5 nodes" in result.stderr
    facts = document(
        smelt("extract", write(MODEL), "--outputs", "h", "-o", tmp_path / "p.onnx", "--json")
    )
    assert facts["outputs"] == [{"name": "h", "type": "float[B,4]"}]
    taken = api.extract(write(MODEL), outputs=["h"])
    assert [node.op_type for node in taken.graph] == ["Identity", "MatMul"]
