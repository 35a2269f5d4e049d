"""Elementwise instructions and the reduction that alone reads them are one loop."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.native.kernels.reduced_map import MAP_REDUCE, PIECE
from smelt.native.memory import allocate
from smelt.native.schedule import planned
from smelt.program.instruction import Program
from smelt.program.lower import lower
from smelt.targets.host.static_programs import FUSIONS, compile_program


def program_of(source: str) -> Program:
    model = text.parse(source)
    ShapeInference(model).infer_model()
    return lower(model)


def reduced(shape: str, rows: str, axes: str, op: str = "ReduceSum", kind: str = "float") -> str:
    """The squared differences of two tensors that broadcast, reduced."""
    return f"""g ({kind}[{shape}] x, {kind}[{rows}] y) => (r) <int64[{axes.count(",") + 1}] axes =
        {{{axes}}}> {{ d = Sub(x, y) s = Mul(d, d) r = {op}<keepdims=0>(s, axes) }}"""


def operators(source: str) -> list[str]:
    made = planned(program_of(source), "test", (), FUSIONS)
    return sorted(step.op.rpartition("::")[2] for step in made.instructions)


JOINED = {
    "long rows": ("5,70", "70", "1"),
    "rows of one vector": ("9,1,16", "1,7,16", "2"),
    "rows of two vectors, and a rest": ("3,39", "3,39", "1"),
    "short rows, written out": ("1,40,3", "6,1,3", "2"),
    "all": ("4,5,16", "16", "0,1,2"),
    "the first dim": ("40,9", "9", "0"),
    "dims around one that is kept": ("3,20,17", "20,1", "0,2"),
    "pieces of a row, and a rest": ("3,600", "600", "0"),
    "a row of one piece": (f"3,{PIECE}", "1", "0"),
    "dims of size 1": ("1,33,1", "1,1,1", "0,1"),
}
APART = {
    "few short rows": ("4,3", "3", "1"),
    "a short row that is kept": ("50,3", "3", "0"),
    "two short dims": ("40,3,5", "3,1", "1,2"),
}


@pytest.mark.parametrize(("shape", "rows", "axes"), JOINED.values(), ids=JOINED)
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSum"])
def test_maps_and_reductions_are_fused(shape: str, rows: str, axes: str, op: str) -> None:
    source = reduced(shape, rows, axes, op)
    assert operators(source) == [MAP_REDUCE.rpartition("::")[2]]
    rng = np.random.default_rng(0)
    sizes = [tuple(map(int, each.split(","))) for each in (shape, rows)]
    x, y = (rng.standard_normal(each).astype(np.float32) for each in sizes)
    squares = np.square(x.astype(np.float64) - y)
    along = tuple(map(int, axes.split(",")))
    want = {
        "ReduceSum": squares.sum,
        "ReduceMean": squares.mean,
        "ReduceMax": squares.max,
        "ReduceL2": lambda axis: np.sqrt(np.square(squares).sum(axis)),
        "ReduceLogSum": lambda axis: np.log(squares.sum(axis)),
    }[op](axis=along)
    call = compile_program(program_of(source))
    assert call is not None
    np.testing.assert_allclose(call(x, y)[0], want, rtol=5e-6, atol=1e-6)


@pytest.mark.parametrize(("shape", "rows", "axes"), APART.values(), ids=APART)
def test_short_reductions_stay_apart(shape: str, rows: str, axes: str) -> None:
    assert operators(reduced(shape, rows, axes)) == ["Map", "ReduceSum"]


def test_integers_stay_apart() -> None:
    assert operators(reduced("5,70", "70", "1", kind="int32")) == ["Map", "ReduceSum"]


def test_maps_with_other_readers_stay() -> None:
    source = reduced("5,70", "70", "1").replace("=> (r)", "=> (s, r)")
    assert operators(source) == ["Map", "ReduceSum"]
    source = source.replace("(s, r)", "(r, t)").replace("{ d", "{ t = Neg(s) d", 1)
    source = source.replace("{ t = Neg(s) d", "{ d").replace(
        "(s, axes) }", "(s, axes) t = Neg(s) }"
    )
    assert operators(source) == ["Map", "Neg", "ReduceSum"]


@pytest.mark.parametrize(("shape", "rows", "axes"), JOINED.values(), ids=JOINED)
def test_fused_maxima_propagate_nan_and_inf(shape: str, rows: str, axes: str) -> None:
    source = reduced(shape, rows, axes, "ReduceMax").replace("s = Mul(d, d)", "s = Neg(d)")
    sizes = [tuple(map(int, each.split(","))) for each in (shape, rows)]
    x, y = (np.ones(each, np.float32) for each in sizes)
    flat = x.reshape(-1)
    flat[::7], flat[3::11], flat[5::13] = -np.inf, np.nan, np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = (y - x).max(axis=tuple(map(int, axes.split(","))))
    call = compile_program(program_of(source))
    assert call is not None
    np.testing.assert_array_equal(call(x, y)[0], want)


def test_differences_of_equal_products_are_nothing() -> None:
    """Were a product and a sum rounded once, they would not be 0."""
    source = """g (float[7,50] x, float[7,50] y) => (r) <int64[1] axes = {1}> {
        a = Mul(x, y) b = Mul(y, x) d = Sub(a, b) m = Abs(d) r = ReduceSum<keepdims=0>(m, axes) }"""
    x, y = np.random.default_rng(0).standard_normal((2, 7, 50)).astype(np.float32)
    call = compile_program(program_of(source))
    assert call is not None
    np.testing.assert_array_equal(call(x, y)[0], 0)


def test_nothing_of_what_is_reduced_is_in_memory() -> None:
    source = reduced("90,1,64", "1,90,64", "2")
    made = planned(program_of(source), "test", (), FUSIONS)
    assert allocate(made).arena_bytes == 0


@pytest.mark.parametrize("axes", ["1", "0", "0,1"])
def test_parts_give_the_bits_of_one_thread(axes: str) -> None:
    source = reduced("600,700", "700", axes)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((600, 700)).astype(np.float32)
    y = rng.standard_normal(700).astype(np.float32)
    one, two = (compile_program(program_of(source), threads=n) for n in (1, 2))
    assert one is not None
    assert two is not None
    np.testing.assert_array_equal(one(x, y)[0], two(x, y)[0])


def test_nothing_is_left_to_reduce() -> None:
    source = reduced("0,40", "40", "0")
    call = compile_program(program_of(source))
    assert call is not None
    empty, row = np.ones((0, 40), np.float32), np.ones(40, np.float32)
    np.testing.assert_array_equal(call(empty, row)[0], np.zeros(40))
