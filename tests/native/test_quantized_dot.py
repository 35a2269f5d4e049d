"""Products of bytes by a matrix, a constant or computed: the bits of exact sums."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from c_library import Library, compile_c, compile_text, ops, with_values
from native.test_quantized_conv import BUILDS_OF_MANY, WIDE, skip_what_lacks
from quantized_arithmetic import factors, requantized

SIZES = {"rows": (7, 40, 21), "a row": (1, 33, 40), "narrow": (13, 5, 1), "deep": (2, 1001, 17)}


def values(k: int, n: int, kind: str, zero: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(k)
    limits = np.iinfo(kind)
    return {
        "as": np.float32(0.02),
        "az": np.uint8(131),
        "b": rng.integers(limits.min, limits.max + 1, (k, n)).astype(kind),
        "bs": rng.uniform(0.01, 0.02, n).astype(np.float32),
        "bz": np.full(n, zero, kind),
        "ys": np.float32(0.9 * np.sqrt(k / 40)),
        "yz": np.int8(-3) if kind == "int8" else np.uint8(90),
    }


def graph(m: int, k: int, n: int, kind: str) -> str:
    return (
        f"g ({kind}[{m},{k}] a, float as, {kind} az, {kind}[{k},{n}] b, float[{n}] bs, "
        f"{kind}[{n}] bz, float ys, {kind} yz) => ({kind}[{m},{n}] y) "
        "{ y = QLinearMatMul(a, as, az, b, bs, bz, ys, yz) }"
    )


CASES = {
    (name, kind, zero): (*size, kind, zero)
    for name, size in SIZES.items()
    for kind, zero in (("int8", 0), ("uint8", 127), ("uint8", 3))
}


COMPUTED = {
    "few rows": ("int8[2,16] a, int8[16,8] b", "a, b"),
    "nothing to sum": ("int8[9,0] a, int8[0,8] b", "a, b"),
    "even": ("int8[12,16] a, int8[16,32] b", "a, b"),
    "odd": ("int8[13,37] a, int8[37,21] b", "a, b"),
    "unsigned": ("uint8[9,5] a, int8[5,7] b", "a, b"),
    "a column": ("int8[24,33] a, int8[33,1] b", "a, b"),
    "one product": ("int8[8,1] a, int8[1,40] b", "a, b"),
    "batches": ("int8[3,5,10] a, int8[10,50] b", "a, b"),
    "a zero point": ("int8[10,6] a, int8[6,17] b, int8 z", "a, b, z"),
    "a large one": ("uint8[10,1030] a, int8[1030,18] b, uint8[1] z", "a, b, z"),
}
"""Operands, and what is multiplied: none is a constant."""


def case_values(k: int, n: int, kind: str, zero: int) -> dict[str, np.ndarray]:
    found = values(k, n, kind, zero)
    return found | ({"az": np.int8(7)} if kind == "int8" else {})


@pytest.fixture(scope="module", params=BUILDS_OF_MANY.values(), ids=BUILDS_OF_MANY.keys())
def library(request: pytest.FixtureRequest) -> Library:
    skip_what_lacks(request.param)
    return compiled(CASES, request.param)


def compiled(keys: Iterable[tuple[str, str, int]], flags: tuple[str, ...]) -> Library:
    """The cases of ``keys`` in one library, and integers that are summed."""
    cases = {str(key): CASES[key] for key in keys}
    graphs = {name: graph(m, k, n, kind) for name, (m, k, n, kind, _) in cases.items()}
    held = {name: case_values(k, n, kind, z) for name, (_, k, n, kind, z) in cases.items()}
    graphs["sums"] = (
        "g (uint8[3,9,5] a, int8[5,7] b, uint8 z) => (int32[3,9,7] y) "
        "{ y = MatMulInteger(a, b, z) }"
    )
    for name, (operands, given) in COMPUTED.items():
        graphs[name] = f"g ({operands}) => (y) {{ y = MatMulInteger({given}) }}"
        held[name] = {}
    held["sums"] = {"b": np.random.default_rng(1).integers(-128, 128, (5, 7)).astype(np.int8)}
    return Library(graphs, flags=flags, values=held)


@pytest.mark.parametrize("key", CASES, ids=str)
def test_the_bits_are_those_of_exact_sums(library: Library, key: tuple[str, str, int]) -> None:
    check(library, key)


@pytest.mark.slow
def test_the_bits_are_the_same_where_a_run_chooses_its_vectors() -> None:
    key = ("rows", "uint8", 3)
    check(compiled([key], WIDE), key)


def check(library: Library, key: tuple[str, str, int]) -> None:
    m, k, n, kind, zero = CASES[key]
    v = case_values(k, n, kind, zero)
    limits = np.iinfo(kind)
    a = np.random.default_rng(0).integers(limits.min, limits.max + 1, (m, k)).astype(kind)
    sums = (a.astype(int) - int(v["az"])) @ (v["b"].astype(int) - zero)
    want = requantized(sums, factors(v["as"], v["bs"], v["ys"]), v["yz"], v["yz"].dtype)
    (got,) = library.run(str(key), [a])
    np.testing.assert_array_equal(got, want)
    assert ops(library.models[str(key)].artifact) == ["QLinearMatMul"]


def test_the_zero_point_of_sums_may_come_at_run_time(library: Library) -> None:
    a = np.random.default_rng(0).integers(0, 256, (3, 9, 5)).astype(np.uint8)
    (got,) = library.run("sums", [a, np.asarray(200, np.uint8)])
    b = np.random.default_rng(1).integers(-128, 128, (5, 7))
    np.testing.assert_array_equal(got, (a.astype(int) - 200) @ b)


@pytest.mark.parametrize("name", COMPUTED)
def test_a_right_side_that_is_computed(library: Library, name: str) -> None:
    model = library.models[name]
    rng = np.random.default_rng(3)
    inputs = []
    for value in model.artifact.model.graph.inputs:
        limits = np.iinfo(value.dtype.numpy())
        drawn = rng.integers(limits.min, limits.max + 1, value.shape.numpy())
        inputs.append(np.asarray(drawn, value.dtype.numpy()))
    (got,) = library.run(name, inputs)
    a, b, *zero = (array.astype(int) for array in inputs)
    np.testing.assert_array_equal(got, (a - zero[0] if zero else a) @ b)
    assert ops(model.artifact) == ["MatMulInteger"]


@pytest.mark.parametrize(
    ("operands", "given"),
    [
        ("int8[16] a, int8[16,8] b", "a, b"),
        ("int8[16,8] a, int8[8] b", "a, b"),
        ("int8[2,9,4] a, int8[2,4,8] b", "a, b"),
        ("uint8[9,4] a, uint8[4,8] b", "a, b"),
        ("int8[9,4] a, int8[4,8] b, int8 z, int8 w", "a, b, z, w"),
        ("int8[9,4] a, int8[4,8] b, int8[9] z", "a, b, z"),
    ],
)
def test_others_are_products_of_32_bits(operands: str, given: str) -> None:
    artifact = compile_text(f"g ({operands}) => (y) {{ y = MatMulInteger({given}) }}")
    assert "MatMulInteger" not in ops(artifact)


def test_an_empty_sum_is_the_zero_point() -> None:
    held = case_values(1, 3, "uint8", 0) | {"b": np.zeros((0, 3), np.uint8)}
    library = Library({"none": graph(2, 0, 3, "uint8")}, values={"none": held})
    (got,) = library.run("none", [np.zeros((2, 0), np.uint8)])
    np.testing.assert_array_equal(got, np.full((2, 3), 90, np.uint8))


WRONG = {
    "a scale of 0": {"as": np.float32(0)},
    "a negative scale": {"ys": np.float32(-0.1)},
    "a scale that is no number": {"as": np.float32(np.nan)},
    "an infinite scale": {"ys": np.float32(np.inf)},
    "a column scale of 0": {"bs": np.float32([0.1, 0, 0.1])},
    **{f"a computed {name}": {name: None} for name in ("b", "as", "az", "bs", "bz", "ys", "yz")},
}
"""Values that replace those of a product; None is an input of the run."""


@pytest.mark.parametrize("change", [{}, *WRONG.values()], ids=["none", *WRONG])
def test_operands_that_the_kernel_does_not_take(change: dict[str, np.ndarray | None]) -> None:
    held = case_values(6, 3, "uint8", 3) | change
    known = {name: array for name, array in held.items() if array is not None}
    steps = ops(compile_c(with_values(graph(2, 6, 3, "uint8"), 23, known)))
    assert ("QLinearMatMul" in steps) == (not change)
