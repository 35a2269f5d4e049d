"""Running models: results, defaults, element types, sequences, and refusals."""

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from smelt.errors import InvalidModel, ResourceLimit, Unsupported, UsageError
from smelt.ir import text
from smelt.runtime import onnxruntime as ort_runner
from smelt.runtime.runner import open_runner, run

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'


def model(text: str) -> ir.Model:
    return ir.from_onnx_text(HEADER + text)


RUNNERS = ["onnxruntime", "reference"]


@pytest.mark.parametrize("runner", RUNNERS)
def test_runs_in_interface_order(runner):
    graph = model(
        "g (float[N] x, float[N] y) => (float[N] d, float[N] s) { s = Add(x, y)  d = Sub(x, y) }"
    )
    d, s = run(graph, [np.float32([3, 4]), np.float32([1, 1])], runner)
    assert d.tolist() == [2, 3]
    assert s.tolist() == [4, 5]


@pytest.mark.parametrize("runner", RUNNERS)
def test_an_input_with_a_default_may_be_left_out_or_given(runner):
    graph = model(
        "g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {10, 20}> { y = Add(x, w) }"
    )
    opened = open_runner(graph, runner)
    x = np.float32([1, 2])
    assert opened(x, None)[0].tolist() == [11, 22]
    assert opened(x, np.float32([0, 0]))[0].tolist() == [1, 2]


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float16])
def test_element_types_that_numpy_lacks(dtype):
    onnx_type = ir.DataType.from_numpy(np.dtype(dtype)).name.lower()
    graph = model(f"g ({onnx_type}[3] x) => ({onnx_type}[3] y) {{ y = Identity(x) }}")
    x = np.array([1, -2, 0.5]).astype(dtype)
    (y,) = run(graph, [x])
    assert y.dtype == x.dtype
    assert y.tobytes() == x.tobytes()


def test_falls_back_to_the_reference_where_onnxruntime_has_no_kernel():
    graph = model("g (int4[3] x) => (int4[3] y) { y = Identity(x) }")
    graph.opset_imports[""] = 21
    opened = open_runner(graph)
    assert opened.name == "reference"
    x = np.array([1, -2, 7]).astype(ml_dtypes.int4)
    assert opened(x)[0].astype(int).tolist() == [1, -2, 7]
    with pytest.raises(Unsupported) as caught:
        open_runner(graph, "onnxruntime")
    assert caught.value.code == "E220"


@pytest.mark.parametrize("runner", RUNNERS)
def test_sequences_go_in_and_out(runner):
    graph = model(
        "g (seq(float[N]) s, float[N] x) => (seq(float[N]) t, float[M] c) "
        "{ t = SequenceInsert(s, x)  c = ConcatFromSequence<axis=0>(t) }"
    )
    t, c = run(graph, [[np.float32([1])], np.float32([2, 3])], runner)
    assert [item.tolist() for item in t] == [[1], [2, 3]]
    assert c.tolist() == [1, 2, 3]


@pytest.mark.parametrize("runner", RUNNERS)
def test_empty_scalar_string_and_bool(runner):
    graph = model(
        "g (float[0,2] e, float x, bool[2] b) => (float[2,0] f, float y, bool[2] c) "
        "{ f = Transpose(e)  y = Neg(x)  c = Not(b) }"
    )
    f, y, c = run(
        graph,
        [np.zeros((0, 2), np.float32), np.float32(3).reshape(()), np.array([True, False])],
        runner,
    )
    assert f.shape == (2, 0)
    assert y == -3
    assert c.tolist() == [False, True]
    text = model("g (string[2] x) => (string[2] y) { y = Identity(x) }")
    assert run(text, [np.array(["a", "b"], object)], runner)[0].tolist() == ["a", "b"]


def test_large_weights_are_shared_and_the_model_stays_as_it_is():
    weights = np.arange(1 << 16, dtype=np.float32)
    graph = model(
        "g (float[65536] x) => (float[65536] y) <float[65536] w = {0}> { y = Add(x, w) }".replace(
            " = {0}", ""
        )
    )
    value = graph.graph.initializers.get("w") or ir.Value(name="w")
    node = graph.graph.node(0)
    value = next(v for v in node.inputs if v.name == "w")
    value.const_value = ir.Tensor(weights, name="w")
    graph.graph.register_initializer(value)
    before = value.const_value
    (y,) = run(graph, [np.ones(1 << 16, np.float32)])
    assert y[-1] == 65536
    assert value.const_value is before


WRONG_INPUTS = {
    "count": [np.float32([1])],
    "dtype": [np.float64([1, 2]), np.float32([1, 2])],
    "rank": [np.float32([[1, 2]]), np.float32([1, 2])],
    "size": [np.float32([1, 2, 3]), np.float32([1, 2])],
    "absent": [None, np.float32([1, 2])],
}


@pytest.mark.parametrize("inputs", WRONG_INPUTS.values(), ids=WRONG_INPUTS.keys())
def test_refuses_inputs_that_do_not_fit(inputs):
    graph = model("g (float[2] x, float[N] y) => (float[N] z) { z = Add(x, y) }")
    with pytest.raises(UsageError) as caught:
        run(graph, inputs)
    assert caught.value.code == "E632"
    assert caught.value.fix


def test_an_invalid_model_is_refused():
    graph = model("g (float[2] x, int64[2] y) => (float[2] z) { z = Add(x, y) }")
    with pytest.raises((InvalidModel, Unsupported)):
        run(graph, [np.float32([1, 2]), np.int64([1, 2])])


def test_a_run_that_fails_is_an_invalid_model():
    graph = model("g (float[2] x, int64[N] i) => (float[N] y) { y = Gather(x, i) }")
    with pytest.raises(InvalidModel) as caught:
        run(graph, [np.float32([1, 2]), np.int64([5])])
    assert caught.value.code == "E321"


def test_an_endless_loop_is_stopped():
    graph = model(
        "g (float[1] x) => (float[1] y) <bool go = {1}> { y = Loop<body = b (int64 i, bool c, float[1] v)"
        " => (bool d, float[1] w) { d = Identity(c)  w = Cos(v) }>(, go, x) }"
    )
    opened = ort_runner.OnnxRuntime(graph, time_limit=0.3)
    with pytest.raises(ResourceLimit) as caught:
        opened(np.float32([1]))
    assert caught.value.code == "E511"


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("count", ["three", ""])
@pytest.mark.parametrize("going", ["", "yes", "no"])
def test_a_loop_without_a_condition_goes_on(runner: str, count: str, going: str) -> None:
    source = f"""agraph (float[N] x) => (float[M] y)
        <int64 three = {{3}}, bool yes = {{1}}, bool no = {{0}}> {{
        y = Loop ({count}, {going}, x) <body = b (int64 i, bool on, float[K] s)
            => (bool still, float[L] t) <int64 last = {{2}}> {{
            still = Less (i, last) t = Concat <axis = 0> (s, x) }}> }}"""
    (result,) = open_runner(text.parse(source, 21), runner)(np.ones(2, np.float32))
    assert result.shape == ((2,) if going == "no" else (8,))


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("shape", ["", "2", "1,3"])
def test_scan_outputs_of_loops_are_stacked(runner: str, shape: str) -> None:
    kind = f"float[{shape}]" if shape else "float"
    source = f"""agraph ({kind} x) => ({kind} last, float y) <int64 three = {{3}}> {{
        last, y = Loop (three, , x) <body = b (int64 i, bool on, {kind} s)
            => (bool still, {kind} t, {kind} each) {{
            still = Identity (on) t = Add (s, x) each = Neg (s) }}> }}"""
    loop = text.parse(source, 21)
    loop.graph.outputs[1].shape = None
    x = np.ones([int(size) for size in shape.split(",") if size], np.float32)
    last, y = open_runner(loop, runner)(x)
    assert np.array_equal(last, 4 * x)
    assert np.array_equal(y, np.stack([-x, -2 * x, -3 * x]))


def test_without_onnxruntime_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(UsageError) as caught:
        open_runner(model("g (float x) => (float y) { y = Neg(x) }"))
    assert caught.value.code == "E631"
    assert "pip install" in caught.value.fix


def extension_model(text):
    return ir.from_onnx_text(f'<ir_version: 10, opset_import: ["" : 20, "smelt" : 1]>\n{text}')


@pytest.mark.parametrize("runner", RUNNERS)
def test_an_extension_operator_runs_by_its_function_body(runner):
    graph = extension_model(
        "g (float[B,3] x, float[3,4] w) => (float[B,4] y) "
        "{ a = Neg(x)  y = smelt.DotGeneral<lhs_contracting = [1], rhs_contracting = [0]>(a, w) }"
    )
    (y,) = run(graph, [np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)], runner)
    assert y.tolist() == [[-3] * 4] * 2


def test_an_extension_operator_beyond_onnx_runs_by_its_reference():
    graph = extension_model(
        "g (float[2,2] x) => (float[2,2] y) { y = smelt.ValidateNonsingular(x) }"
    )
    opened = open_runner(graph)
    assert opened.name == "reference"
    (y,) = opened(np.float32([[4, 2], [0, 5]]))
    assert y.tolist() == [[4, 2], [0, 5]]


def test_the_reference_evaluator_runs_operators_of_ours_without_log_lines(caplog) -> None:
    model = text.parse("g (double[2] x) => (double[2] y) { n = Neg(x) y = Erf(n) }", 23)
    open_runner(model, "reference")(np.ones(2))
    assert not caplog.records


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 8), (0, 3), ()])
def test_elements_of_half_a_byte_go_in_and_out(dtype: str, shape: tuple[int, ...]) -> None:
    dims = ",".join(map(str, shape))
    kind = f"{dtype}[{dims}]" if shape else dtype
    code = int(ir.DataType[dtype.upper()])
    graph = text.parse(
        f"g ({kind} x) => ({kind} y) {{ f = Cast<to=1>(x) y = Cast<to={code}>(f) }}", opset=23
    )
    x = (np.arange(np.prod(shape, dtype=int)) % 4).reshape(shape)
    given = x.astype(ir.DataType(code).numpy())
    (got,) = run(graph, [given], "onnxruntime")
    assert isinstance(got, np.ndarray)
    assert (got.dtype, got.shape) == (given.dtype, given.shape)
    np.testing.assert_array_equal(got.astype(np.float32), x)
