"""The gain of a form: bytes, nanoseconds of ONNX Runtime, instructions of a microcontroller."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest

import smelt
from smelt.errors import UsageError
from smelt.precision.int8.candidates import Candidate
from smelt.precision.int8.gains import gains_of
from smelt.precision.int8.search import equal_groups
from smelt.targets.c.cpu_costs import costs_of


def candidate(kind: str = "product", **given: Any) -> Candidate:
    forms = ("static", "dynamic", "weights") if kind == "product" else ("static", "weights")
    facts = {"macs": 1000, "weights": 100, "read": 10, "written": 20, **given}
    operator = "MatMul" if kind == "product" else "Conv"
    return Candidate(("y",), "x", operator, 300, forms=forms, kind=kind, **facts)


def test_bytes_are_those_of_the_weights_in_each_form() -> None:
    gains = gains_of("bytes")
    assert [gains.of(candidate(), form) for form in candidate().forms] == [300, 300, 300]


def test_time_counts_weights_that_are_read_and_operands_that_are_quantized() -> None:
    gains = gains_of("time")
    plain = gains.of(candidate(), "static")
    assert plain > 0
    assert gains.of(candidate(weights=200), "static") > plain
    assert gains.of(candidate(read=20), "static") < plain
    assert gains.of(candidate(), "dynamic") < plain
    assert gains.of(candidate(read=10_000), "static") < 0  # quantizing costs more than it saves


def test_a_depthwise_convolution_gains_by_its_results() -> None:
    gains = gains_of("time")
    assert gains.of(candidate("depthwise", macs=10**6), "static") == pytest.approx(20 * 0.12)
    assert gains.of(candidate("Conv", macs=10**6), "static") > 9000


def test_cycles_are_those_of_the_table_of_the_cpu() -> None:
    costs = costs_of("cortex-m4")
    assert costs is not None
    conv, integers = costs.kinds["Conv float"], costs.kinds["QLinearConv int8"]
    whole = 1000 * conv.macs + 4 * 20 * conv.written
    saved = whole - 1000 * integers.macs - 20 * integers.written
    assert gains_of("cycles", "cortex-m4").of(candidate("Conv"), "static") == pytest.approx(saved)


@pytest.mark.parametrize(
    ("kind", "cpu", "message"),
    [
        ("speed", None, "gain='speed'"),
        ("cycles", None, "needs a CPU"),
        ("cycles", "cortex-m9", "cpu=cortex-m9"),
        ("time", "cortex-m4", "has no effect"),
    ],
)
def test_wrong_choices(kind: str, cpu: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        gains_of(kind, cpu)
    assert caught.value.code == "E679"


def test_equal_candidates_are_measured_together_in_groups_of_a_size() -> None:
    small, large = candidate(), candidate(macs=2000)
    layers = [small, large, candidate(), candidate(macs=2000), candidate()]
    assert equal_groups(layers, 2) == [[small, small], [large, large], [small]]
    assert equal_groups(layers, 1) == [[each] for each in layers]


def narrow_products(body: str) -> Any:
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> f (float[B,64] x) => (float[B,N] y) {{ {body} }}'
    )
    rng = np.random.default_rng(0)
    for name, shape in {"w": (64, 64), "v": (64, 1)}.items():
        if f"{name})" in body:
            array = rng.normal(0, 0.3, shape).astype(np.float32)
            proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return smelt.load(proto)


CYCLES: dict[str, Any] = {
    "within": "50%",
    "gain": "cycles",
    "cpu": "cortex-m4",
    "activations": "static",
}


@pytest.mark.parametrize(
    ("body", "chosen"),
    [
        ("a = MatMul(x, w) r = Relu(a) y = MatMul(r, v)", ["a", "y"]),  # reads codes
        ("a = MatMul(x, w) r = Erf(a) y = MatMul(r, v)", ["a"]),  # would have to quantize them
        ("a = MatMul(x, w) r = Flatten(a) y = MatMul(r, v)", ["a", "y"]),
    ],
)
def test_a_product_that_would_take_more_cycles_stays_in_float(body: str, chosen: Any) -> None:
    data = {"x": np.random.default_rng(1).normal(size=(8, 64)).astype(np.float32)}
    result = smelt.quantize(narrow_products(body), data, **CYCLES)
    assert [each.name for each in result.chosen] == chosen
    kept = {"y": "it would take more cycles in integers"}
    assert result.kept == ({} if "y" in chosen else kept)


def test_a_pooling_in_codes_is_worth_a_small_product_behind_it() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> f (float[B,4,8,8] x) => (float[B,2] y) '
        "{ c = Conv(x, w) p = GlobalAveragePool(c) r = Flatten(p) y = MatMul(r, v) }"
    )
    rng = np.random.default_rng(0)
    for name, shape in {"w": (16, 4, 3, 3), "v": (16, 2)}.items():
        array = rng.normal(0, 0.3, shape).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    data = {"x": rng.normal(size=(64, 4, 8, 8)).astype(np.float32)}
    result = smelt.quantize(smelt.load(proto), data, **CYCLES)
    assert [each.name for each in result.chosen] == ["c", "y"]


def test_a_model_whose_only_product_would_take_more_cycles() -> None:
    data = {"x": np.random.default_rng(1).normal(size=(8, 64)).astype(np.float32)}
    with pytest.raises(UsageError, match="each product would take more cycles") as caught:
        smelt.quantize(narrow_products("y = MatMul(x, v)"), data, **CYCLES)
    assert caught.value.code == "E678"
