"""The measured tolerance is as wide as rounding moves a result, and no wider."""

import gc
import weakref

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from smelt.check.comparison_side import open_side
from smelt.check.measure import FLOOR_ULP, PERTURBED_RUNS, Yardstick, allowance, jitter
from smelt.errors import Unsupported
from smelt.ir.floats import ulp_distance
from smelt.runtime.runner import open_runner

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'


def allowed(text, *inputs):
    subject = open_side(ir.from_onnx_text(HEADER + text), "m")
    outputs = list(subject.run(*inputs))
    return outputs, allowance(outputs, Yardstick(subject).movement(inputs, outputs))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_jitter_moves_each_number_by_one_ulp(dtype):
    x = np.linspace(-3, 3, 101).astype(dtype)
    moved = jitter(x, np.random.default_rng(0))
    assert moved.dtype == x.dtype
    nonzero = x != 0
    distance = ulp_distance(x, moved)
    # At a power of two bfloat16 may take two of the smaller steps below it.
    assert (distance[nonzero] >= 1).all()
    assert (distance <= 2).all()


def test_jitter_leaves_zeros_and_specials():
    x = np.float32([0, -0.0, np.nan, np.inf, 3.4028235e38])
    moved = jitter(x, np.random.default_rng(0))
    assert moved[:4].tobytes() == x[:4].tobytes()
    assert np.isfinite(moved[4])


def test_a_copy_gets_a_few_ulp():
    x = np.float32([1.0, 2.0, 4.0])
    _, (slack,) = allowed("g (float[3] x) => (float[3] y) { y = Neg(x) }", x)
    assert (slack >= FLOOR_ULP * np.spacing(x)).all()
    assert (slack <= 64 * np.spacing(np.float32(4))).all()


def test_cancellation_gets_more():
    text = "g (float[1] x) => (float[1] y) <float[1] c = {-1000000}> { y = Add(x, c) }"
    (y,), (slack,) = allowed(text, np.float32([1000001]))
    assert slack[0] > 1000 * np.spacing(y[0])


def test_an_index_that_a_tie_decides_is_not_determined():
    text = "g (float[9,4] x) => (int64[9] i) { i = ArgMax<axis = 1, keepdims = 0>(x) }"
    _, (tie,) = allowed(text, np.ones((9, 4), np.float32))
    _, (clear,) = allowed(text, np.ones((9, 4), np.float32) * np.float32([1, 1, 2, 1]))
    assert np.isinf(tie).sum() > 4
    assert (clear == 0).all()


def test_weights_move_as_well_as_inputs():
    weights = ", ".join(str(1 + i / 7) for i in range(64))
    text = f"g (int64[2] i) => (float[2,8] y) <float[8,8] w = {{{weights}}}> {{ y = Gather(w, i) }}"
    subject = open_side(ir.from_onnx_text(HEADER + text), "m")
    inputs = [np.int64([0, 3])]
    outputs = list(subject.run(*inputs))
    (movement,) = Yardstick(subject).movement(inputs, outputs)
    assert (movement > 0).all()


def test_numbers_below_the_normal_ones_may_be_flushed():
    tiny = np.asarray([5e-39, 1.0], np.float32)
    [allowed] = allowance([tiny], [np.zeros(2)])
    assert allowed[0] >= 5e-39
    assert allowed[1] < 1e-6
    [half] = allowance([np.asarray([1e-7], np.float16)], [np.zeros(1)])
    assert half[0] < 1e-6


def test_rounding_inside_of_functions_counts():
    plain = "g (float[4] x) => (float[4] y) { t = Tanh(x) one = Constant<value_float=1.0>() "
    plain += "y = Add(t, one) }"
    called = (
        '<ir_version: 10, opset_import: ["" : 20, "f" : 1]>\n'
        "g (float[4] x) => (float[4] y) { y = f.squash(x) }\n"
        '<domain: "f", opset_import: ["" : 20]>\n'
        "squash (x) => (y) { t = Tanh(x) one = Constant<value_float=1.0>() y = Add(t, one) }"
    )
    x = np.float32([-7, -6, -5, 1])
    _, expected = allowed(plain, x)
    model = ir.from_onnx_text(called)
    for value in model.functions["f", "squash", ""].graph.node(0).outputs:
        value.dtype = ir.DataType.FLOAT
    subject = open_side(model, "m")
    outputs = list(subject.run(x))
    slack = allowance(outputs, Yardstick(subject).movement([x], outputs))
    np.testing.assert_allclose(slack[0], expected[0], rtol=0.9)


@pytest.fixture
def opened(monkeypatch):
    """Record the sessions that are opened for perturbed runs; only one of them exists at a time."""
    found = []

    def watched(*args, **options):
        gc.collect()  # What counts lines may leave a run in a cycle.
        assert not [ref for ref in found if ref() is not None], "a perturbed run is still open"
        runner = open_runner(*args, **options)
        found.append(weakref.ref(runner))
        return runner

    monkeypatch.setattr("smelt.check.measure.open_runner", watched)
    return found


def test_one_session_runs_all_twins_of_all_runs(opened):
    source = ir.from_onnx_text(HEADER + "g (float[3] x) => (float[3] y) { y = Exp(x) }")
    runs = [([x], [np.exp(x)]) for x in (np.float32([0.5, 1, 2]), np.float32([3, 4, 5]))]
    together = Yardstick(source).movements(runs)
    assert len(opened) == 1
    apart = [Yardstick(source).movement(*run) for run in runs]
    np.testing.assert_array_equal(together, apart)


def test_each_twin_of_a_model_with_functions_rounds_in_its_own_way(opened):
    model = ir.from_onnx_text(
        '<ir_version: 10, opset_import: ["" : 20, "f" : 1]>\n'
        "g (float[3] x) => (float[3] y) { y = f.power(x) }\n"
        '<domain: "f", opset_import: ["" : 20]>\npower (x) => (y) { y = Exp(x) }'
    )
    x = np.float32([0.5, 1, 2])
    (movement,) = Yardstick(model).movement([x], [np.exp(x)])
    assert len(opened) == PERTURBED_RUNS
    assert (movement > 0).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float", "double", "float8e4m3fn"])
def test_weights_of_every_type_move(dtype):
    """Also a weight that a branch captures, and one that is an output; new names must be free."""
    model = ir.from_onnx_text(
        HEADER + f"g (bool factor_0, {dtype}[8] x) => ({dtype}[8] factor_1, float[8] z, "
        f"{dtype}[8] w) {{ factor_1 = If(factor_0) <then_branch = t () => ({dtype}[8] a) "
        f"{{ a = Identity(w) }}, else_branch = e () => ({dtype}[8] b) {{ b = Identity(x) }}> "
        "c = Cast<to=1>(x) z = Exp(c) }"
    )
    kind = model.graph.inputs[1].dtype
    weight = np.linspace(1, 1.5, 8).astype(kind.numpy())
    tensor = ir.Tensor(weight, dtype=kind, name="w")
    old = next(v for v in model.graph.outputs if v.name == "w")
    value = ir.Value(name="w", type=old.type, shape=ir.Shape([8]), const_value=tensor)
    model.graph.register_initializer(value)
    model.graph.outputs[2] = value
    for node in model.graph.node(0).attributes["then_branch"].as_graph():
        node.replace_input_with(0, value)
    x = np.ones(8, kind.numpy())
    outputs = open_side(model, "m").run(np.asarray(True), x)
    taken, power, given = Yardstick(model).movement([np.asarray(True), x], outputs)
    assert (taken > 0).all()
    np.testing.assert_array_equal(given, taken)
    assert (power > 0).all()
    assert model.graph.initializers["w"].const_value is tensor


def test_a_perturbed_model_without_a_kernel_runs_in_the_reference_evaluator(monkeypatch):
    """ONNX Runtime fails after it was given the weights; the next runner needs them, too."""

    def refuses(*_):
        raise Unsupported("E220", "no kernel")

    weights = np.linspace(1, 2, 2048, dtype=np.float32)
    source = ir.from_onnx_text(
        HEADER + "g (float[1] x, float[2048] w) => (float[2048] y) { y = Add(x, w) }"
    )
    value = source.graph.inputs.pop()
    value.const_value = ir.Tensor(weights, name="w")
    source.graph.register_initializer(value)
    monkeypatch.setattr("smelt.runtime.onnxruntime._open", refuses)
    x = np.float32([0.3])
    (movement,) = Yardstick(source).movement([x], [x + weights])
    assert (movement > 0).all()
    assert (movement < 1e-5).all()
