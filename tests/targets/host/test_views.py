"""``views=True``: results that only show elements of inputs are views of those inputs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text
from smelt.targets.base import Artifact, Plan
from smelt.targets.host import host
from smelt.targets.host.options import Options

SHOWN = {
    "abc->cab": (2, 3, 4),
    "aab->ba": (3, 3, 2),
    "aaa->a": (3, 3, 3),
    "ab->ab": (2, 3),
    "abc->bca ": (2, 0, 3),
}


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64])
@pytest.mark.parametrize("equation", SHOWN)
def test_einsums_of_one_operand_return_views(equation: str, dtype: type) -> None:
    shape = SHOWN[equation]
    artifact = smelt.compile_einsum(equation, [shape], dtype)
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for given in (x, np.asfortranarray(x), np.flip(x)):
        (found,) = artifact(given)
        np.testing.assert_array_equal(found, np.einsum(equation, given))
        assert found.dtype == dtype
        assert not found.flags.writeable
        assert not x.size or np.shares_memory(found, given)


def test_computed_results_own_their_memory() -> None:
    artifact = smelt.compile_einsum("ab->a", [(2, 3)])
    x = np.ones((2, 3), np.float32)
    (found,) = artifact(x)
    found += 1
    np.testing.assert_array_equal(artifact(x)[0], 3)


def test_without_the_option_every_result_owns_its_memory() -> None:
    x = np.ones((2, 3), np.float32)
    (found,) = smelt.compile_einsum("ab->ba", [(2, 3)], views=False)(x)
    assert found.flags.writeable
    assert not np.shares_memory(found, x)


def made(graph: str) -> Artifact:
    plan = Plan(text.parse(graph), Options(engine="numpy", views=True))
    host.schedule(plan)
    host.allocate(plan)
    return host.emit(plan)


COMPUTED = {
    "one of two results": "g (float[2,3] x) => (float[3,2] y, float[2,3] z) { y = Transpose(x) z = Neg(x) }",
    "a Reshape that strides cannot show": """g (float[2,3] x) => (float[6] y) {
        t = Transpose(x) s = Constant<value_ints=[6]>() y = Reshape(t, s) }""",
    "a constant": "g (float[1] x) => (float[2] y) { y = Constant<value_floats=[1.0, 2.0]>() }",
    "sizes that are not known": "g (float[N,3] x) => (float[3,N] y) { y = Transpose(x) }",
}


@pytest.mark.parametrize("graph", COMPUTED.values(), ids=COMPUTED)
def test_a_program_with_one_computed_result_returns_no_views(graph: str) -> None:
    artifact = made(graph)
    (value,) = artifact.model.graph.inputs
    x = np.ones([d if isinstance(d, int) else 2 for d in value.shape.dims], np.float32)
    for result in artifact(x):
        assert result.flags.writeable
        assert not np.shares_memory(result, x)


def test_a_slice_of_an_input_is_a_view() -> None:
    artifact = made("""g (float[4,6] x) => (float[6,2] y) {
        b = Constant<value_ints=[1]>() e = Constant<value_ints=[3]>() a = Constant<value_ints=[0]>()
        s = Slice(x, b, e, a) y = Transpose(s) }""")
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    (found,) = artifact(x)
    np.testing.assert_array_equal(found, x[1:3].T)
    assert np.shares_memory(found, x)


@pytest.mark.parametrize(
    ("given", "code"),
    [(np.ones((3, 2), np.float32), "E670"), (np.ones((2, 3)), "E671"), (None, "E671")],
)
def test_arrays_that_do_not_fit_are_refused(given: np.ndarray | None, code: str) -> None:
    artifact = smelt.compile_einsum("ab->ba", [(2, 3)])
    with pytest.raises(UsageError) as caught:
        artifact(given)
    assert caught.value.code == code


def test_pickles_keep_it() -> None:
    again = pickle.loads(pickle.dumps(smelt.compile_einsum("ab->ba", [(2, 3)])))
    assert not again(np.ones((2, 3), np.float32))[0].flags.writeable
