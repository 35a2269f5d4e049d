"""Models with fewer bits: within the error, in the forms of the table, the same each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import scope
from smelt.precision.error import find_metric
from smelt.precision.int8.written import Writing
from smelt.runtime.onnxruntime import OnnxRuntime

RNG = np.random.default_rng(0)

MODELS = {
    "matmul": ("float[B,16] x", "float[B,32] y", "{ y = MatMul(x, w) }", {"w": (16, 32)}),
    "gemm": (
        "float[B,16] x",
        "float[B,32] y",
        "{ y = Gemm<transB=1>(x, w, b) }",
        {"w": (32, 16), "b": (32,)},
    ),
    "transposed": (
        "float[B,16] x",
        "float[B,32] y",
        "{ t = Transpose<perm=[1,0]>(w) y = MatMul(x, t) }",
        {"w": (32, 16)},
    ),
    "rank 3": ("float[B,4,16] x", "float[B,4,8] y", "{ y = MatMul(x, w) }", {"w": (16, 8)}),
    "convolutions": (
        "float[B,3,8,8] x",
        "float[B,8,1,1] y",
        """{ c = Conv<pads=[1,1,1,1]>(x, w, b) r = Relu(c) d = Conv<pads=[1,1,1,1]>(r, v)
             s = Add(r, d) y = GlobalAveragePool(s) }""",
        {"w": (8, 3, 3, 3), "b": (8,), "v": (8, 8, 3, 3)},
    ),
    "result that is read and returned": (
        "float[B,3,8,8] x",
        "float[B,8,8,8] c, float[B,8,8,8] y",
        "{ c = Conv<pads=[1,1,1,1]>(x, w) y = Exp(c) }",
        {"w": (8, 3, 3, 3)},
    ),
    "shared weight": (
        "float[B,16] x",
        "float[B,16] y",
        "{ a = MatMul(x, w) t = Tanh(a) m = MatMul(t, w) y = Add(m, a) }",
        {"w": (16, 16)},
    ),
    "embedding": (
        "int64[B,4] x",
        "float[B,4,8] y",
        "{ e = Gather(w, x) y = MatMul(e, v) }",
        {"w": (50, 16), "v": (16, 8)},
    ),
    "tied embedding": (
        "int64[B,4] x",
        "float[B,4,50] y",
        "{ e = Gather(w, x) t = Transpose<perm=[1,0]>(w) y = MatMul(e, t) }",
        {"w": (50, 16)},
    ),
    "both branches": (
        "float[B,16] x, bool c",
        "float[B,16] y",
        """{ m = MatMul(x, w) y = If(c) <
             then_branch = a () => (float[B,16] p) { p = MatMul(m, w) },
             else_branch = b () => (float[B,16] q) { q = Relu(m) }> }""",
        {"w": (16, 16)},
    ),
}


def model(name: str, opset: int = 17) -> Any:
    inputs, outputs, body, weights = MODELS[name]
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> f ({inputs}) => ({outputs}) {body}'
    )
    rng = np.random.default_rng(1)
    for weight, shape in weights.items():
        array = rng.normal(0, 0.3, shape).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, weight))
    return smelt.load(proto)


def data(name: str, count: int = 8) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(2)
    made = []
    for number in range(count):
        sample: dict[str, np.ndarray] = {}
        for text in MODELS[name][0].split(", "):
            dtype, _, rest = text.partition("[")
            shape = [int(d.replace("B", "2")) for d in rest.partition("]")[0].split(",") if rest]
            if text.startswith("bool"):
                sample["c"] = np.asarray(bool(number % 2))
            elif dtype == "int64":
                sample["x"] = rng.integers(0, 50, shape)
            else:
                sample["x"] = rng.normal(size=shape).astype(np.float32)
        made.append(sample)
    return made


def error_of(first: Any, second: Any, samples: list[dict[str, np.ndarray]]) -> float:
    sides = []
    for side in (first, second):
        run = OnnxRuntime(side, optimized=True)
        names = [port.name for port in run.interface.outputs]
        inputs = [port.name for port in run.interface.inputs]
        sides.append(
            [
                {k: np.asarray(v) for k, v in zip(names, run(*(s[i] for i in inputs)), strict=True)}
                for s in samples
            ]
        )
    return find_metric()(*sides)


def operators(result: Any) -> list[str]:
    return [node.op_type for node in scope.nodes(result.model)]


@pytest.mark.parametrize("activations", ["auto", "static", "dynamic", "float"])
@pytest.mark.parametrize("name", MODELS)
def test_the_error_stays_within_the_limit(name: str, activations: Any) -> None:
    samples = data(name)
    result = smelt.quantize(model(name), samples, within="4%", activations=activations)
    assert result.chosen
    assert result.error <= 0.04
    assert error_of(model(name), result.model, samples[1::2]) == pytest.approx(
        result.error, abs=1e-6
    )
    onnx.checker.check_model(smelt.to_proto(result.model), full_check=True)


@pytest.mark.parametrize(
    ("name", "activations", "present", "absent"),
    [
        ("matmul", "static", ["QuantizeLinear", "DequantizeLinear"], ["MatMulInteger"]),
        ("gemm", "dynamic", ["DynamicQuantizeLinear", "MatMulInteger"], ["Gemm"]),
        ("rank 3", "float", ["DequantizeLinear", "MatMul"], ["QuantizeLinear"]),
        ("embedding", "float", ["Gather", "DequantizeLinear"], ["QuantizeLinear"]),
    ],
)
def test_forms(name: str, activations: Any, present: list[str], absent: list[str]) -> None:
    result = smelt.quantize(model(name), data(name), within="9%", activations=activations)
    assert set(present) <= set(operators(result))
    assert not set(absent) & set(operators(result))


def test_a_residual_sum_of_convolutions_is_between_integers() -> None:
    result = smelt.quantize(model("convolutions"), data("convolutions"), within="9%")
    (add,) = (node for node in scope.nodes(result.model) if node.op_type == "Add")
    assert [v.producer().op_type for v in add.inputs] == ["DequantizeLinear"] * 2


def test_equal_data_give_equal_models() -> None:
    texts = [
        smelt.to_proto(
            smelt.quantize(model("convolutions"), data("convolutions"), within="3%").model
        ).SerializeToString(deterministic=True)
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


def test_int4_without_data_is_smaller_and_says_that_inputs_are_random() -> None:
    result = smelt.quantize(model("matmul"), within=0.3, weights="int4", block=16)
    assert "random inputs" in result.note
    assert {v.dtype.name for v in result.model.graph.initializers.values()} >= {"INT4"}


def test_products_in_branches_stay_and_are_named() -> None:
    result = smelt.quantize(model("both branches"), data("both branches"), within="9%")
    assert "branch" in result.kept["p"]


@pytest.mark.parametrize("opset", [9, 12, 21])
def test_opsets(opset: int) -> None:
    result = smelt.quantize(model("convolutions", opset), data("convolutions"), within="3%")
    assert error_of(model("convolutions"), result.model, data("convolutions")) <= 0.05


def test_kept_operators_stay_in_float() -> None:
    name = "convolutions"
    with pytest.raises(UsageError) as raised:
        smelt.quantize(model(name), data(name), keep=["Conv"])
    assert raised.value.code == "E678"


def test_a_quantized_model_is_left_as_it_is() -> None:
    first = smelt.quantize(model("matmul"), data("matmul"), within="4%").model
    with pytest.raises(UsageError) as raised:
        smelt.quantize(first, data("matmul"), within="4%")
    assert raised.value.code == "E678"


def test_activations_that_are_all_zero_and_channels_that_are_all_zero() -> None:
    work = model("convolutions")
    weight = work.graph.initializers["w"].const_value.numpy().copy()
    weight[2] = 0
    work.graph.initializers["w"].const_value = onnx_tensor(weight)
    zeros = [{"x": 0 * sample["x"]} for sample in data("convolutions")]
    result = smelt.quantize(work, zeros, within="4%")
    assert result.error <= 0.04


def onnx_tensor(array: np.ndarray) -> Any:
    import onnx_ir as ir

    return ir.Tensor(array)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"within": 1e-9}, "E677"),
        ({"calibrate": None, "activations": "static"}, "E683"),
        ({"weights": "int2"}, "E679"),
        ({"activations": "both"}, "E679"),
        ({"weights": "int4", "block": 5}, "E679"),
        ({"ranges": "median"}, "E679"),
        ({"ranges": "mse", "calibrate": None}, "E679"),
        ({"weights": "int4", "per_tensor": True}, "E679"),
        ({"weights": "int4", "ranges": "mse"}, "E679"),
        ({"weights": "nf4", "gain": "cycles", "cpu": "cortex-m4"}, "E679"),
        ({"calibrate": [{"x": np.zeros((0, 16), np.float32)}] * 4}, "E684"),
        ({"metric": "mse"}, "E686"),
        ({"labels": np.arange(3), "metric": "top1"}, "E685"),
    ],
)
def test_wrong_use(arguments: dict[str, Any], code: str) -> None:
    with pytest.raises(UsageError) as raised:
        smelt.quantize(model("matmul"), **{"calibrate": data("matmul"), **arguments})
    assert raised.value.code == code


def test_labels_and_functions_see_all_samples_that_are_held_out() -> None:
    samples = data("gemm", count=40)
    labels = np.arange(80) % 32
    result = smelt.quantize(model("gemm"), samples, within=90, metric="top1", labels=labels)
    assert result.chosen
    counts = set()

    def metric(reference: Any, outputs: Any) -> float:
        counts.add(len(outputs))
        return 0.0

    smelt.quantize(model("gemm"), samples, metric=metric)
    assert counts == {10}  # of 20 held out, the search chooses by ten


def test_the_first_step_is_told_if_nothing_fits() -> None:
    with pytest.raises(UsageError, match="no product can be quantized") as raised:
        smelt.quantize(model("matmul"), data("matmul"), within=1e-9)
    assert "the best one, y" in raised.value.at[0]
    limit = raised.value.fix.removeprefix("allow more: --within ")
    assert limit.endswith("%")
    assert smelt.quantize(model("matmul"), data("matmul"), within=limit).chosen


def test_a_form_that_errs_more_as_written_gives_way_to_the_best_form_alone(monkeypatch) -> None:
    write = Writing.write

    def static_is_worse(self: Any, chosen: Any) -> Any:
        """Return the written model, with an infinite error if a form is static."""
        made, error = write(self, chosen)
        return made, np.inf if "static" in chosen.values() else error

    monkeypatch.setattr(Writing, "write", static_is_worse)
    result = smelt.quantize(model("matmul"), data("matmul"), within="9%", activations="static")
    assert list(result.chosen.values()) == ["weights"]


def test_a_bias_beyond_its_codes_stays_in_float() -> None:
    work = model("convolutions")
    for name, index, number in (("w", 2, 0), ("b", 2, 1e6)):
        array = work.graph.initializers[name].const_value.numpy().copy()
        array[index] = number
        work.graph.initializers[name].const_value = onnx_tensor(array)
    result = smelt.quantize(
        work, data("convolutions"), within="9%", activations="static", per_tensor=True
    )
    assert error_of(work, result.model, data("convolutions")) < 0.09
    biases = [each.const_value for each in result.model.graph.initializers.values()]
    codes = [each.numpy() for each in biases if each is not None and each.dtype.name == "INT32"]
    assert all(np.abs(each).max() < 1 << 30 for each in codes)


def test_errors_alone_are_measured_on_samples_of_the_whole_data() -> None:
    samples = [{"x": 0 * each["x"]} for each in data("matmul", 20)] + data("matmul", 20)
    result = smelt.quantize(model("matmul"), samples, within="9%", activations="static")
    assert all(step.error > 0 for step in result.alone)


@pytest.mark.parametrize("name", ["matmul", "gemm", "convolutions"])
@pytest.mark.parametrize("activations", ["static", "dynamic"])
def test_the_target_host_computes_the_same(name: str, activations: Any) -> None:
    result = smelt.quantize(model(name), data(name), within="9%", activations=activations)
    (sample, *_) = data(name)
    compiled = smelt.compile(result.model, target="host", dims={"B": 2})
    run = OnnxRuntime(result.model)
    np.testing.assert_allclose(compiled(sample["x"])[0], run(sample["x"])[0], atol=2e-2)


@pytest.mark.parametrize("name", ["gemm", "convolutions", "tied embedding"])
def test_cycles_are_not_gained_by_weights_alone(name: str) -> None:
    settings: dict[str, Any] = {"within": "30%", "gain": "cycles", "cpu": "cortex-m4"}
    result = smelt.quantize(model(name), data(name), **settings)
    assert ("e" in result.kept) == (name == "tied embedding")  # a Gather has no other form
    assert "weights" not in result.chosen.values()
    with pytest.raises(UsageError, match="no product of the model") as raised:
        smelt.quantize(model(name), data(name), activations="float", **settings)
    assert raised.value.code == "E678"


@pytest.mark.parametrize("name", ["gemm", "convolutions", "embedding"])
def test_one_scale_per_weight(name: str) -> None:
    result = smelt.quantize(model(name), data(name), within="20%", per_tensor=True)
    scales = [node.inputs[1] for node in scope.nodes(result.model) if "Dequant" in node.op_type]
    assert all(len(scale.shape) == 0 for scale in scales)
    onnx.checker.check_model(smelt.to_proto(result.model), full_check=True)


def with_outliers(samples: list[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
    for sample in samples[::2]:
        sample["x"].flat[0] = 60
    return samples


@pytest.mark.parametrize("ranges", ["percentile", "entropy", "mse", "auto"])
def test_ranges_without_outliers_err_less(ranges: Any) -> None:
    samples = with_outliers(data("convolutions", 60))
    settings: dict[str, Any] = {"within": 0.9, "activations": "static", "weight_bits": 8}
    first, second = (
        smelt.quantize(
            model("convolutions"), samples[::2], held=samples[1::2], ranges=each, **settings
        )
        for each in ("minmax", ranges)
    )
    errors = [
        min(step.error for step in result.alone if step.form == "static")
        for result in (first, second)
    ]
    assert errors[1] < errors[0]


def test_eight_bits_of_weights_saturate_sums_of_pairs_and_seven_do_not() -> None:
    for bits, fits in ((8, False), (7, True)):
        result = smelt.quantize(
            model("matmul"), data("matmul"), within="9%", activations="dynamic", weight_bits=bits
        )
        (codes,) = (
            value.const_value.numpy().astype(int)
            for value in result.model.graph.initializers.values()
            if value.dtype.name == "INT8"
        )
        bound = 2 * 255 * np.abs(codes).max()
        assert (bound <= 32767) == fits


def test_ranges_tell_the_part_of_the_numbers_that_saturates() -> None:
    samples = data("matmul", 8)
    for sample in samples[1::2]:  # held out
        sample["x"] = (
            np.where(np.arange(16) < 4, np.float32(100), np.float32(0.5)) + 0 * sample["x"]
        )
    result = smelt.quantize(model("matmul"), samples, within=10.0, activations="static")
    assert list(result.chosen.values()) == ["static"]
    (coded,) = result.ranges.values()
    assert coded.saturated == 0.25
    assert 0.5 < coded.high < 100


def test_readers_of_one_weight_get_fewer_bits_together() -> None:
    source, samples = model("shared weight"), data("shared weight")
    together = smelt.quantize(source, samples, within="40%", activations="float")
    assert [len(each.nodes) for each in together.chosen] == [2]
    assert {point.bytes_saved for point in together.curve} == {3 * 16 * 16}
    apart = smelt.quantize(source, samples, within="40%", activations="dynamic")
    assert [len(each.nodes) for each in apart.chosen] == [1, 1]
