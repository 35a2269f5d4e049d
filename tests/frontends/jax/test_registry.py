"""Other packages register lowerings by the primitive's name, once for each name."""

from __future__ import annotations

import functools
import sys
import threading
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive
from raised import raises_in_function

from smelt.errors import ErrorList, InternalError, UsageError
from smelt.frontends.jax import lowers, registry, trace
from smelt.frontends.jax.patching import patches, replacement
from smelt.frontends.jax.patching.bindings import Binding, binds


@pytest.fixture
def double():
    """Yield a third party's primitive with a lowering, and remove both after the test."""
    primitive = Primitive("test.double")
    primitive.def_impl(lambda x: x * 2)
    primitive.def_abstract_eval(lambda x, **_: x)

    with registry.RULES.refilled():

        @lowers("test.double")
        def lower(cx, x):
            return cx.op("Add", x, x)

        yield primitive


def test_a_third_partys_primitive(double):
    model = trace(double.bind, "f32[3]")
    assert [node.op_type for node in model.graph] == ["Add"]


def test_a_name_taken_by_another_module_is_refused(double):
    def of_another(cx, x):
        return x

    of_another.__module__ = "another"
    with pytest.raises(UsageError) as caught:
        lowers("test.double")(of_another)
    assert caught.value.code == "E650"


def test_the_same_module_may_define_a_lowering_again(double):
    @lowers("test.double")
    def lower(cx, x):
        return cx.op("Neg", x)

    model = trace(double.bind, "f32[3]")
    assert [node.op_type for node in model.graph] == ["Neg"]


def test_a_parameter_that_the_lowering_does_not_know_is_refused(double):
    with pytest.raises(ErrorList) as caught:
        trace(lambda x: double.bind(x, rounding="up"), "f32[3]")
    assert caught.value.code == "E106"
    assert "rounding" in str(caught.value)


@pytest.mark.parametrize(
    "lower",
    [
        lambda cx, x: cx.op("Cast", x, to=7),
        lambda cx, x: cx.op("ReduceSum", x),
        lambda cx, x: cx.op("Concat", x, x, axis=0),
        lambda cx, x: (x, x),
        lambda cx, x: None,
    ],
    ids=["dtype", "rank", "size", "too many", "nothing"],
)
def test_a_wrong_result_of_a_lowering_is_found(lower):
    primitive = Primitive("test.wrong")
    primitive.def_abstract_eval(lambda x: x)
    with registry.RULES.refilled():
        lowers("test.wrong")(lower)
        with pytest.raises(InternalError) as caught:
            trace(primitive.bind, "f32[3]")
        assert caught.value.code == "E910"
        assert "test.wrong" in str(caught.value)


def cube(x, *, scale=1.0):
    return x * x * x * scale


@pytest.fixture
def library(double, monkeypatch):
    """Yield a third party's module whose function ``cube`` is bound to a primitive."""
    module = types.ModuleType("test_library")
    module.cube = cube
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with patches.PATCHES.refilled():
        binds(Binding("test_library:cube", "test.double", lambda x, **_: x))
        yield module


def test_a_binding_is_active_while_tracing_only(library):
    seen = []

    def fn(x):
        seen.append(library.cube is not cube)
        return library.cube(x)

    model = trace(fn, "f32[3]")
    assert seen == [True]
    assert [node.op_type for node in model.graph] == ["Add"]
    assert library.cube is cube


def test_a_binding_is_restored_after_an_error(library):
    with raises_in_function(ZeroDivisionError):
        trace(lambda x: x / (1 // 0), "f32[3]")
    assert library.cube is cube
    assert not replacement._attributes


def test_a_target_that_does_not_exist_leaves_nothing_behind(library):
    binds(Binding("test_library:missing", "test.missing", lambda x: x))
    assert trace(lambda x: x, "f32[3]").graph.inputs
    assert library.cube is cube
    assert not replacement._attributes


def test_a_target_is_bound_once(library):
    with pytest.raises(UsageError) as caught:
        binds(Binding("test_library:cube", "test.other", lambda x: x))
    assert caught.value.code == "E652"
    assert caught.value.at == (f"'test.double' of {__name__}", f"'test.other' of {__name__}")


def test_a_binding_that_is_registered_again_replaces_itself(library):
    """A notebook cell that runs again registers its binding again."""

    def cubed(x):
        return library.cube(x)

    assert [node.op_type for node in trace(cubed, "f32[3]").graph] == ["Add"]
    never = functools.partial(Binding, arguments=lambda *_, **__: None)
    binds(never("test_library:cube", "test.double", lambda x, **_: x))
    assert "Add" not in {node.op_type for node in trace(cubed, "f32[3]").graph}


def test_other_threads_see_the_original(library):
    results = []

    def fn(x):
        thread = threading.Thread(target=lambda: results.append(library.cube(np.float32(2))))
        thread.start()
        thread.join()
        return library.cube(x)

    trace(fn, "f32[3]")
    assert results == [8]


def test_a_bound_function_may_be_batched_and_derived(library):
    def batched(x):
        return jax.vmap(library.cube)(x)

    def derived(x):
        return jax.grad(lambda y: library.cube(y).sum())(x)

    batch = trace(batched, "f32[3]")
    assert {node.op_type for node in batch.graph} == {"Mul"}
    slope = trace(derived, "f32[3]")
    assert {"Mul"} <= {node.op_type for node in slope.graph}
    assert jnp.allclose(derived(jnp.full(3, 2.0)), 12)


def test_a_jitted_function_that_was_traced_with_a_binding_still_runs(library):
    jitted = jax.jit(lambda x: library.cube(x) + 1)
    trace(jitted, "f32[3]")
    assert jnp.allclose(jitted(jnp.full(3, 2.0)), 9)
