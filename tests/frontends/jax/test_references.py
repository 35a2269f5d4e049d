"""Mutable references and interpreted kernels of Pallas, against JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from smelt.errors import SmeltError
from smelt.frontends.jax import trace


def in_place(x):
    ref = jax.new_ref(x)
    ref[0] = ref[0] * 2
    ref[:, 1:3] = ref[:, 1:3] + 1
    jax.ref.addupdate(ref, (slice(None), 0), x[:, 1])
    before = jax.ref.swap(ref, (0,), jnp.ones(4))
    return before, jax.ref.freeze(ref)


def in_loops(x):
    total, count = jax.new_ref(jnp.zeros(4)), jax.new_ref(jnp.int32(0))

    def step(carry, row):
        def add(i, _):
            total[i] += row[i]
            lax.cond(i % 2 == 0, lambda: count.addupdate(i), lambda: None)

        lax.fori_loop(0, 4, add, None)
        return carry, count[...]

    _, counts = lax.scan(step, 0, x)
    rounds = lax.while_loop(lambda i: count[...] + i < 99, lambda i: i + 1, 0)
    return counts, total[...], rounds


def indexed(x, i):
    ref = jax.new_ref(x)
    ref[i] = ref[i] * 2
    table = jax.new_ref(jnp.stack([x, -x]))
    table[1, jnp.array([0, 2])] += 1
    return ref[jnp.stack([i, 0])], ref[...], table[...]


@jax.jit
def scaled(ref, by):
    ref[...] = ref[...] * by
    return ref[0]


def in_calls(x):
    def of_row(row):
        ref = jax.new_ref(row)
        first = scaled(ref, 3.0)
        return scaled(ref, first)

    return jax.vmap(of_row)(x), jax.grad(lambda w: jnp.sum(jax.checkpoint(of_row)(w[0])))(x)


@pytest.mark.parametrize("fn", [in_place, in_loops, in_calls], ids=lambda fn: fn.__name__)
def test_references_are_the_arrays_that_they_hold(check, fn):
    check(fn, "f32[B,4]")


def test_a_batch_of_open_size_indexes_references(check):
    check(
        jax.vmap(indexed),
        "f32[B,4]",
        "i32[B]",
        inputs=[[np.ones((3, 4), np.float32), np.int32([1, 3, 0])]],
    )


OUTSIDE = jax.new_ref(jnp.zeros(4))


def adds_outside(x):
    OUTSIDE[...] += x[0]
    return OUTSIDE[...]


@pytest.mark.parametrize(
    ("fn", "says"),
    [(adds_outside, "created outside of it"), (jax.new_ref, "returned a mutable reference")],
    ids=["captured", "returned"],
)
def test_references_from_outside_the_function_are_refused(fn, says):
    with pytest.raises(SmeltError, match=says):
        trace(fn, "f32[3,4]")


def blocks(x, y):
    """Return the kernel of a blocked product that accumulates in its result and copies blocks of x."""

    def kernel(x, y, out, seen, scratch):
        @pl.when(pl.program_id(2) == 0)
        def _():
            out[...] = jnp.zeros_like(out)

        scratch[...] = x[...] @ y[...]
        pl.run_scoped(lambda half: half.__setitem__(..., scratch[...] / 2), HALF)
        out[...] += scratch[...]
        seen[...] = jnp.full((1, 2), pl.program_id(1) * pl.num_programs(0), jnp.int32)

    return pl.pallas_call(
        kernel,
        out_shape=[jax.ShapeDtypeStruct((8, 4), x.dtype), jax.ShapeDtypeStruct((2, 4), jnp.int32)],
        grid=(2, 2, 3),
        in_specs=[
            pl.BlockSpec((4, 2), lambda i, j, k: (i, k)),
            pl.BlockSpec((2, 2), lambda i, j, k: (k, j)),
        ],
        out_specs=[
            pl.BlockSpec((4, 2), lambda i, j, k: (i, j)),
            pl.BlockSpec((1, 2), lambda i, j, k: (i, j)),
        ],
        scratch_shapes=[HALF],
        interpret=True,
    )(x, y)


HALF = pltpu.VMEM((4, 2), jnp.float32)


def rows(x):
    """Return a kernel of three rows per program; the last program has fewer rows."""
    return pl.pallas_call(
        lambda x, out: out.__setitem__(..., jnp.sort(x[...], axis=1)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(pl.cdiv(x.shape[0], 3),),
        in_specs=[pl.BlockSpec((3, 4), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((3, 4), lambda i: (i, 0)),
        interpret=True,
    )(x)


def test_an_interpreted_kernel_is_a_loop_over_its_grid(check):
    check(blocks, "f32[8,6]", "f32[6,4]")
    check(rows, "f32[B,4]", sizes=[{"B": 2}, {"B": 7}])


@pytest.mark.parametrize(
    ("spec", "interpret", "says"),
    [
        ("f32[6,4]", False, "interpret=True"),
        ("f32[6,4]", pltpu.InterpretParams(), "interpret=True"),
        ("f32[6,B]", True, "sizes that are numbers"),
    ],
    ids=["for a device", "with devices simulated", "block of open size"],
)
def test_refusals_of_other_kernels_name_a_fix(spec, interpret, says):
    def fn(x):
        return pl.pallas_call(
            lambda x, out: out.__setitem__(..., x[...]),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            interpret=interpret,
        )(x)

    with pytest.raises(SmeltError, match=says) as caught:
        trace(fn, spec)
    assert "test_references.py" in str(caught.value)
