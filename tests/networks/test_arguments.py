"""Wrong arguments of contractions have a code, whatever their type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import smelt
import smelt.ray
from smelt.errors import SmeltError

X = np.ones((3, 3), np.float32)
SQUARES = [np.ones((6, 6), np.float32)] * 3
SLICED = smelt.compile_einsum("ab,bc,ca->", [(6, 6)] * 3, memory_limit=12, engine="numpy")


def compiled(**options: Any) -> Any:
    """Compile a product of two matrices, with the given arguments in place of good ones."""
    given = {"equation": "ab,bc->ac", "shapes": [X, X], "engine": "numpy", **options}
    return smelt.compile_einsum(**given)


def called(*operands: Any, **options: Any) -> Any:
    """Contract two matrices, with the given arguments in place of good ones."""
    return smelt.einsum(*(operands or ("ab,bc->ac", X, X)), engine="numpy", **options)


def traced(**options: Any) -> Any:
    """Contract two matrices in a function that JAX compiles."""
    return jax.jit(lambda x: called("ab,bc->ac", x, x, **options))(X)


WRONG: dict[str, tuple[str, Callable[[Any], object], list[Any]]] = {
    "threads": (
        "E699",
        lambda wrong: SLICED.sum_slices(SQUARES, threads=wrong),
        [0, -1, 1.5, "2", None, True],
    ),
    "progress": ("E699", lambda wrong: SLICED.sum_slices(SQUARES, progress=wrong), [3, "x"]),
    "checkpoint": (
        "E699",
        lambda wrong: SLICED.sum_slices(SQUARES, checkpoint=wrong),
        [3, b"x", 1.5, ""],
    ),
    "a folder as checkpoint": ("E698", lambda _: SLICED.sum_slices(SQUARES, checkpoint="/"), [0]),
    "arrays": ("E699", SLICED.sum_slices, [None, 3, "abc"]),
    "arrays of one slice": ("E699", lambda wrong: SLICED.run_slice(wrong, 0), [None, 3]),
    "arrays of other types": ("E671", SLICED.sum_slices, [[], {}, [None] * 3, ["a"] * 3, [1, 2]]),
    "slice": ("E658", lambda wrong: SLICED.run_slice(SQUARES, wrong), [None, 1.5, [0], -1]),
    "equation": (
        "E655",
        lambda wrong: compiled(equation=wrong),
        [None, 3, b"ab,bc", "", "ab", "ab,bc->ac->", "ab,bc->ad", "->", ","],
    ),
    "shapes": ("E699", lambda wrong: compiled(shapes=wrong), [None, 3, "ab"]),
    "shape": (
        "E656",
        lambda wrong: compiled(shapes=[(2, 3), wrong]),
        [None, 3, "ab", (3, 1.5), (3, -4), (3, None), object()],
    ),
    "dtype": ("E656", lambda wrong: compiled(dtype=wrong), [3, "x", "U3", "M8", [("a", "f4")]]),
    "semiring": ("E657", lambda wrong: compiled(semiring=wrong), [None, 3, "x", object()]),
    "optimize": (
        "E658",
        lambda wrong: compiled(optimize=wrong),
        [3, "x", object(), [], [(0, 0)], [("a", "b")], [0, 1], [None], b"x", [(0, 5)], [(0, -1)]],
    ),
    "optimize of a call": (
        "E658",
        lambda wrong: called(optimize=wrong),
        [3, "x", [], [0, 1], [None], b"x", {"a": 1}],
    ),
    "memory_limit": (
        "E658",
        lambda wrong: compiled(memory_limit=wrong),
        [0, 1.5, "x", -2, True, [1]],
    ),
    "constants": ("E699", lambda wrong: compiled(constants=wrong), [3, "a", [0.5], [None]]),
    "constants of no operand": ("E656", lambda wrong: compiled(constants=wrong), [[5], [-1]]),
    "a constant": (
        "E656",
        lambda wrong: compiled(shapes=[wrong, X], constants=[0]),
        [X * 1j, np.full((3, 3), "a"), (3, 3)],
    ),
    "target": ("E611", lambda wrong: compiled(target=wrong), [None, 3, "x"]),
    "option": (
        "E660",
        lambda wrong: compiled(**wrong),
        [{"engine": "x"}, {"foo": 1}, {"threads": "a"}, {"views": "x"}],
    ),
    "labels": (
        "E655",
        lambda wrong: called(X, wrong),
        [3, [0], [[0], [1]], [0, 1, 2], [..., ..., 0]],
    ),
    "labels of the result": ("E655", lambda wrong: called(X, [0, 1], wrong), [[5], [0, 0], 3]),
    "operand": (
        "E671",
        lambda wrong: called("ab,bc->ac", wrong, X),
        [None, "abc", [[1, 2], [3]], object()],
    ),
    "out": ("E656", lambda wrong: called(out=wrong), [3, "x", [1], np.zeros((2, 3), "f4")]),
    "dtype of a call": ("E656", lambda wrong: called(dtype=wrong), [3, "x", str, "M8[s]", [1]]),
    "casting": ("E656", lambda wrong: called(dtype="f8", casting=wrong), [3, "x", None]),
    "optimize under jit": (
        "E658",
        lambda wrong: traced(optimize=wrong),
        ["qq", [[0, 0]], [(0, 5)]],
    ),
    "memory_limit under jit": ("E658", lambda wrong: traced(memory_limit=wrong), [0, "x"]),
    "semiring under jit": ("E657", lambda wrong: traced(semiring=wrong), ["qq", 3]),
    "options without a hash under jit": (
        "E699",
        lambda wrong: traced(**wrong),
        [{"optimize": {"a": []}}, {"semiring": []}],
    ),
    "option under jit": ("E660", lambda wrong: traced(foo=wrong), [0]),
    "operand under jit": (
        "E671",
        lambda wrong: jax.jit(lambda x: called("ab,bc->ac", x, wrong))(X),
        ["x", None, object()],
    ),
    "retries on Ray": (
        "E699",
        lambda wrong: smelt.ray.contract("ab->", X, retries=wrong),
        [-1, 1.5, "x", None],
    ),
    "progress on Ray": (
        "E699",
        lambda wrong: smelt.ray.contract("ab->", X, progress=wrong),
        [3, "x"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_has_a_code(name: str) -> None:
    code, call, wrongs = WRONG[name]
    for wrong in wrongs:
        with pytest.raises(SmeltError) as caught:
            call(wrong)
        assert caught.value.code == code, wrong
        assert caught.value.fix
