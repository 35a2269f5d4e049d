"""Callers get new results and untouched inputs, and errors that name what is wrong."""

from __future__ import annotations

import threading

import numpy as np
import onnx_ir as ir
import pytest

from smelt.errors import ErrorList, InvalidModel, UsageError
from smelt.ir import text
from smelt.targets.host import runner

CHAIN = """g (float[B,4] x) => (float[B,4] y, float[4,B] z) {
    a = Exp(x)
    b = Add(a, x)
    y = Neg(b)
    z = Transpose(b)
}"""


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_symbolic_sizes_are_planned_on_the_first_call(agree, batch: int) -> None:
    agree(CHAIN, np.random.default_rng(0).standard_normal((batch, 4)).astype(np.float32))


def test_unnamed_dims_accept_any_size(agree, compile_host) -> None:
    model = text.parse("g (float[?,4] x) => (y) { a = Exp(x) y = Neg(a) }")
    agree(model, ones(3, 4))
    agree(model, ones(2, 4))
    assert model.graph.inputs[0].shape[0].value is None


def test_a_wrong_declared_output_size_is_reported(compile_host) -> None:
    model = text.parse("g (float[2] x) => (float[9] y) { a = Exp(x) y = Neg(a) }")
    assert compile_host(model)(ones(2))[0].shape == (2,)
    model = text.parse(
        "g (float s, float e) => (float[2] y) { d = Constant<value_float=1.0>() y = Range(s, e, d) }"
    )
    artifact = compile_host(model)
    np.testing.assert_array_equal(artifact(np.float32(3), np.float32(5))[0], [3, 4])
    with pytest.raises(UsageError, match="E670"):
        artifact(np.float32(3), np.float32(6))


def test_results_of_one_call_survive_the_next(compile_host) -> None:
    artifact = compile_host(CHAIN.replace("B", "2"))
    first = artifact(ones(2, 4))
    kept = [array.copy() for array in first]
    artifact(5 * ones(2, 4))
    for array, before in zip(first, kept, strict=True):
        np.testing.assert_array_equal(array, before)
        assert array.flags.c_contiguous
        assert array.flags.writeable


OUTPUTS = {
    "an input": "g (float[3] x) => (float[3] y) { y = Identity(x) }",
    "a view of an input": "g (float[2,3] x) => (float[3,2] y) { y = Transpose(x) }",
    "a reshaped input": "g (float[2,3] x) => (float[6] y) { s = Constant<value_ints=[6]>() y = Reshape(x, s) }",
    "a constant": "g (float[1] x) => (float[2] y) { y = Constant<value_floats=[1.0, 2.0]>() }",
    "a broadcast input": "g (float[1,3] x) => (float[2,3] y) { s = Constant<value_ints=[2,3]>() y = Expand(x, s) }",
}


@pytest.mark.parametrize("graph", OUTPUTS.values(), ids=OUTPUTS.keys())
def test_no_result_shares_memory_with_an_input_or_a_constant(compile_host, graph: str) -> None:
    model = text.parse(graph)
    shape = model.graph.inputs[0].shape
    assert shape is not None
    artifact = compile_host(model)
    x = ones(*shape.numpy())
    (result,) = artifact(x)
    assert not np.shares_memory(result, x)
    expected = result.copy()
    result += 1
    np.testing.assert_array_equal(artifact(x)[0], expected)
    np.testing.assert_array_equal(x, 1)


def test_an_output_returned_twice_is_two_arrays(compile_host) -> None:
    artifact = compile_host(
        "g (float[3] x) => (float[3] a, float[3] b) { a = Neg(x) b = Identity(a) }"
    )
    a, b = artifact(ones(3))
    np.testing.assert_array_equal(a, b)
    assert not np.shares_memory(a, b)


def test_inputs_may_have_any_layout(agree) -> None:
    base = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
    graph = "g (float[3,4] x, float[4,5] w) => (y) { a = MatMul(x, w) y = Relu(a) }"
    agree(graph, base.T[::2, ::2], base[:4, :5])


def test_read_only_inputs_stay_as_they_are(compile_host) -> None:
    x = ones(3)
    x.flags.writeable = False
    (y,) = compile_host("g (float[3] x) => (float[3] y) { a = Neg(x) b = Exp(a) y = Neg(b) }")(x)
    np.testing.assert_allclose(y, -np.exp(-ones(3)))


@pytest.mark.parametrize("engine", ["numpy"], indirect=True)
def test_plans_of_old_shapes_are_dropped(compile_host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "KEPT_PLANS", 2)
    artifact = compile_host(CHAIN)
    for size in (1, 2, 3, 1, 3, 2):
        y, z = artifact(ones(size, 4))
        assert (y.shape, z.shape) == ((size, 4), (4, size))
    assert len(artifact._runner._plans) == 2


def test_threads_may_share_an_artifact(compile_host) -> None:
    artifact = compile_host("g (float[64,64] x) => (y) { a = MatMul(x, x) b = Exp(a) y = Neg(b) }")
    inputs = [np.full((64, 64), i / 100, np.float32) for i in range(8)]
    expected = [artifact(x)[0] for x in inputs]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(20):
            if not np.array_equal(artifact(inputs[i])[0], expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_input_with_a_default_may_be_left_out(compile_host) -> None:
    model = text.parse("g (float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }")
    weight = model.graph.inputs[1]
    weight.const_value = ir.Tensor(np.array([1, 2], np.float32))
    model.graph.register_initializer(weight)
    artifact = compile_host(model)
    np.testing.assert_array_equal(artifact(ones(2), None)[0], [2, 3])
    np.testing.assert_array_equal(artifact(ones(2), ones(2))[0], [2, 2])
    with pytest.raises(UsageError, match="has no default"):
        artifact(None, None)


MISFITS = {
    "rank": ((4,), np.float32, "E670"),
    "fixed size": ((2, 5), np.float32, "E670"),
    "dtype": ((2, 4), np.float64, "E671"),
}


@pytest.mark.parametrize(("shape", "dtype", "code"), MISFITS.values(), ids=MISFITS.keys())
def test_inputs_that_do_not_fit(
    compile_host, shape: tuple[int, ...], dtype: type, code: str
) -> None:
    with pytest.raises(UsageError, match="'x'") as caught:
        compile_host(CHAIN)(np.ones(shape, dtype))
    assert caught.value.code == code


def test_equal_names_are_equal_sizes(compile_host) -> None:
    artifact = compile_host("g (float[B] x, float[B] y) => (float[B] z) { z = Add(x, y) }")
    with pytest.raises(UsageError, match="does not fit") as caught:
        artifact(ones(2), ones(1))
    assert caught.value.code == "E670"


def test_an_index_out_of_range(compile_host) -> None:
    artifact = compile_host("g (float[3] x, int64[N] i) => (float[N] y) { y = Gather(x, i) }")
    with pytest.raises(InvalidModel, match="out of range") as caught:
        artifact(ones(3), np.array([3]))
    assert caught.value.code == "E321"
    np.testing.assert_array_equal(artifact(ones(3), np.array([-1]))[0], [1])


REFUSED = {
    "an operator": ("g (float[3] x) => (y) { y = Bernoulli(x) }", "E201"),
    "an element type": ("g (string[3] x) => (string[3] y) { y = Identity(x) }", "E402"),
}


@pytest.mark.parametrize(("graph", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses_when_it_compiles_not_when_it_runs(compile_host, graph: str, code: str) -> None:
    with pytest.raises(ErrorList) as caught:
        compile_host(graph)
    assert {error.code for error in caught.value.errors} == {code}


def test_everything_that_is_unsupported_is_listed_at_once(compile_host) -> None:
    graph = "g (float[3] x) => (a, b) { a = RandomNormalLike(x) b = Bernoulli(x) c = Neg(a) }"
    with pytest.raises(ErrorList) as caught:
        compile_host(graph)
    assert [error.what.split()[1] for error in caught.value.errors] == [
        "RandomNormalLike",
        "Bernoulli",
    ]


def test_names_never_become_code(compile_host) -> None:
    model = text.parse("g (float[2] x) => (float[2] y) { h = Exp(x) y = Neg(h) }")
    evil = "x'); raise SystemExit  # \n"
    for value in (*model.graph.inputs, *(v for n in model.graph for v in n.outputs)):
        value.name = f"{evil}{value.name}"
    for node in model.graph:
        node.name = evil
    model.graph.name = evil
    artifact = compile_host(model)
    np.testing.assert_allclose(artifact(ones(2))[0], -np.exp(ones(2)))


def test_the_same_model_gives_the_same_files(compile_host) -> None:
    assert (
        compile_host(CHAIN.replace("B", "2")).files == compile_host(CHAIN.replace("B", "2")).files
    )


def test_the_arena_that_numpy_uses_is_reported_and_written(compile_host) -> None:
    """The compiled program has a plan of its own; the plan for NumPy is made when a folder is
    written.
    """
    artifact = compile_host(CHAIN.replace("B", "64"))
    facts, native = artifact.plan.facts, artifact.plan.options.engine == "native"
    assert native != (facts.get("arena_bytes", 0) >= facts.get("arena_bound_bytes", 1) > 0)
    assert b"arena" in artifact.files["memory.txt"]
