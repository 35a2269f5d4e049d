"""``smelt.run_program``: a Program step by step, as the compiled one computes it."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from lowered import lowered
from written import Written, counting, evaluate

import smelt
from smelt.errors import Unsupported, UsageError
from smelt.ir import text
from smelt.operators.semiring import semiring_of
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Instruction
from smelt.program.passes import optimize

ATTENTION = """g (float[2,5,8] x, float[8,24] w) => (float[2,5,8] y, float[24,8] t) {
    qkv = MatMul(x, w)
    q, k, v = Split <axis: int = 2, num_outputs: int = 3> (qkv)
    kt = Transpose <perm: ints = [0, 2, 1]> (k)
    s = MatMul(q, kt)
    p = Softmax(s)
    o = MatMul(p, v)
    y = Add(o, x)
    t = Transpose <perm: ints = [1, 0]> (w)
}"""

POWERS = """g (float[3,3] a, int64 n) => (float[3,3] y) {
    yes = Constant <value: tensor = bool {1}> ()
    y = Loop(n, yes, a) <body: graph = step (int64 i, bool go, float[3,3] s)
            => (bool on, float[3,3] next) {
        on = Identity(go)
        product = MatMul(s, a)
        next = Tanh(product)
    }>
}"""

COLUMN_SUMS = """g (float[N,M] x) => (float[M] y) {
    axes = Constant <value_ints: ints = [0]> ()
    y = ReduceSum <keepdims: int = 0> (x, axes)
}"""


def test_it_computes_what_the_planned_program_does_before_and_after_the_passes() -> None:
    program = lowered(ATTENTION)
    inputs = [array / 8 for array in counting(program)]
    before = smelt.run_program(program, *inputs)
    optimize(program)
    after = smelt.run_program(program, *inputs)
    for one, other, planned in zip(before, after, evaluate(program, *inputs), strict=True):
        np.testing.assert_allclose(one, planned, rtol=1e-6)
        np.testing.assert_array_equal(other, planned)


@pytest.mark.parametrize(
    "semiring", ["sum_product", "max_plus", "min_plus", "log_sum_exp", "Max,Mul,0,1"]
)
def test_every_algebra(semiring: str) -> None:
    w = Written()
    program = w.program(w.dot(w.input(3, 4), w.input(4, 2), DotDims((1,), (0,)), semiring=semiring))
    a, b = np.abs(counting(program)[0]), np.abs(counting(program)[1])
    algebra = semiring_of(semiring)
    expected = algebra.sum(algebra.combine(a[:, :, None], b[None]), (1,))
    np.testing.assert_allclose(smelt.run_program(program, a, b)[0], expected, rtol=1e-6)
    np.testing.assert_allclose(evaluate(program, a, b)[0], expected, rtol=1e-6)


def test_bodies_run_too_and_are_seen() -> None:
    program = lowered(POWERS)
    a = np.eye(3, dtype=np.float32) / 2
    seen: list[str] = []
    (y,) = smelt.run_program(
        program, a, np.array(3), watch=lambda instruction, _: seen.append(instruction.op)
    )
    expected = a
    for _ in range(3):
        expected = np.tanh(expected @ a)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    assert seen == [*["DotGeneral", "Tanh"] * 3, "Loop"]


def test_a_result_is_let_go_after_its_last_use() -> None:
    w = Written()
    a = w.op("Neg", w.input(4))
    program = w.program(w.op("Abs", w.op("Relu", a)))
    made: list[weakref.ref[np.ndarray]] = []
    alive: list[int] = []

    def watch(_: Instruction, results: tuple[np.ndarray, ...]) -> None:
        made.extend(map(weakref.ref, results))
        alive.append(sum(one() is not None for one in made))

    smelt.run_program(program, np.ones(4, np.float32), watch=watch)
    assert alive == [1, 2, 2]


def test_results_are_arrays_of_their_own() -> None:
    w = Written()
    x = w.input(2, 3)
    program = w.program(x, w.transpose(x, 1, 0), x)
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    same, turned, again = smelt.run_program(program, given)
    same[:] = turned[:] = 0
    assert given.tolist() == again.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_symbolic_sizes_are_those_of_the_arrays() -> None:
    program = lowered(COLUMN_SUMS)
    for rows in (2, 5):
        (y,) = smelt.run_program(program, np.ones((rows, 3), np.float32))
        assert y.tolist() == [rows] * 3


def test_wrong_arrays_and_unknown_operators_are_refused() -> None:
    w = Written()
    program = w.program(w.op("Neg", w.input(2)))
    for arrays, code in (
        ((), "E671"),
        ((np.ones(2),), "E671"),
        ((np.ones(3, np.float32),), "E670"),
    ):
        with pytest.raises(UsageError) as caught:
            smelt.run_program(program, *arrays)
        assert caught.value.code == code
    w = Written()
    with pytest.raises(Unsupported, match="E202"):
        smelt.run_program(w.program(w.op("vendor::Unknown", w.input(2))), np.ones(2, np.float32))


def test_a_model_is_no_program() -> None:
    model = text.parse("g (float[2] x) => (float[2] y) { y = Exp(x) }")
    with pytest.raises(UsageError, match="Model is not a Program") as caught:
        smelt.run_program(model, np.ones(2, np.float32))
    assert "lower" in caught.value.fix
