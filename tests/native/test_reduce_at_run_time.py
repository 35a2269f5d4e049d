"""Axes that an input of the model tells, where the model declares the sizes of the output."""

import numpy as np
import pytest
from c_library import Library, assert_same

import smelt
from smelt.errors import SmeltError, UsageError
from smelt.ir import text
from smelt.runtime.reference import Reference

OPERATORS = [
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"),
    *("ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
]
GRAPH = (
    "g ({dtype}[3,2,3] x, int64[{count}] axes) => ({dtype}[{shape}] y) "
    "{{ y = {op}<keepdims={keep}>(x, axes) }}"
)


def graph(op: str, count: int, shape: str, keep: int, dtype: str = "float") -> str:
    return GRAPH.format(op=op, count=count, shape=shape, keep=keep, dtype=dtype)


CASES = {f"{op} kept": graph(op, 2, "1,2,1", 1) for op in OPERATORS}
CASES |= {f"{op} dropped": graph(op, 1, "3,2", 0) for op in OPERATORS}
CASES["all"] = graph("ReduceSum", 0, "", 0)
CASES["int32"] = graph("ReduceMean", 1, "2,3", 0, "int32")
CASES |= {
    f"{op} of nothing": graph(op, 1, "3,3", 0).replace("3,2,3", "3,0,3")
    for op in ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceLogSumExp")
}
CASES["between"] = (
    "g (float[3,2,3] x, int64[1] axes) => (float[3,2] y) "
    "{ a = ReduceSumSquare<keepdims=0>(x, axes) y = Sqrt(a) }"
)


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(CASES)


def sample(dtype: type = np.float32) -> np.ndarray:
    return (np.random.default_rng(0).random((3, 2, 3)) * 4 + 0.5).astype(dtype)


@pytest.mark.parametrize("op", OPERATORS)
def test_axes_in_any_order_and_from_the_back(library: Library, op: str) -> None:
    for axes in ([0, 2], [2, 0], [-1, 0]):
        library.check(f"{op} kept", [sample(), np.array(axes)])
    library.check(f"{op} dropped", [sample(), np.array([2])])


def test_infinities_and_no_numbers(library: Library) -> None:
    x = sample()
    x[0, 0, 0], x[2, 0, :] = np.inf, -np.inf
    for op in ("ReduceMax", "ReduceSum", "ReduceLogSumExp"):
        library.check(f"{op} dropped", [x, np.array([2])])
    x[1, 1, 1] = np.nan
    for op in OPERATORS:
        (got,) = library.run(f"{op} dropped", [x, np.array([2])])
        assert np.isnan(got[1, 1])


@pytest.mark.parametrize("name", ["all", "int32", "between"])
def test_other_forms(library: Library, name: str) -> None:
    dtype = np.int32 if name == "int32" else np.float32
    axes = {"all": [], "int32": [0], "between": [-1]}[name]
    library.check(name, [sample(dtype), np.array(axes, np.int64)])


@pytest.mark.parametrize("axes", [[1], [0], [3], [-4]])
def test_axes_that_lead_to_other_sizes_are_an_error_of_the_run(axes: list[int]) -> None:
    artifact = smelt.compile(text.parse(graph("ReduceSum", 1, "3,2", 0), 20), target="c")
    with pytest.raises(UsageError, match="E670"):
        artifact(sample(), np.array(axes))


def test_no_elements(library: Library) -> None:
    starts = {"Sum": 0, "Prod": 1, "Max": -np.inf, "LogSumExp": -np.inf}
    for op, start in starts.items():
        (got,) = library.run(f"Reduce{op} of nothing", [np.empty((3, 0, 3), "f4"), np.array([1])])
        np.testing.assert_array_equal(got, np.full((3, 3), start, np.float32))


@pytest.mark.parametrize("name", sorted(n for n in CASES if "nothing" not in n))
def test_the_host_takes_them(name: str) -> None:
    model = text.parse(CASES[name], 23)
    dtype = np.int32 if name == "int32" else np.float32
    axes = {"all": [], "int32": [0], "between": [-1]}.get(name, [0, 2] if "kept" in name else [2])
    given = [sample(dtype), np.array(axes, np.int64)]
    (want,) = Reference(model)(*given)
    (got,) = smelt.compile(model, target="host")(*given)
    assert_same(got, np.asarray(want))


def test_the_host_refuses_other_sizes_as_it_runs() -> None:
    artifact = smelt.compile(text.parse(graph("ReduceSum", 1, "3,2", 0), 20), target="host")
    with pytest.raises(UsageError, match="E670"):
        artifact(sample(), np.array([1]))


def test_axes_that_are_computed_are_refused() -> None:
    source = (
        "g (float[3,2,3] x, int64[1] a) => (float[3,2] y) "
        "{ b = Neg(a) y = ReduceSum<keepdims=0>(x, b) }"
    )
    with pytest.raises(SmeltError, match="neither constant nor an input"):
        smelt.compile(text.parse(source, 20), target="c")
