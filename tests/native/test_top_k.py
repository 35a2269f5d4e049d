"""The largest and smallest elements along an axis, on C and on the host."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import text

TARGETS = ("c", "host")
NAN, INF = np.nan, np.inf


def best(x: np.ndarray, k: int, axis: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """By definition: sorted by value, then by place; NaN is larger than any number."""

    def key(row: np.ndarray, i: int) -> tuple[object, ...]:
        nan = bool(row[i] != row[i])
        value = 0 if nan else row[i].item()
        return (not nan, -value, i) if largest else (nan, value, i)

    def places(row: np.ndarray) -> np.ndarray:
        return np.array(sorted(range(len(row)), key=lambda i: key(row, i))[:k], np.int64)

    index = np.apply_along_axis(places, axis, x)
    return np.take_along_axis(x, index, axis), index


ROWS = {
    "float": np.array([[3, NAN, -0.0, 0.0], [INF, -INF, 2, 2], [1, 1, 1, 1]], np.float32),
    "double": np.array([[1, 2, NAN, NAN], [-1, -2, -3, -4], [0, 5, 5, 0]], np.float64),
    "int8": np.array([[127, -128, 0, 127], [1, 2, 3, 4], [4, 3, 2, 1]], np.int8),
    "uint64": np.array([[0, 2**64 - 1, 2**63, 1], [7, 7, 7, 7], [1, 0, 1, 0]], np.uint64),
}


@pytest.mark.parametrize("target", TARGETS)
def test_the_best_by_value_then_by_place(target: str) -> None:
    cases = [(k, axis, largest) for k in (0, 1, 3) for axis in (0, 1, -1) for largest in (0, 1)]
    inputs = ", ".join(f"{dtype}[3,4] x_{dtype}" for dtype in ROWS)
    body, outputs, expected = "", [], []
    constants = ", ".join(f"int64[1] k{k} = {{{k}}}" for k in (0, 1, 3))
    for dtype, x in ROWS.items():
        for n, (k, axis, largest) in enumerate(cases):
            shape = "x".join(map(str, (k, 4) if axis == 0 else (3, k))).replace("x", ",")
            outputs += [f"{dtype}[{shape}] v{n}_{dtype}", f"int64[{shape}] p{n}_{dtype}"]
            body += (
                f"v{n}_{dtype}, p{n}_{dtype} = TopK<axis={axis}, largest={largest}>"
                f"(x_{dtype}, k{k}) "
            )
            expected += best(x, k, axis, bool(largest))
    graph = f"g ({inputs}) => ({', '.join(outputs)}) <{constants}> {{ {body} }}"
    got = smelt.compile(text.parse(graph, 24), target=target, pipeline="")(*ROWS.values())
    for ours, wanted in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("target", TARGETS)
def test_places_alone_and_values_alone(target: str) -> None:
    x = ROWS["float"]
    for graph, wanted in (
        ("(float[3,2] v) <int64[1] k = {2}> { v, p = TopK(x, k) }", 0),
        ("(int64[3,2] p) <int64[1] k = {2}> { v, p = TopK(x, k) }", 1),
    ):
        model = text.parse(f"g (float[3,4] x) => {graph}", 23)
        (got,) = smelt.compile(model, target=target)(x)
        np.testing.assert_array_equal(got, best(x, 2, 1, True)[wanted])


COUNT = "g (float[5] x, int64[1] k) => (float[n] v, int64[n] p) { v, p = TopK(x, k) }"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("k", [0, 2, 5])
def test_a_count_of_the_run_is_told_with_the_results(k: int, target: str) -> None:
    artifact = smelt.compile(text.parse(COUNT, 23), target=target)
    x = np.array([3, 1, 2, 9, 5], np.float32)
    values, places = artifact(x, np.array([k]))
    assert values.tolist() == [9, 5, 3, 2, 1][:k]
    assert places.tolist() == [3, 4, 0, 2, 1][:k]


MANY = ("float", "double", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", MANY)
def test_whole_rows_are_sorted(dtype: str, largest: int, target: str) -> None:
    """Rows with many equal elements, and with those at both ends of what the type holds."""
    rng = np.random.default_rng(0)
    kind = np.dtype({"float": "float32", "double": "float64"}.get(dtype, dtype))
    x = rng.integers(0, 100, (3, 150)).astype(kind)
    if kind.kind == "f":
        x = (rng.standard_normal(x.shape) * 10.0 ** rng.integers(-30, 30, x.shape)).astype(kind)
        x[0, ::7], x[0, 1::7], x[1, ::9], x[2] = 0.0, -0.0, NAN, 1.5
        x[1, 1::9], x[1, 2::9], x[2, 9] = INF, -INF, np.finfo(kind).smallest_subnormal
    else:
        x[0, ::5], x[0, 1::5] = np.iinfo(kind).max, np.iinfo(kind).min
        x[1] = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, 150, kind)
    graph = (
        f"g ({dtype}[3,150] x, {dtype}[150,3] y) => (a, b, c, d) "
        f"<int64[1] all = {{150}}, int64[1] most = {{120}}> "
        f"{{ a, b = TopK<axis=1, largest={largest}>(x, all) "
        f"c, d = TopK<axis=0, largest={largest}>(y, most) }}"
    )
    y = np.ascontiguousarray(x.T)
    got = smelt.compile(text.parse(graph, 24), target=target, pipeline="")(x, y)
    expected = (*best(x, 150, 1, bool(largest)), *best(y, 120, 0, bool(largest)))
    for ours, wanted in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("largest", [0, 1])
def test_long_rows_of_ties_and_nan(target: str, largest: int) -> None:
    """Blocks are skipped where none of their elements goes before the last of the list."""
    rng = np.random.default_rng(4)
    rows = {
        "float": rng.integers(0, 40, (9, 203)).astype(np.float32),
        "int8": rng.integers(-128, 128, (9, 203)).astype(np.int8),
    }
    x = rows["float"]
    x[1, 64:96], x[2], x[3, 3], x[3, 200], x[4, :150], x[5] = NAN, NAN, NAN, NAN, INF, 7
    x[6], x[7] = np.sort(x[6]), -np.sort(-x[7])
    counts = (1, 5, 16, 17, 40)
    outputs, body, expected = [], "", []
    for dtype, row in rows.items():
        for k in counts:
            outputs += [f"{dtype}[9,{k}] v{k}{dtype}", f"int64[9,{k}] p{k}{dtype}"]
            body += f"v{k}{dtype}, p{k}{dtype} = TopK<axis=1, largest={largest}>(x_{dtype}, k{k}) "
            expected += best(row, k, 1, bool(largest))
    constants = ", ".join(f"int64[1] k{k} = {{{k}}}" for k in counts)
    inputs = ", ".join(f"{dtype}[9,203] x_{dtype}" for dtype in rows)
    graph = f"g ({inputs}) => ({', '.join(outputs)}) <{constants}> {{ {body} }}"
    got = smelt.compile(text.parse(graph, 24), target=target, pipeline="")(*rows.values())
    for ours, wanted in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, wanted)
