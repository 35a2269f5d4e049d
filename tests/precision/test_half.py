"""Models in float16 and bfloat16: what stays in float32, where casts stand, and wrong use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from sampling import sampled

import smelt
from smelt.compiler import optimize_model
from smelt.errors import UsageError
from smelt.ir import scope, text
from smelt.precision.half import HalfOptions, convert_to_half
from smelt.runtime.runner import run

G = "g (float[N,4] x) => (float[N,4] y)"
NUMBERS = "float[4,4] w = {0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1.1,1.2,1.3,1.4,1.5,1.6,1.7}"
MATRIX = f"<{NUMBERS}>"


def floats(*numbers: float) -> np.ndarray:
    return np.asarray(numbers, np.float32)


def converted(
    source: str, opset: int = 18, x: np.ndarray | None = None, **options: object
) -> ir.Model:
    """The model in half, converted on x or on 1, 2, 3, 4; it loads and its types are right."""
    model = typed(source, opset)
    feed = {"x": floats(1, 2, 3, 4).reshape(1, 4) if x is None else x}
    convert_to_half(model, HalfOptions(**options), [feed])  # type: ignore[arg-type]
    onnx.checker.check_model(smelt.to_proto(model), full_check=True)
    return model


def typed(source: str, opset: int = 18) -> ir.Model:
    model = text.parse(source, opset)
    optimize_model(model, pipeline="", opset=opset)
    return model


def operators(model: ir.Model) -> str:
    """The operators in order, those in half with an h in front."""
    half = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
    return " ".join(
        ("h" if any(v.dtype in half for v in node.outputs) else "") + node.op_type
        for node in scope.nodes(model)
    )


def test_sums_become_additions() -> None:
    """ONNX Runtime 1.32 crashes while it opens some models with a Sum beside casts."""
    source = f"{G} {MATRIX} {{ a = MatMul(x, w) b = Sum(a, a, a) c = Sum(b) y = MatMul(c, w) }}"
    assert operators(converted(source)) == "hCast hMatMul hAdd hAdd hSum hMatMul Cast"


PLACED: Mapping[str, tuple[str, str]] = {
    "a product between ports": (f"{G} {MATRIX} {{ y = MatMul(x, w) }}", "hCast hMatMul Cast"),
    "products share the cast of their operand": (
        f"{G} {MATRIX} {{ a = MatMul(x, w) b = MatMul(x, w) y = Mul(a, b) }}",
        "hCast hMatMul hMatMul hMul Cast",
    ),
    "a norm stays, and nothing is in half for its own sake": (
        f"{G} {{ a = Relu(x) y = Softmax(a) }}",
        "Relu Softmax",
    ),
    "a move between two kept nodes stays": (
        f"{G} {MATRIX} {{ a = MatMul(x, w) b = Softmax(a) c = Relu(b) y = Softmax(c) }}",
        "hCast hMatMul Cast Softmax Relu Softmax",
    ),
    "a residual sum joins the norm behind it": (
        f"{G} {MATRIX} {{ a = MatMul(x, w) b = Add(a, x) y = Softmax(b) }}",
        "hCast hMatMul Cast Add Softmax",
    ),
    "a residual sum between products is in half": (
        f"{G} {MATRIX} {{ a = MatMul(x, w) b = MatMul(a, w) c = Add(a, b) y = MatMul(c, w) }}",
        "hCast hMatMul hMatMul hAdd hMatMul Cast",
    ),
    "a large constant stays": (
        f"{G} <{NUMBERS}, float m = {{-3.4e38}}> "
        "{ a = MatMul(x, w) b = Max(a, m) y = MatMul(b, w) }",
        "hCast hMatMul Cast Max hCast hMatMul Cast",
    ),
    "a number near 0 stays": (
        f"{G} <{NUMBERS}, float e = {{1e-5}}> "
        "{ a = MatMul(x, w) b = Add(a, e) y = MatMul(b, w) }",
        "hCast hMatMul Cast Add hCast hMatMul Cast",
    ),
    "an infinite constant is exact in half": (
        f"{G} <{NUMBERS}, float m = {{-inf}}> "
        "{ a = MatMul(x, w) b = Max(a, m) y = MatMul(b, w) }",
        "hCast hMatMul hMax hMatMul Cast",
    ),
    "a shape is read off the half value": (
        f"g (float[N,4] x) => (float[N,4] y, int64[2] s) {MATRIX} "
        "{ a = MatMul(x, w) s = Shape(a) y = MatMul(a, w) }",
        "hCast hMatMul Shape hMatMul Cast",
    ),
    "an output that others read keeps its type": (
        f"g (float[N,4] x) => (float[N,4] a, float[N,4] y) {MATRIX} "
        "{ a = MatMul(x, w) y = MatMul(a, w) }",
        "hCast hMatMul Cast hMatMul Cast",
    ),
}


@pytest.mark.parametrize(("source", "expected"), PLACED.values(), ids=PLACED)
def test_casts_are_few(source: str, expected: str) -> None:
    assert operators(converted(source)) == expected


def test_what_overflows_by_its_range_stays() -> None:
    source = f"{G} {MATRIX} {{ a = MatMul(x, w) b = MatMul(a, w) y = MatMul(b, w) }}"
    x = floats(2000, 2000, 2000, 2000).reshape(1, 4)
    found = converted(source, x=x)
    assert operators(found) == "hCast hMatMul Cast MatMul MatMul"
    assert operators(converted(source)) == "hCast hMatMul hMatMul hMatMul Cast"


def test_angles_stay_up_to_the_weights_behind_them() -> None:
    source = f"{G} {MATRIX} {{ a = MatMul(x, w) b = Mul(a, a) c = Sin(b) y = MatMul(c, w) }}"
    assert operators(converted(source)) == "hCast hMatMul Cast Mul Sin hCast hMatMul Cast"


def test_constants_of_both_types_are_stored_twice_only_if_both_are_read() -> None:
    source = f"{G} {MATRIX} {{ a = MatMul(x, w) y = Softmax(a) }}"
    model = converted(source)
    assert {v.name: v.dtype for v in model.graph.initializers.values()} == {
        "w": ir.DataType.FLOAT16
    }


def test_ports_in_half() -> None:
    source = f"{G} {MATRIX} {{ a = MatMul(x, w) y = Softmax(a) }}"
    model = converted(source, half_interface=True)
    assert operators(model) == "hMatMul Cast Softmax hCast"
    ports = (*model.graph.inputs, *model.graph.outputs)
    assert [(port.name, port.dtype) for port in ports] == [
        ("x", ir.DataType.FLOAT16),
        ("y", ir.DataType.FLOAT16),
    ]
    (result,) = run(model, [np.zeros((1, 4), np.float16)])
    assert isinstance(result, np.ndarray)
    assert result.tolist() == [[0.25] * 4]


BRANCHES = f"""g (float[N,4] x, bool c) => (float[N,4] y) {MATRIX} {{
    a = MatMul(x, w)
    y = If(c) <
        then_branch = t () => (float[N,4] p) {{ p = MatMul(a, w) }},
        else_branch = e () => (float[N,4] q) {{ r = Softmax(a) q = MatMul(r, w) }}
    >
}}"""


def test_inside_branches_with_weights_that_stand_once() -> None:
    model = typed(BRANCHES)
    x = floats(1, 2, 3, 4).reshape(1, 4)
    expected = run(model, [x, np.asarray(False)])
    convert_to_half(model, HalfOptions(), [[x, np.asarray(c)] for c in (True, False)])
    inner = "hMatMul Cast Softmax hCast hMatMul Cast"
    assert operators(model) == f"hCast hMatMul Cast If {inner}"
    assert [len(graph.initializers) for graph in scope.graphs(model)] == [1, 0, 0]
    (result,) = run(model, [x, np.asarray(False)])
    np.testing.assert_allclose(np.asarray(result), np.asarray(expected[0]), rtol=2e-3)


MASKED = """g (float[2,4] x, bool[2,4] m) => (float[2,4] y) <float low = {-3.4e38}> {
    s = Mul(x, x)
    t = Where(m, s, low)
    y = Softmax(t)
}"""


def test_rows_that_are_masked_whole_stay_even() -> None:
    model = typed(MASKED)
    x, mask = floats(*range(8)).reshape(2, 4), np.zeros((2, 4), bool)
    convert_to_half(model, HalfOptions(), [[x, mask]])
    (result,) = run(model, [x, mask])
    assert np.asarray(result).tolist() == [[0.25] * 4] * 2


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 15, 17, 19, 21, 23, 24, 25])
def test_results_load_at_any_opset(opset: int) -> None:
    source = f"{G} {MATRIX} {{ a = MatMul(x, w) b = Relu(a) y = Softmax(b) }}"
    assert operators(converted(source, opset)) == "hCast hMatMul hRelu Cast Softmax"


def test_bfloat16_rounds_around_kernels_that_lack_it() -> None:
    source = f"{G} {MATRIX} {{ a = MatMul(x, w) y = Softmax(a) }}"
    native = converted(source, format="bfloat16", native=True)
    assert operators(native) == "hCast hMatMul Cast Softmax"
    model = converted(source, format="bfloat16")
    assert {v.dtype for v in model.graph.initializers.values()} == {ir.DataType.BFLOAT16}
    (result,) = run(model, [floats(1, 2, 3, 4).reshape(1, 4)])
    assert isinstance(result, np.ndarray)


def test_infinities_of_other_inputs_do_not_come_from_the_measured_ones() -> None:
    """Squares of the sum overflow in half, and no rule but the range finds it."""
    source = f"{G} {MATRIX} {{ a = MatMul(x, w) b = Mul(a, a) y = MatMul(b, w) }}"
    x = np.full((1, 4), 90, np.float32)
    model = converted(source, x=x)
    assert np.isfinite(np.asarray(run(model, [x])[0])).all()
    assert "hMul" not in operators(model)


def test_empty_tensors_and_samples_without_elements() -> None:
    source = f"{G} {MATRIX} {{ y = MatMul(x, w) }}"
    assert operators(converted(source, x=np.zeros((0, 4), np.float32))) == "hCast hMatMul Cast"


KEEP = {
    "none": "hCast hMatMul hSoftmax hMatMul Cast",
    "MatMul": "MatMul Softmax MatMul",
    "/head/*": "hCast hMatMul hSoftmax Cast MatMul",
    "auto,/head/*": "hCast hMatMul Cast Softmax MatMul",
}


@pytest.mark.parametrize(("keep", "expected"), KEEP.items(), ids=KEEP)
def test_keep(keep: str, expected: str) -> None:
    source = (
        f'{G} {MATRIX} {{ a = MatMul(x, w) b = Softmax(a) ["/head/product"] y = MatMul(b, w) }}'
    )
    assert operators(converted(source, keep=keep)) == expected


def test_unknown_words_in_keep_are_refused() -> None:
    with pytest.raises(UsageError, match="E603") as caught:
        converted(f"{G} {{ y = Softmax(x) }}", keep="Sofmax")
    assert "Softmax" in (caught.value.fix or "")


@pytest.mark.filterwarnings("error")
def test_a_constant_beyond_the_range_stays_without_a_warning() -> None:
    assert operators(converted(f"{G} <float c = {{70000}}> {{ y = Mul(x, c) }}")) == "Mul"


def test_a_model_without_floats_is_refused() -> None:
    model = typed("g (int64[4] x) => (int64[4] y) { y = Abs(x) }")
    with pytest.raises(UsageError, match="E687"):
        convert_to_half(model, HalfOptions(), [{"x": np.zeros(4, np.int64)}])


def test_other_names_of_types_and_other_targets_are_refused() -> None:
    model = typed(f"{G} {MATRIX} {{ y = MatMul(x, w) }}")
    with pytest.raises(UsageError, match="E688"):
        optimize_model(model, pipeline="", half="fp16")
    with pytest.raises(UsageError, match="E689"):
        smelt.compile(model, target="c", half="float16")


def test_the_report_says_what_stayed_and_the_error() -> None:
    model = typed(f"{G} {MATRIX} {{ a = MatMul(x, w) y = Softmax(a) }}")
    reports = optimize_model(model, half="float16")
    assert reports.half is not None
    assert dict(reports.half.kept) == {"a softmax": 1}
    assert 0 < reports.half.error < 1e-2
    assert reports.half.in_half == 1


MODELS = sorted((Path(__file__).parent.parent / "models").glob("*.onnx"))


@pytest.mark.parametrize("path", sampled(MODELS, 4), ids=lambda path: path.stem)
def test_exported_models(path: Path) -> None:
    model = smelt.load(path)
    reports = optimize_model(model, half="float16")
    assert reports.half is not None
    assert reports.half.error < 2e-3
    onnx.checker.check_model(smelt.to_proto(model), full_check=True)


def test_no_error_is_told_where_the_outputs_hold_no_numbers() -> None:
    model = typed(f"{G} {MATRIX} {{ y = MatMul(x, w) }}")
    report = convert_to_half(model, HalfOptions(), [{"x": np.zeros((0, 4), np.float32)}])
    assert report.error is None
    assert "error not measured: the outputs of 1 runs hold no numbers" in report.lines()[0]


def test_a_dim_that_a_pass_has_bound_needs_no_size() -> None:
    model = typed(f"{G} {MATRIX} {{ y = MatMul(x, w) }}")
    (name,) = {str(dim) for dim in model.graph.inputs[0].shape or () if not isinstance(dim, int)}
    steps = f"materialize-symbolic-dims{{dims={name}=3}},default"
    reports = optimize_model(model, pipeline=steps, half="float16", dims={name: (3,)})
    assert reports.half is not None
    with pytest.raises(UsageError, match="there is no dim 'other'"):
        optimize_model(
            typed(f"{G} {MATRIX} {{ y = MatMul(x, w) }}"), half="float16", dims={"other": (3,)}
        )
