"""Ranges of values: numbers of NumPy, special values, bodies, types and large models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sampling import sampled

import smelt
from smelt.errors import UsageError
from smelt.ir import text
from smelt.precision.ranges import Range, Ranges, measure_ranges, range_of

NAN, INF = np.nan, np.inf


def measured(source: str, *feeds: dict[str, np.ndarray], opset: int = 18) -> dict[str, Range]:
    """The range of each value of the model by name."""
    return by_name(measure_ranges(text.parse(source, opset), feeds))


def by_name(ranges: Ranges) -> dict[str, Range]:
    return {value.name or "": found for value, found in ranges.by_value.items()}


def floats(*numbers: float) -> np.ndarray:
    return np.asarray(numbers, np.float32)


CHAIN = "g (float[N] x) => (float[N] z) { y = Mul(x, x) z = Neg(y) }"


def test_each_value_has_the_range_of_all_samples() -> None:
    found = measured(CHAIN, {"x": floats(-3, 2)}, {"x": floats(5)})
    assert found == {"x": Range(-3, 5), "y": Range(4, 25), "z": Range(-25, -4)}


@pytest.mark.parametrize("opset", [9, 13, 17, 18, 23, 25])
def test_any_opset(opset: int) -> None:
    assert measured(CHAIN, {"x": floats(3)}, opset=opset)["z"] == Range(-9, -9)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((1, NAN, 2), Range(1, 2, nan=True)),
        ((1, INF, 2), Range(1, 2, infinite=True)),
        ((1, -INF, INF, 2), Range(1, 2, infinite=True)),
        ((-INF, NAN), Range(infinite=True, nan=True)),
        ((-3e38, -3e38), Range(*floats(-3e38, -3e38).tolist())),
        ((), Range()),
        ((0.0, -0.0), Range(0, 0)),
    ],
)
def test_specials_stand_beside_the_finite_range(
    numbers: tuple[float, ...], expected: Range
) -> None:
    found = measured("g (float[N] x) => (float[N] y) { y = Neg(x) }", {"x": floats(*numbers)})
    assert found["x"] == expected
    assert found["y"] == Range(
        -expected.largest, -expected.smallest, expected.infinite, expected.nan
    )
    assert range_of(floats(*numbers)) == expected


def test_a_special_of_one_sample_leaves_the_finite_range_of_the_others() -> None:
    found = measured(CHAIN, {"x": floats(2)}, {"x": floats(INF, 1)}, {"x": floats(3)})
    assert found["y"] == Range(1, 9, infinite=True)


BRANCHES = """g (float[N] x, bool c) => (float[N] y) {
    y = If(c) <
        then_branch = a () => (float[N] p) { p = Neg(x) },
        else_branch = b () => (float[N] q) { r = Mul(x, x) q = Mul(r, r) }
    >
}"""


def test_the_branch_that_ran() -> None:
    found = measured(BRANCHES, {"x": floats(2), "c": np.asarray(True)})
    assert found["p"] == found["y"] == Range(-2, -2)
    assert found["r"] == Range()
    both = [{"x": floats(2), "c": np.asarray(c)} for c in (True, False)]
    assert measured(BRANCHES, *both)["r"] == Range(4, 4)


ROUNDS = """g (float[1] x, int64 n) => (float[1] y, float[?, 1] s) {
    go = Constant <value = bool {1}> ()
    y, s = Loop (n, go, x) <
        body = b (int64 i, bool c, float[1] t) => (bool d, float[1] u, float[1] v) {
            d = Identity(c)
            u = Add(t, t)
            v = Sqrt(u)
        }
    >
}"""


@pytest.mark.parametrize("opset", [13, 18])
def test_a_loop_gives_the_range_over_its_rounds(opset: int) -> None:
    found = measured(ROUNDS, {"x": floats(2), "n": np.asarray(3)}, opset=opset)
    assert found["t"] == Range(2, 8)
    assert found["u"] == Range(4, 16)
    assert found["v"] == Range(2, 4)
    assert found["y"] == Range(16, 16)


def test_a_loop_without_rounds_has_no_numbers() -> None:
    found = measured(ROUNDS, {"x": floats(2), "n": np.asarray(0)})
    assert found["u"] == Range()
    assert found["y"] == Range(2, 2)


def test_a_loop_that_overflows() -> None:
    found = measured(ROUNDS, {"x": floats(1e38), "n": np.asarray(3)})
    assert found["t"].infinite
    assert found["t"].largest == pytest.approx(2e38)


SCAN = """g (float[3] x) => (float[2] y, float[3, 2] s) {
    zero = Constant <value = float[2] {0, 0}> ()
    y, s = Scan (zero, x) <num_scan_inputs = 1, scan_output_axes = [0],
        body = b (float[2] t, float e) => (float[2] u, float[2] v) {
            u = Add(t, e)
            v = If(go) <then_branch = h () => (float[2] k) { k = Mul(u, u) },
                        else_branch = o () => (float[2] l) { l = Neg(u) }>
        }
    >
    go = Constant <value = bool {1}> ()
}"""


def test_a_branch_in_a_scan() -> None:
    source = SCAN.replace("    go = Constant <value = bool {1}> ()\n", "")
    source = source.replace("(float[3] x)", "(float[3] x, bool go)")
    found = measured(source, {"x": floats(1, 2, 3), "go": np.asarray(True)})
    assert found["u"] == Range(1, 6)
    assert found["k"] == Range(1, 36)
    assert found["l"] == Range()


@pytest.mark.parametrize(("dtype", "code"), [("float16", 10), ("bfloat16", 16), ("double", 11)])
def test_types_of_floats(dtype: str, code: int) -> None:
    source = f"""g (float[2] x) => ({dtype}[2] y, int64[2] n) {{
        y = Cast <to = {code}> (x)
        n = Cast <to = 7> (x)
    }}"""
    found = measured(source, {"x": floats(-1, 4)})
    assert found == {"x": Range(-1, 4), "y": Range(-1, 4)}


def test_sequences_are_told() -> None:
    source = """g (float[2] x) => (float[2] y) {
        s = SequenceConstruct(x, x)
        i = Constant <value = int64 {0}> ()
        y = SequenceAt(s, i)
    }"""
    ranges = measure_ranges(text.parse(source, 18), [{"x": floats(1, 2)}])
    assert {v.name: why for v, why in ranges.unmeasured.items()} == {
        "s": "it is a sequence or an optional value"
    }
    assert by_name(ranges)["y"] == Range(1, 2)


def test_functions_are_inlined() -> None:
    source = """<ir_version: 10, opset_import: ["": 18, "own": 1]>
        g (float[2] x) => (float[2] y) { y = own.twice(x) }
        <domain: "own", opset_import: ["": 18]>
        twice (a) => (b) { c = Add(a, a) b = Neg(c) }"""
    found = measured(source, {"x": floats(1, 2)})
    assert Range(2, 4) in found.values()


def test_inputs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="E632"):
        measured(CHAIN, {"z": floats(1)})


def test_the_model_stays_as_it_is() -> None:
    model = text.parse(ROUNDS, 18)
    before = text.canonical(model)
    measure_ranges(model, [{"x": floats(2), "n": np.asarray(3)}])
    assert text.canonical(model) == before


MODELS = sorted((Path(__file__).parent.parent / "models").glob("*.onnx"))


@pytest.mark.parametrize("path", sampled(MODELS[:3], 3), ids=lambda path: path.stem)
def test_exported_models_have_the_ranges_of_their_outputs(path: Path) -> None:
    from smelt.runtime.inputs import random_inputs
    from smelt.runtime.interface import interface_of
    from smelt.runtime.runner import run

    model = smelt.load(path)
    sizes = dict.fromkeys(interface_of(model).symbols(), 2)
    values = random_inputs(model, sizes)
    ranges = measure_ranges(model, [values])
    for value, result in zip(model.graph.outputs, run(model, values), strict=True):
        assert isinstance(result, np.ndarray)
        assert ranges.of(value) == range_of(result)
