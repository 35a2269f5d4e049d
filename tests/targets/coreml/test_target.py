"""The target as a whole: interface, sizes, precision, refusals, the report, the check for a Mac."""

from __future__ import annotations

import ast
import io
import json

import numpy as np
import onnx_ir as ir
import pytest
from targets.coreml.packages import computed, constant, operations, types, written

import smelt
from smelt.errors import ErrorList, SmeltError
from smelt.ir import text
from smelt.mlpackage.interface import ArrayElement
from smelt.mlpackage.program import Element
from smelt.runtime.runner import run
from smelt.targets.coreml import coreml

F = np.float32
DENSE = (
    "g (float[B,8] x) => (float[B,4] y) <float[8,4] w = {"
    + ",".join(["0.5"] * 32)
    + "}> { m = MatMul(x, w) y = Softmax(m) }"
)


def described(artifact):
    return artifact.plan.steps.interfaces["main"]


def errors(model, **options):
    with pytest.raises(SmeltError) as caught:
        written(model, **options)
    return getattr(caught.value, "errors", (caught.value,))


def test_two_compiles_give_the_same_bytes():
    first, second = (written(DENSE, dims={"B": (1, 8)}, precision="fp16") for _ in range(2))
    assert dict(first.files) == dict(second.files)


def test_the_folder_is_saved_whole(tmp_path):
    written(DENSE, dims={"B": 2}).save(tmp_path / "m.mlpackage")
    names = sorted(
        str(p.relative_to(tmp_path / "m.mlpackage")) for p in tmp_path.rglob("*") if p.is_file()
    )
    assert names == [
        "Data/com.apple.CoreML/model.mlmodel",
        "Data/com.apple.CoreML/weights/weight.bin",
        "Manifest.json",
    ]


@pytest.mark.parametrize(
    ("body", "more", "operators"),
    [
        ("m = MatMul(x, w) y = Add(m, b)", "", ["linear"]),
        ("m = MatMul(x, w) y = Add(b, m)", "", ["linear"]),
        ("m = MatMul(x, w) s = Add(m, b) y = Mul(s, m)", "", ["linear", "add", "mul"]),
        ("y = MatMul(x, w) z = Add(y, b)", ", z", ["linear", "add"]),
        ("m = MatMul(x, w) y = Add(m, rows)", "", ["linear", "add"]),
    ],
)
def test_a_product_takes_its_bias(body, more, operators):
    model = (
        f"g (float[4,2,3] x) => (y{more}) <float[3,2] w = {{1,2,3,4,5,6}}, float[2] b = {{1,-1}},"
        f" float[4,1,2] rows = {{1,2,3,4,5,6,7,8}}> {{ {body} }}"
    )
    artifact = written(model)
    assert types(artifact) == operators
    x = np.arange(24, dtype=F).reshape(4, 2, 3)
    for found, wanted in zip(computed(artifact, x), run(text.parse(model), [x]), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_product_that_stays_in_float32_has_no_bias_of_float16():
    model = (
        "g (float[4,2,3] x) => (y) <float[3,2] w = {1,2,3,4,5,6}, float[2] b = {1,-1}>"
        " { m = MatMul(x, w) y = Add(m, b) }"
    )
    assert "add" in types(written(model, precision="fp16", keep="MatMul"))


def test_a_channel_shuffle_is_one_operation():
    artifact = written(
        "g (float[1,3,2,2] a, float[1,3,2,2] b) => (float[1,6,2,2] y)"
        " <int64[5] s = {1,2,3,2,2}, int64[4] e = {1,6,2,2}> { c = Concat<axis=1>(a, b)"
        " r = Reshape(c, s) t = Transpose<perm=[0,2,1,3,4]>(r) y = Reshape(t, e) }"
    )
    assert artifact.report["operators"] == {"concat": 1}


def test_a_range_of_sizes():
    (feature,) = described(written(DENSE, dims={"B": (2, 8)}, default="B=4")).inputs
    assert feature.type.shape == (4, 8)
    assert feature.type.ranges == ((2, 8), (8, 8))
    (result,) = described(written(DENSE, dims={"B": (2, 8)})).outputs
    assert result.type.shape == ()


def test_listed_sizes():
    (feature,) = described(
        written(DENSE, dims={"B": (1, 8)}, sizes="B=1,4,8", default="B=4")
    ).inputs
    assert feature.type.enumerated == ((4, 8), (1, 8), (8, 8))
    assert feature.type.ranges == ()


@pytest.mark.parametrize(
    ("option", "value"), [("sizes", "B=1,9"), ("sizes", "C=1"), ("default", "B=9")]
)
def test_sizes_outside_their_bounds_are_refused(option, value):
    (error,) = errors(DENSE, dims={"B": (1, 8)}, **{option: value})
    assert error.code == "E633"
    assert "--dim" in error.fix


@pytest.mark.parametrize(
    "options",
    [
        {"ios": 15},
        {"precision": "bf16"},
        {"io": "int8"},
        {"sizes": "B"},
        {"sizes": "B=0"},
        {"default": "B=x"},
    ],
)
def test_wrong_options_are_refused(options):
    (error,) = errors(DENSE, dims={"B": 1}, **options)
    assert error.code == "E660"


def test_an_open_size_needs_bounds():
    (error,) = errors(DENSE)
    assert error.code == "E401"
    assert error.why.startswith("a package states the least and the greatest size")
    assert "--dim NAME=1..16" in error.fix


def test_precision():
    half = written(DENSE, dims={"B": 1}, precision="fp16")
    assert types(half) == ["cast", "linear", "softmax", "cast"]
    assert {each.outputs[0].type.element for each in operations(half)[:-1]} == {Element.FLOAT16}
    assert described(half).inputs[0].type.element == ArrayElement.FLOAT32
    outside = written(DENSE, dims={"B": 1}, precision="fp16", io="fp16")
    assert types(outside) == ["linear", "softmax"]
    assert described(outside).inputs[0].type.element == ArrayElement.FLOAT16
    kept = written(DENSE, dims={"B": 1}, precision="fp16", keep="Softmax")
    assert types(kept) == ["cast", "linear", "cast", "softmax"]
    assert operations(kept)[-1].outputs[0].type.element == Element.FLOAT32


def test_a_weight_beyond_float16_is_refused_by_name():
    model = "g (float[2] x) => (float[2] y) <float[2] scale = {1.0, 70000.0}> { y = Mul(x, scale) }"
    (error,) = errors(model, precision="fp16")
    assert error.code == "E406"
    assert "'scale' has 7e+04" in error.why
    assert "--option keep=" in error.fix
    (result,) = computed(written(model, precision="fp16", keep="Mul"), np.ones(2, F))
    assert result.tolist() == [1, 70000]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = Where(c, x, low)", -(2**14)),
        ("f = Where(c, x, low) y = Min(f, low)", -65504),
        ("f = Neg(x) y = Where(c, x, high)", 65504),
    ],
)
def test_a_number_that_stands_for_infinity_becomes_one_of_float16(body, expected):
    model = (
        "g (float[2] x, bool[2] c) => (float[2] y) <float low = {-3.4e38}, float high = {1e9}>"
        f" {{ {body} }}"
    )
    artifact = written(model, precision="fp16")
    assert artifact.plan.facts["clamped"]
    (result,) = computed(artifact, np.ones(2, F), np.array([1, 0], bool))
    assert result[1] == expected


@pytest.mark.parametrize(
    "mask", ["m = Where(c, zero, low)", "n = Where(c, zero, low) m = Add(n, low)"]
)
def test_a_row_without_a_place_that_counts_is_not_nan(mask):
    model = (
        "g (float[4] x, bool[4] c) => (float[4] y) <float low = {-1e9}, float zero = {0}>"
        f" {{ {mask} s = Add(x, m) y = Softmax(s) }}"
    )
    artifact, scores = written(model, precision="fp16"), np.array([-40, -5, -30, 60], F)
    (result,) = computed(artifact, scores, np.zeros(4, bool))
    assert np.isfinite(result).all()
    (result,) = computed(artifact, scores, np.array([1, 0, 0, 0], bool))
    np.testing.assert_allclose(result, [1, 0, 0, 0], atol=1e-3)


REFUSED = {
    "E402 a double": "g (double[2] x) => (double[2] y) { y = Exp(x) }",
    "E402 an integer beyond 32 bits": "g (int64[2] x) => (int64[2] y) <int64 n = {4294967296}> { y = Add(x, n) }",
    "E404 six dims": "g (float[1,2,1,2,1,2] x) => (float[1,2,1,2,1,2] y) { y = Exp(x) }",
    "E407 an empty input": "g (float[0,2] x) => (float[0,2] y) { y = Exp(x) }",
    "E201 a bit shift": 'g (uint8[2] x, uint8[2] n) => (uint8[2] y) { y = BitShift <direction = "LEFT"> (x, n) }',
    "E201 indices of a maximum": "g (float[1,1,4,4] x) => (float[1,1,2,2] y, int64[1,1,2,2] i) { y, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) }",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_core_ml_lacks_is_refused(case):
    found = errors(REFUSED[case])
    assert {error.code for error in found} == {case.split()[0]}
    assert all(error.why and error.fix and error.at for error in found)


def test_a_number_beyond_float16_is_refused():
    model = "g (float[2,2] x, float[2,2] w) => (float[2,2] y) { y = Gemm <alpha = 1e6> (x, w) }"
    (error,) = errors(model, precision="fp16")
    assert error.code == "E406"
    assert "1e+06" in error.why
    (result,) = computed(written(model, precision="fp16", keep="Gemm"), *[np.eye(2, dtype=F)] * 2)
    assert result.max() == 1e6


def test_a_slice_that_is_empty_at_the_least_size_is_refused():
    model = "g (float[S] x) => (float[1] y) <int64[1] s = {5}, int64[1] e = {9}> { p = Slice(x, s, e) y = ReduceSum(p) }"
    (error,) = errors(model, dims={"S": (2, 8)})
    assert (error.code, error.fix) == ("E407", "raise the least size: --dim S=6..N")
    written(model, dims={"S": (2, 8)}, sizes="S=6,8")


def test_refusals_come_together():
    model = 'g (float[5,5] x, uint8[2] n) => (float y, uint8[2] m, float[5,5] z) { y = Det(x) m = BitShift <direction = "LEFT"> (n, n) z = Exp(x) }'
    assert len(errors(model)) == 2


def test_names_that_core_ml_forbids():
    parsed = text.parse("g (float[2] x) => (float[2] y) { y = Exp(x) }")
    parsed.graph.inputs[0].name, parsed.graph.outputs[0].name = "in/put.1", "1 out"
    artifact = smelt.compile(parsed, target=coreml)
    assert [each.name for each in described(artifact).inputs] == ["in_put_1"]
    assert [each.name for each in described(artifact).outputs] == ["_1_out"]
    assert artifact.report["names"] == {"in/put.1": "in_put_1", "1 out": "_1_out"}


def test_words_of_core_ml_are_no_names_of_values():
    model = "g (float[2] x) => (float[2] y) { tensor = Exp(x) y = Neg(tensor) }"
    names = [each.outputs[0].name for each in operations(written(model))]
    assert names == ["tensor_1", "y"]


def test_outputs_that_are_inputs_constants_or_each_other():
    model = "g (float[2] x) => (float[2] a, float[2] b, float[2] c, float[2] d) <float[2] k = {1, 2}> { a = Identity(x) b = Identity(k) c = Exp(x) d = Identity(c) }"
    x = np.array([0, 1], F)
    a, b, c, d = computed(written(model), x)
    assert a.tolist() == x.tolist()
    assert b.tolist() == [1, 2]
    np.testing.assert_allclose(c, np.exp(x), 1e-6)
    assert np.array_equal(c, d)


def test_quantized_weights_stay_integers():
    model = "g (float[2,4] x) => (float[2,2] y) <int8[4,2] q = {1, -2, 3, -4, 5, -6, 7, -8}, float[2] s = {0.5, 0.25}, int8[2] z = {0, 1}> { w = DequantizeLinear <axis = 1> (q, s, z) y = MatMul(x, w) }"
    x = np.arange(8, dtype=F).reshape(2, 4)
    weight = (np.array([[1, -2], [3, -4], [5, -6], [7, -8]]) - [0, 1]) * [0.5, 0.25]
    for ios, op_type in (
        (17, "constexpr_affine_dequantize"),
        (18, "constexpr_blockwise_shift_scale"),
    ):
        artifact = written(model, ios=ios)
        assert op_type in types(artifact)
        np.testing.assert_allclose(computed(artifact, x)[0], x @ weight, 1e-5)


def test_the_quantized_weight_of_a_transposed_convolution():
    model = "g (float[1,1,2] x) => (float[1,1,3] y) <int8[1,1,2] q = {2, 4}, float s = {0.5}> { w = DequantizeLinear(q, s) y = ConvTranspose(x, w) }"
    artifact = written(model)
    assert "constexpr_affine_dequantize" in types(artifact)
    (result,) = computed(artifact, np.array([[[1, 10]]], F))
    assert result.tolist() == [[[1, 12, 20]]]


def test_large_weights_are_constants_of_convolutions():
    weight = ",".join(["0"] * 65 * 64)
    for shape, node in (
        ("64,65,1", "Conv <dilations = [2]> (x, w)"),
        ("65,64,1", "ConvTranspose(x, w)"),
    ):
        model = f"g (float[1,65,2] x) => (float[1,64,2] y) <float[{shape}] w = {{{weight}}}> {{ y = {node} }}"
        assert types(written(model)) in (["conv"], ["conv_transpose"])


def test_weights_that_need_a_newer_system():
    model = "g (float[1,2] x) => (float[1,2] y) <int4[2,2] q = {225, 67}, float s = {0.5}> { w = DequantizeLinear(q, s) y = MatMul(x, w) }"
    (error,) = errors(model)  # 225 holds 1 and -2, 67 holds 3 and 4
    assert (error.code, error.fix) == ("E201", "add --option ios=18")
    assert computed(written(model, ios=18), np.ones((1, 2), F))[0].tolist() == [[2, 1]]


def test_the_report_says_what_was_not_checked():
    report = written(DENSE, dims={"B": 1}, precision="fp16").report
    assert "Apple's compiler" in report["checked"]
    assert report["placement"]["likely"] == 2
    assert report["placement"]["basis"].endswith("not measured")
    json.dumps(report)


def test_placement_of_open_sizes_and_float32():
    assert written(DENSE, dims={"B": (1, 4)}, precision="fp16").report["placement"]["likely"] == 0
    assert written(DENSE, dims={"B": 1}).report["placement"]["likely"] == 0


def test_the_check_for_a_mac(tmp_path):
    artifact = written(DENSE, dims={"B": (1, 3)}, precision="fp16", check=True, default="B=2")
    assert "model.mlpackage/Manifest.json" in artifact.files
    ast.parse(artifact.files["check_on_mac.py"])
    data = np.load(io.BytesIO(artifact.files["check_on_mac.npz"]))
    assert [data[f"{run}/in/x"].shape[0] for run in range(3)] == [1, 2, 3]
    weight = np.full((8, 4), 0.5, F)
    exponent = np.exp(data["1/in/x"] @ weight)
    np.testing.assert_allclose(data["1/out/y"], exponent / exponent.sum(1, keepdims=True), 1e-5)


def test_the_parameters_of_one_operation():
    model = (
        "g (float[1,2,5,5] x) => (float[1,3,2,3] y) <float[3,2,3,3] w = {"
        + ",".join(["1"] * 54)
        + "}> { y = Conv <pads = [0, 1, 1, 2], strides = [2, 2]> (x, w) }"
    )
    artifact = written(model)
    (conv,) = operations(artifact)
    assert conv.type == "conv"
    assert list(constant(artifact, conv, "pad")) == [0, 1, 1, 2]
    assert constant(artifact, conv, "pad_type") == "custom"
    assert list(constant(artifact, conv, "strides")) == [2, 2]


CACHE = "g (float[1,2] x, float[4,2] past, int64[1,1] at) => (float[4,2] present, float y) { present = ScatterND(past, at, x) y = ReduceSum <keepdims = 0> (present) }"
IMAGE = "g (float[1,3,4,4] x) => (float[1,3] y) <int64[2] axes = {2, 3}> { y = ReduceMean <keepdims = 0> (x, axes) }"


def test_one_function_a_size_with_shared_weights():
    artifact = written(
        DENSE, dims={"B": (1, 8)}, sizes="B=1,4,8", default="B=4", functions="fixed", ios=18
    )
    package = artifact.plan.steps
    assert list(package.program.functions) == ["B_1", "B_4", "B_8"]
    assert package.default_function == "B_4"
    assert package.interfaces["B_8"].inputs[0].type.shape == (8, 8)
    one = written(DENSE, dims={"B": 8}, ios=18)
    assert artifact.plan.memory.weight_bytes == one.plan.memory.weight_bytes


def test_a_cache_as_state():
    artifact = written(CACHE, states="past=present", ios=18)
    assert types(artifact)[0] == "read_state"
    assert "write_state" in types(artifact)
    interface = described(artifact)
    assert [each.name for each in interface.states] == ["past"]
    assert interface.states[0].type.element == ArrayElement.FLOAT16
    assert [each.name for each in interface.inputs] == ["x", "at"]
    assert [each.name for each in interface.outputs] == ["y"]


def test_a_state_beside_an_output_with_its_name():
    model = "g (float[1,2] x, float[1,2] past) => (float[1,2] now, float[1,2] past_out) { now = Add(past, x) past_out = Exp(now) }"
    artifact = written(model, states="past=now", ios=18)
    now, other = artifact.load()(np.ones((1, 2), F), np.zeros((1, 2), F))
    assert now.tolist() == [[1, 1]]
    np.testing.assert_allclose(other, np.exp(now), 1e-3)


def test_an_image_is_scaled_and_shifted_by_channel():
    artifact = written(IMAGE, images="x:RGB:0.5:1/2/3")
    assert described(artifact).inputs[0].type.width == 4
    (result,) = computed(artifact, np.ones((1, 3, 4, 4), F))
    assert result.tolist() == [[1.5, 2.5, 3.5]]


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (DENSE, {"functions": "fixed", "sizes": "B=1"}),
        (DENSE, {"functions": "fixed", "ios": 18}),
        (CACHE, {"states": "past=present"}),
        (CACHE, {"states": "x=present", "ios": 18}),
        (CACHE, {"states": "past=none", "ios": 18}),
        (CACHE, {"states": "past", "ios": 18}),
        (IMAGE, {"images": "z:RGB"}),
        (IMAGE, {"images": "x:GRAYSCALE"}),
        (IMAGE, {"images": "x:RGB:0"}),
        (IMAGE, {"images": "x:RGB:1:1/2"}),
    ],
)
def test_functions_states_and_images_that_do_not_fit_are_refused(model, options):
    (error,) = errors(model, dims={"B": (1, 8)} if model is DENSE else None, **options)
    assert error.code == "E660"
    assert error.why


@pytest.mark.parametrize("kind", [ir.SequenceType, ir.OptionalType])
def test_a_value_that_is_no_tensor_is_refused(kind):
    model = text.parse("g (float[2] x) => (float[2] y) { y = Identity(x) }")
    for value in (*model.graph.inputs, *model.graph.outputs):
        value.type = kind(value.type)
    with pytest.raises(ErrorList) as caught:
        smelt.compile(model, target=coreml)
    assert [error.code for error in caught.value.errors] == ["E201"] * 2
    assert "one input for each tensor" in caught.value.errors[0].fix


def test_an_array_with_integers_beyond_32_bits_is_refused():
    run = written("g (int64[2] x) => (int64[2] y) { y = Abs(x) }").load()
    assert run(np.array([-(2**31) + 1, 2**31 - 1]))[0].tolist() == [2**31 - 1] * 2
    with pytest.raises(SmeltError) as caught:
        run(np.array([1, 2**31]))
    assert caught.value.code == "E632"
