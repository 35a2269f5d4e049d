"""Layer and group normalizations of flax and equinox each become one operator."""

from __future__ import annotations

from collections import Counter

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import errors, nnx
from jax.scipy.special import erf
from raised import raises_in_function

import smelt
from smelt.frontends.jax import trace


def operators(model):
    return Counter(node.op_type for node in model.graph)


def varied(module):
    """``module`` with parameters that are neither ones nor zeros."""
    rng = np.random.default_rng(0)

    def vary(leaf):
        return jnp.asarray(rng.uniform(0.5, 2, leaf.shape), leaf.dtype)

    if isinstance(module, nnx.Module):
        nnx.update(module, jax.tree.map(vary, nnx.state(module)))
        return module
    return jax.tree.map(lambda x: vary(x) if eqx.is_array(x) else x, module)


@pytest.mark.parametrize(
    "options",
    [{}, {"use_bias": False}, {"use_scale": False}, {"use_fast_variance": False, "epsilon": 0.1}],
    ids=["plain", "no bias", "no scale", "two passes"],
)
def test_layer_norm_of_flax(check, options):
    layer = varied(nnx.LayerNorm(16, rngs=nnx.Rngs(0), **options))
    assert operators(check(layer, "f32[B,7,16]")) == {"LayerNormalization": 1}
    assert operators(check(layer, "f32[16]")) == {"LayerNormalization": 1}


@pytest.mark.parametrize("options", [{}, {"use_bias": False}, {"use_weight": False}])
def test_layer_norm_of_equinox(check, options):
    layer = varied(eqx.nn.LayerNorm((5, 8), **options))
    assert operators(check(layer, "f32[5,8]")) == {"LayerNormalization": 1}
    assert operators(check(jax.vmap(layer), "f32[B,5,8]")) == {"LayerNormalization": 1}
    mapped = jax.vmap(jax.vmap(layer, 1, 1), 1, 1)
    found = operators(check(mapped, "f32[5,B,3,8]"))
    assert (found["LayerNormalization"], found["ReduceSum"]) == (1, 0)


@pytest.mark.parametrize("options", [{}, {"use_bias": False}, {"use_scale": False}])
def test_group_norm_of_flax(check, options):
    layer = varied(nnx.GroupNorm(12, num_groups=4, rngs=nnx.Rngs(0), **options))
    found = operators(check(layer, "f32[B,5,6,12]"))
    assert (found["InstanceNormalization"], found["Transpose"]) == (1, 2)
    assert found.total() <= 8
    assert operators(check(layer, "f32[B,5,12]", opset=18))["InstanceNormalization"] == 1


GROUPS = {
    "nnx": lambda fast: nnx.GroupNorm(12, 4, use_fast_variance=fast, rngs=nnx.Rngs(0)),
    "linen": lambda fast: linen(
        nn.GroupNorm(4, use_fast_variance=fast, use_scale=False, use_bias=False), 4
    ),
}


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("library", GROUPS)
def test_group_norms_are_exact_for_large_means_in_the_runtime(library, fast):
    """ONNX Runtime has no kernel for GroupNormalization, and NaN from its body for means of 1e4."""
    x = (1e4 + np.random.default_rng(0).normal(size=(2, 8, 8, 12))).astype(np.float32)
    groups = x.astype(np.float64).reshape(2, 64, 4, 3)
    mean, variance = (f(groups, (1, 3), keepdims=True) for f in (np.mean, np.var))
    expected = ((groups - mean) / np.sqrt(variance + 1e-6)).reshape(x.shape)
    model = smelt.compile(GROUPS[library](fast), "f32[B,8,8,12]")
    assert operators(model.model)["InstanceNormalization"] == 1
    np.testing.assert_allclose(model(x)[0], expected, atol=5e-3)


def test_group_norm_of_empty_images(check):
    """ONNX Runtime rejects empty images."""
    layer = varied(nnx.GroupNorm(12, num_groups=4, rngs=nnx.Rngs(0)))
    found = operators(check(lambda x: layer(x[:, 1:]), "f32[B,S,12]", sizes=[{"B": 2, "S": 1}]))
    assert found["InstanceNormalization"] == 0
    assert operators(check(layer, "f32[2,0,12]"))["InstanceNormalization"] == 0


def norm(**options):
    return varied(nnx.LayerNorm(8, rngs=nnx.Rngs(0), **options))


def masked(x):
    return norm()(x, mask=jnp.arange(8) < 5)


UNUSUAL = {
    "half": (lambda: norm(param_dtype=jnp.float16), "f16[B,8]"),
    "mixed": (norm, "f16[B,8]"),
    "other axes": (lambda: norm(reduction_axes=(-2, -1)), "f32[B,3,8]"),
    "a mask": (lambda: masked, "f32[B,8]"),
    "groups of a mixed type": (lambda: nnx.GroupNorm(8, 2, rngs=nnx.Rngs(0)), "f16[B,3,8]"),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_norms_beyond_the_operator_are_not_replaced(check, name):
    make, spec = UNUSUAL[name]
    found = operators(check(make(), spec, rtol=1e-2, atol=1e-2))
    assert not found["LayerNormalization"] + found["InstanceNormalization"]


def test_double_precision_is_traced_as_it_is(check):
    layer = varied(eqx.nn.LayerNorm(8))
    found = operators(check(layer, "f64[8]", x64=True, rtol=1e-6))
    assert found["LayerNormalization"] == 0


def test_derivatives_and_batches_of_parameters(check):
    layer = varied(nnx.LayerNorm(8, rngs=nnx.Rngs(0)))
    weights = jnp.asarray(np.random.default_rng(1).normal(size=8), jnp.float32)

    def loss(x):
        return jnp.sum(jax.jit(layer)(x) * weights)

    check(jax.grad(loss), "f32[B,8]", rtol=1e-4, atol=1e-5)
    check(lambda x: jax.jvp(loss, (x,), (jnp.cos(x),)), "f32[3,8]", rtol=1e-4, atol=1e-5)
    layers = jax.vmap(lambda scale: eqx.tree_at(lambda n: n.weight, eqx.nn.LayerNorm(8), scale))(
        jnp.arange(24.0).reshape(3, 8)
    )
    check(eqx.filter_vmap(lambda layer, x: layer(x))(layers, jnp.ones((3, 8))).__mul__, "f32[3,8]")
    check(lambda x: eqx.filter_vmap(lambda layer, row: layer(row))(layers, x), "f32[3,8]")


def test_a_loop_may_normalize(check):
    layer = varied(nnx.LayerNorm(8, rngs=nnx.Rngs(0)))

    def fn(x):
        return jax.lax.fori_loop(0, 3, lambda i, y: layer(erf(y) + i), x)

    check(fn, "f32[B,8]", atol=1e-5)


def test_rows_that_are_not_finite_or_all_alike(check):
    layer = varied(nnx.LayerNorm(4, rngs=nnx.Rngs(0)))
    rows = np.array([[1, 2, np.nan, 4], [np.inf, 0, 1, 2], [3, 3, 3, 3], [0, -0.0, 0, 0]])
    check(layer, "f32[B,4]", inputs=[[rows.astype(np.float32)]])


def test_shapes_that_the_libraries_refuse_are_refused():
    with raises_in_function(ValueError, match="must satisfy the invariant"):
        trace(eqx.nn.LayerNorm(8), "f32[3,8]")
    with raises_in_function((TypeError, ValueError)):
        trace(nnx.LayerNorm(8, rngs=nnx.Rngs(0)), "f32[3,7]")


def linen(layer, rank):
    """Return the linen ``layer`` as a function, with parameters that are neither ones nor zeros."""
    x = jnp.ones((1,) * (rank - 1) + (12,))
    variables = jax.eval_shape(layer.init, jax.random.key(0), x)
    rng = np.random.default_rng(0)
    varied = jax.tree.map(lambda x: jnp.asarray(rng.uniform(0.5, 2, x.shape), x.dtype), variables)
    return lambda x: layer.apply(varied, x)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_bias": False},
        {"use_scale": False, "use_bias": False},
        {"use_fast_variance": False},
    ],
)
def test_norms_of_linen(check, options):
    layer = linen(nn.LayerNorm(**options), 3)
    assert operators(check(layer, "f32[B,7,12]")) == {"LayerNormalization": 1}
    groups = linen(nn.GroupNorm(4, **options), 4)
    found = operators(check(groups, "f32[B,5,6,12]"))
    assert (found["InstanceNormalization"], found["Transpose"]) == (1, 2)
    sizes = linen(nn.GroupNorm(None, group_size=3, **options), 3)
    assert operators(check(sizes, "f32[B,6,12]"))["InstanceNormalization"] == 1


@pytest.mark.parametrize(
    ("layer", "spec"),
    [
        (nn.LayerNorm(dtype=jnp.float16), "f16[B,12]"),
        (nn.LayerNorm(reduction_axes=(-2, -1)), "f32[B,3,12]"),
        (nn.GroupNorm(4, dtype=jnp.float16), "f32[B,3,12]"),
        (nn.RMSNorm(), "f32[B,12]"),
    ],
    ids=["half", "other axes", "groups in half", "rms"],
)
def test_unusual_norms_of_linen_are_traced_as_they_are(check, layer, spec):
    rank = spec.count(",") + 1
    found = operators(check(linen(layer, rank), spec, rtol=2e-2, atol=2e-2))
    assert not found["LayerNormalization"] + found["InstanceNormalization"]


def test_linen_still_checks_its_arguments():
    with raises_in_function(errors.ScopeParamShapeError):
        trace(linen(nn.LayerNorm(), 2), "f32[B,8]")
    with raises_in_function(ValueError, match="does not divide"):
        trace(linen(nn.GroupNorm(4), 3), "f32[B,3,10]")
    layer = nn.LayerNorm()
    with raises_in_function(errors.ScopeParamNotFoundError):
        trace(lambda x: layer.apply({"params": {"scale": jnp.ones(8)}}, x), "f32[B,8]")


def test_linen_still_captures_intermediates():
    """Intermediate results are captured, and methods intercepted, as without a trace."""
    layer = nn.LayerNorm()
    variables = layer.init(jax.random.key(0), jnp.ones((1, 8)))

    def captured(x):
        return layer.apply(variables, x, capture_intermediates=True)[1]["intermediates"]

    assert operators(trace(captured, "f32[B,8]"))["LayerNormalization"] == 1

    def double(next_fun, args, kwargs, context):
        return 2 * next_fun(*args, **kwargs)

    def intercepted(x):
        with nn.intercept_methods(double):
            return layer.apply(variables, x)

    assert operators(trace(intercepted, "f32[B,8]"))["Mul"] == 1


@pytest.mark.parametrize("library", ["flax", "equinox"])
def test_a_layer_may_be_a_function_of_the_model(library):
    if library == "flax":
        layers = [nnx.LayerNorm(8, rngs=nnx.Rngs(0)) for _ in range(2)]
    else:
        layers = [eqx.nn.LayerNorm(8), eqx.nn.LayerNorm(8)]
    model = trace(lambda x: layers[1](layers[0](x)), "f32[8]", functions=(type(layers[0]),))
    assert operators(model) == {"LayerNorm": 2}
    (body,) = model.functions.values()
    assert [node.op_type for node in body] == ["LayerNormalization"]


@pytest.mark.parametrize("derived", [False, True])
def test_on_a_mesh_of_one_device(check, derived):
    layer = varied(nnx.LayerNorm(8, rngs=nnx.Rngs(0)))
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    mapped = jax.shard_map(layer, mesh=mesh, in_specs=spec, out_specs=spec)
    fn = jax.grad(lambda x: jnp.sum(jnp.sin(mapped(x)))) if derived else mapped
    check(fn, "f32[4,8]", rtol=1e-4, atol=1e-5)


def test_arguments_by_name_and_ways_to_promote_are_those_of_the_library(check):
    state = eqx.nn.State(eqx.nn.LayerNorm(8))
    check(lambda x: eqx.nn.LayerNorm(8)(x, state=state)[0], "f32[8]")
    check(lambda x: nnx.LayerNorm(8, rngs=nnx.Rngs(0))(x=x, mask=None), "f32[B,8]")

    def halved(arrays, *, dtype):
        return tuple(None if a is None else a / 2 for a in arrays)

    found = operators(check(norm(promote_dtype=halved), "f32[B,8]"))
    assert found["LayerNormalization"] == 0


@pytest.mark.parametrize("make", [norm, lambda: jax.vmap(eqx.nn.LayerNorm(8))])
def test_where_ranks_may_not_differ(make):
    layer = make()
    with jax.numpy_rank_promotion("raise"):
        trace(layer, "f32[3,8]")
        trace(jax.grad(lambda x: jnp.sum(jax.jit(layer)(x))), "f32[3,8]")
