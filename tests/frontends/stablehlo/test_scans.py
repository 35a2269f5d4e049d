"""A scan that was exported is a scan again; other loops stay loops."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import smelt


def exported(fn, *dims, constraints=()):
    scope = export.SymbolicScope(constraints)
    shapes = [export.symbolic_shape(each, scope=scope) for each in dims]
    return export.export(jax.jit(fn))(*[jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes])


def agree(fn, given, *shapes):
    """Assert that the model of the export ``given`` has the results of ``fn``; return its operators."""
    model = smelt.trace(given)
    rng = np.random.default_rng(0)
    run = smelt.compile(model)
    for each in shapes:
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in each]
        expected = jax.tree.leaves(jax.jit(fn)(*arrays))
        for got, want in zip(run(*arrays), expected, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    return Counter(node.op_type for node in model.graph)


def test_a_counter_that_the_body_does_not_read_is_not_carried():
    (scan,) = (n for n in smelt.trace(exported(forward, "3", "S,3")).graph if n.op_type == "Scan")
    assert (len(scan.inputs), scan.attributes.get_int("num_scan_inputs")) == (2, 1)


def forward(c, x):
    return lax.scan(lambda c, x: (c * 0.5 + x, (c, x.sum())), c, x)


def backward(c, x):
    return lax.scan(lambda c, x: (c * 0.5 + x, c - x), c, x, reverse=True)


def counting(c, x):
    return lax.scan(lambda c, ix: (c + ix[0], ix[1] * ix[0]), c, (jnp.arange(5.0), x))


def writing_only(c, x):
    return lax.scan(lambda c, _: (c * 2 + x[0], c), c, None, length=5)


@pytest.mark.parametrize("fn", [forward, backward, counting, writing_only])
def test_loops_over_rows_become_scans(fn):
    operators = agree(fn, exported(fn, "B,3", "5,B,3"), ((1, 3), (5, 1, 3)), ((4, 3), (5, 4, 3)))
    assert operators["Scan"] + operators["Loop"] == 1
    assert operators["ScatterND"] == operators["Slice"] == 0


def test_the_number_of_rows_may_be_symbolic():
    given = exported(backward, "3", "S,3")
    assert agree(backward, given, ((3,), (1, 3)), ((3,), (6, 3)))["Scan"] == 1


def every_second(c, x):
    return lax.fori_loop(0, 2, lambda i, c: c + x[2 * i], c)


def neighbours(c, x):
    def step(carry):
        i, y = carry
        row = lax.dynamic_index_in_dim(y, i, 0, keepdims=False)
        return i + 1, lax.dynamic_update_index_in_dim(y, row + c, i + 1, 0)

    return lax.while_loop(lambda carry: carry[0] < 5, step, (0, x))[1]


def ends_early(c, x):
    def step(carry):
        i, total = carry
        return i + 1, total + lax.dynamic_index_in_dim(x, i, 0, keepdims=False)

    return lax.while_loop(lambda carry: carry[0] < 3, step, (0, c))


def starts_late(c, x):
    def step(carry):
        i, total = carry
        return i + 1, total + lax.dynamic_index_in_dim(x, i, 0, keepdims=False)

    return lax.while_loop(lambda carry: carry[0] < 5, step, (jnp.int32(1), c))


def written_and_read(c, x):
    def step(carry):
        i, y = carry
        row = lax.dynamic_index_in_dim(y, i, 0, keepdims=False) + y[0]
        return i + 1, lax.dynamic_update_index_in_dim(y, row, i, 0)

    return lax.while_loop(lambda carry: carry[0] < 5, step, (0, x))[1]

    return lax.while_loop(lambda carry: carry[0] < 5, step, (0, x))[1]


@pytest.mark.parametrize(
    "fn",
    [
        neighbours,
        ends_early,
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (every_second, starts_late, written_and_read)
        ),
    ],
)
def test_other_loops_stay_loops(fn):
    agree(fn, exported(fn, "3", "5,3"), ((3,), (5, 3)))


def test_a_loop_over_rows_in_both_directions_stays_a_loop():
    def both(x):
        def step(carry):
            i, total = carry
            rows = [lax.dynamic_index_in_dim(x, at, 0, keepdims=False) for at in (i, 5 - i - 1)]
            return i + 1, total * rows[0] + rows[1]

        return lax.while_loop(lambda carry: carry[0] < 5, step, (0, x[0]))

    agree(both, exported(both, "5,3"), ((5, 3),))


def test_a_counter_that_the_body_reads_is_carried():
    def last(x):
        def step(carry):
            i, total = carry
            row = lax.dynamic_index_in_dim(x, i, 0, keepdims=False)
            return i + 1, total + row * i.astype(jnp.float32)

        i, total = lax.while_loop(lambda carry: carry[0] < 5, step, (jnp.int32(0), x[0]))
        return total, i

    agree(last, exported(last, "5,3"), ((5, 3),))
