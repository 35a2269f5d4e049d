"""Functions mapped over a mesh of one device, and collectives over the dims of a vmap."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from smelt.errors import Unsupported
from smelt.frontends.jax import trace

MESH = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",), axis_types=(AxisType.Auto,))
ROWS = functools.partial(jax.shard_map, mesh=MESH, in_specs=P("d"))
EACH = functools.partial(ROWS, out_specs=P("d"))
ALL = functools.partial(ROWS, out_specs=P())
W = jnp.linspace(-1, 1, 8).reshape(4, 2)


def mlp(x):
    return jnp.tanh(x @ W)


def exchanged(x):
    swapped = jax.lax.ppermute(x, "d", [(0, 0)])
    spread = jax.lax.psum_scatter(x, "d", tiled=True)
    return swapped, spread, jax.lax.all_to_all(x, "d", 0, 0, tiled=True)


def gathered(x):
    tiled = jax.lax.all_gather(x, "d", tiled=True)
    return tiled, jax.lax.all_gather(x, "d"), jax.lax.all_gather(x, "d", axis=1)


def reduced(x):
    return tuple(f(x, "d") for f in (jax.lax.psum, jax.lax.pmean, jax.lax.pmax, jax.lax.pmin))


MAPPED = {
    "a layer": EACH(mlp),
    "its derivative": jax.grad(lambda x: EACH(mlp)(x).sum()),
    "under jit": jax.jit(EACH(mlp)),
    "sums": ALL(lambda x: jax.lax.psum(x.sum(0), "d")),
    "reductions": ALL(reduced),
    "unchecked reductions": functools.partial(ALL, check_vma=False)(reduced),
    "exchanges": EACH(exchanged),
    "gathered": functools.partial(ALL, check_vma=False)(gathered),
    "sent nowhere": EACH(lambda x: jax.lax.ppermute(x, "d", [])),
    "the index of the device": EACH(lambda x: x + jax.lax.axis_index("d") + 1),
    "complex numbers": ALL(lambda x: jax.lax.psum(jnp.abs(jnp.fft.fft(x)).sum(0), "d")),
    "random numbers": EACH(lambda x: x + jax.random.uniform(jax.random.key(0), x.shape)),
    "a constraint": lambda x: jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P("d"))),
}


@pytest.mark.parametrize("name", MAPPED)
def test_a_mesh_of_one_device(check, name):
    check(MAPPED[name], "f32[2,4]", compiled=True)


def test_rows_may_be_symbolic():
    model = trace(EACH(mlp), "f32[B,4]")
    assert [str(dim) for dim in model.graph.outputs[0].shape] == ["B", "2"]


@pytest.mark.parametrize("body", [mlp, lambda x: jnp.fft.fft(x).real])
def test_more_devices_are_refused(body):
    mesh = AbstractMesh((2,), ("d",), axis_types=(AxisType.Auto,))
    fn = jax.shard_map(body, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    with pytest.raises(Unsupported, match="shard_map") as caught:
        trace(fn, "f32[2,4]")
    assert "2 devices" in caught.value.why


@pytest.mark.parametrize("reduction", [jax.lax.psum, jax.lax.pmean, jax.lax.pmax, jax.lax.pmin])
@pytest.mark.parametrize("spec", ["f32[3,4]", "i32[3,4]"])
def test_collectives_over_the_dims_of_a_vmap(check, reduction, spec):
    check(jax.vmap(lambda x: (reduction(x, "i"), x), axis_name="i"), spec)


def test_axis_indices_in_a_vmap(check):
    def fn(x):
        turned = jax.lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)])
        return turned * jax.lax.axis_index("i"), jax.lax.all_gather(x, "i")

    check(jax.vmap(fn, axis_name="i"), "f32[3,4]")
