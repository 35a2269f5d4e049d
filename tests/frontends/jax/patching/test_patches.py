"""Patches replace functions of libraries while smelt traces."""

from __future__ import annotations

import dataclasses
import functools
import sys
import types

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from smelt.errors import UsageError
from smelt.frontends.jax import trace
from smelt.frontends.jax.patching import patches
from smelt.frontends.jax.patching.replacement import replaced
from smelt.runtime.runner import run


@pytest.fixture
def library(monkeypatch):
    """A module whose ``double`` is patched to triple."""
    module = types.ModuleType("patched_library")
    module.double = lambda x: x * 2
    monkeypatch.setitem(sys.modules, module.__name__, module)
    patch = patches.Patch("patched_library:double", lambda original: lambda x: original(x) + x)
    with patches.PATCHES.refilled():
        patches.register(patch)
        yield module


def test_a_patch_applies_only_during_a_trace(library):
    original = library.double
    found = patches.replacements()
    with replaced(found), replaced(found):
        assert library.double(1.0) == 3
    assert library.double is original


def test_a_target_has_one_patch(library):
    again = patches.Patch("patched_library:double", lambda original: original)
    patches.register(again)
    assert patches.PATCHES[again.target] is again
    with pytest.raises(UsageError, match="E652"):
        patches.register(dataclasses.replace(again, owner="another.package"))


def test_patches_do_not_import_optional_modules():
    patch = patches.Patch("wsgiref.headers:Headers", lambda original: original, optional=True)
    imported = "wsgiref.headers" in sys.modules
    with patches.PATCHES.refilled():
        patches.register(patch)
        trace(jnp.sin, "f32[3]")
        assert ("wsgiref.headers" in sys.modules) == imported


def test_methods_are_restored_as_the_same_objects():
    classes = (nnx.LayerNorm, eqx.nn.LayerNorm)
    before = [vars(cls)["__call__"] for cls in classes]
    trace(eqx.nn.LayerNorm(4), "f32[4]")
    assert all(vars(cls)["__call__"] is m for cls, m in zip(classes, before, strict=True))


@pytest.mark.parametrize("cls", [nnx.LayerNorm, eqx.nn.LayerNorm, nn.LayerNorm])
def test_methods_patched_by_others_are_called(cls, monkeypatch):
    original = cls.__call__

    @functools.wraps(original)
    def doubled(layer, x):
        return 2 * original(layer, x)

    linen = nn.LayerNorm()
    variables = linen.init(jax.random.key(0), jnp.ones((1, 4)))
    monkeypatch.setattr(cls, "__call__", doubled)
    layer = {
        nnx.LayerNorm: lambda: nnx.LayerNorm(4, rngs=nnx.Rngs(0)),
        eqx.nn.LayerNorm: lambda: eqx.nn.LayerNorm(4),
        nn.LayerNorm: lambda: lambda x: linen.apply(variables, x),
    }[cls]()
    x = jnp.asarray([1.0, 2.0, 3.0, 5.0])
    np.testing.assert_allclose(run(trace(layer, "f32[4]"), [np.asarray(x)])[0], layer(x), rtol=1e-5)


def test_cached_traces_of_smelt_do_not_reach_jax():
    jitted = jax.jit(nnx.LayerNorm(4, rngs=nnx.Rngs(0)))
    assert [node.op_type for node in trace(jitted, "f32[3,4]").graph] == ["LayerNormalization"]
    text = str(jax.make_jaxpr(jitted)(jnp.ones((3, 4))))
    assert "layer_norm" not in text
    assert "rsqrt" in text
    assert [node.op_type for node in trace(jitted, "f32[3,4]").graph] == ["LayerNormalization"]


@pytest.mark.parametrize("wrapped", [jnp.sin, lambda x: x + 1], ids=["library", "somebody's"])
def test_decorated_functions_are_judged_by_the_wrapped_function(monkeypatch, wrapped):
    decorator = types.ModuleType("decorator")
    decorator.__file__ = "/packages/decorator.py"
    monkeypatch.setitem(sys.modules, "decorator", decorator)
    names = {}
    exec(compile("def made(x): return x", decorator.__file__, "exec"), names)
    names["made"].__wrapped__ = wrapped
    patch = patches.Patch("jax.numpy:made", lambda original: lambda x: original(x) * 2)
    monkeypatch.setattr(jnp, "made", names["made"], raising=False)
    with patches.PATCHES.refilled():
        patches.register(patch)
        (result,) = run(trace(lambda x: jnp.made(x) + 0, "f32[3]"), [np.ones(3, np.float32)])
    assert result[0] == (2 if wrapped is jnp.sin else 1)


def test_patches_of_modules_that_are_imported_meanwhile_are_in_place(monkeypatch):
    late = types.ModuleType("late_library")
    late.size = lambda x: int(x.shape[0])
    patch = patches.Patch("late_library:size", lambda _: lambda x: x.shape[0], optional=True)

    def fn(x):
        monkeypatch.setitem(sys.modules, late.__name__, late)
        return jnp.ones(late.size(x))

    with patches.PATCHES.refilled():
        patches.register(patch)
        assert trace(fn, "f32[N]").graph.outputs[0].shape == ("N",)
