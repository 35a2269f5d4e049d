"""Slices that only loops read are read where they lie."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.native.memory import allocate
from smelt.native.rewrite.fuse_elementwise import fuse_elementwise
from smelt.native.rewrite.read_slices import read_slices
from smelt.native.schedule import planned
from smelt.program.instruction import Program
from smelt.program.lower import lower
from smelt.targets.host.static_programs import compile_program

NUMBERS = """int64[1] n0 = {0}, int64[1] n1 = {1}, int64[1] n2 = {2}, int64[1] n4 = {4},
    int64[1] n5 = {5}, int64[1] n6 = {6}, int64[1] back = {-1}, int64[1] front = {-9}"""


def program_of(source: str) -> Program:
    model = text.parse(source.replace("NUMBERS", NUMBERS))
    ShapeInference(model).infer_model()
    return lower(model)


def steps(source: str) -> list[str]:
    """What is computed, the parts of a loop joined."""
    made = planned(program_of(source), "test", (), (fuse_elementwise, read_slices))
    return sorted("+".join(part.op for part in step.parts) or step.op for step in made.instructions)


READ = {
    "a stencil": (
        """g (float[6,5] x) => (float[4,5] y) <NUMBERS> {
            up = Slice(x, n0, n4, n0)
            down = Slice(x, n2, n6, n0)
            y = Add(up, down)
        }""",
        ["Add"],
        lambda x: x[:4] + x[2:],
    ),
    "backwards and by steps": (
        """g (float[6,5] x) => (float[3,5] y) <NUMBERS> {
            a = Slice(x, back, front, n0, back)
            b = Slice(a, n0, n6, n0, n2)
            c = Slice(x, n1, n4, n0)
            d = Neg(b)
            y = Mul(d, c)
        }""",
        ["Neg+Mul", "Slice"],  # which reads the other one, and has half of its bytes
        lambda x: -x[::-1][::2] * x[1:4],
    ),
    "a roll": (
        """g (float[6,5] x) => (float[6,5] y) <NUMBERS> {
            end = Slice(x, n5, n6, n0)
            start = Slice(x, n0, n5, n0)
            y = Concat<axis=0>(end, start)
        }""",
        ["Concat"],
        lambda x: np.roll(x, 1, 0),
    ),
    "a slice that is broadcast": (
        """g (float[6,5] x) => (float[6,5] y) <NUMBERS> {
            row = Slice(x, n2, n4, n0, n2)
            y = Sub(x, row)
        }""",
        ["Sub"],
        lambda x: x - x[2:3],
    ),
    "what is computed, and would be overwritten": (
        """g (float[6,5] x) => (float[6,5] y) <NUMBERS> {
            a = Sin(x)
            b = Slice(a, back, front, n0, back)
            y = Sub(a, b)
        }""",
        ["Sin", "Sub"],
        lambda x: np.sin(x) - np.sin(x)[::-1],
    ),
}
LEFT = {
    "one that is returned": (
        """g (float[6,5] x) => (float[4,5] a, float[4,5] y) <NUMBERS> {
            a = Slice(x, n0, n4, n0)
            y = Neg(a)
        }""",
        ["Neg", "Slice"],
    ),
    "one that a product reads, too": (
        """g (float[6,5] x, float[5,4] w) => (float[4,5] y, float[4,4] z) <NUMBERS> {
            a = Slice(x, n0, n4, n0)
            y = Neg(a)
            z = MatMul(a, w)
        }""",
        ["DotGeneral", "Neg", "Slice"],
    ),
    "a few rows of what would be kept": (
        """g (float[6,5] x) => (float[1,5] y) <NUMBERS> {
            a = Sin(x)
            b = Slice(a, n0, n1, n0)
            y = Neg(b)
        }""",
        ["Neg", "Sin", "Slice"],
    ),
}


@pytest.mark.parametrize(("source", "expected", "by_numpy"), READ.values(), ids=READ)
def test_slices_are_read_in_place(source, expected, by_numpy) -> None:
    assert steps(source) == expected
    x = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
    call = compile_program(program_of(source))
    assert call is not None
    (result,) = call(x)
    np.testing.assert_allclose(result, by_numpy(x), rtol=1e-6)


@pytest.mark.parametrize(("source", "expected"), LEFT.values(), ids=LEFT)
def test_other_slices_are_copied(source: str, expected: list[str]) -> None:
    assert steps(source) == expected


def test_it_takes_no_memory() -> None:
    source = READ["a stencil"][0]
    made = planned(program_of(source), "test", (), (fuse_elementwise, read_slices))
    assert allocate(made).arena_bytes == 0


def test_bodies_of_loops() -> None:
    source = """g (float[6] x) => (float[6] y) <NUMBERS, int64 trips = {3}, bool go = {1}> {
        y = Loop(trips, go, x) <body = b (int64 i, bool c, float[6] s) => (bool c2, float[6] r) {
            c2 = Identity(c)
            end = Slice(s, n5, n6, n0)
            start = Slice(s, n0, n5, n0)
            turned = Concat<axis=0>(end, start)
            r = Add(turned, s)
        }>
    }"""
    x = np.arange(6, dtype=np.float32)
    want = x
    for _ in range(3):
        want = np.roll(want, 1) + want
    call = compile_program(program_of(source))
    assert call is not None
    np.testing.assert_array_equal(call(x)[0], want)
