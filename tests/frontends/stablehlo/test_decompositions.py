"""smelt recognizes functions that JAX expands when it exports them, and no other arithmetic."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jaxlib.mlir import ir

import smelt
from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.decompositions import DECOMPOSITIONS
from smelt.frontends.stablehlo.evaluate import Evaluator

SHAPES = {"fixed": "3,4", "scalar": "", "symbolic": "B,2*B,3"}


def exported(fn, *structs, x64=False):
    with jax.enable_x64(x64):
        return export.export(jax.jit(fn))(*structs)


def structs(count, dims, dtype):
    return [jax.ShapeDtypeStruct(export.symbolic_shape(dims) if dims else (), dtype)] * count


def operators(model):
    return Counter(node.op_type for node in model.graph)


def same_operators(each, dtype, dims):
    given = structs(each.count, dims, dtype)
    x64 = dtype == "float64"
    direct = smelt.trace(each.function, *given, x64=x64)
    assert operators(smelt.trace(exported(each.function, *given, x64=x64))) == operators(direct)


QUICK = {"erfc", "lgamma", "atan", "igamma"}


@pytest.mark.parametrize("name", sorted(QUICK))
def test_decomposed_functions_become_one_operator_again(name):
    (each,) = (each for each in DECOMPOSITIONS if each.function is getattr(lax, name))
    same_operators(each, "bfloat16" if name == "lgamma" else "float32", SHAPES["symbolic"])


@pytest.mark.slow
@pytest.mark.parametrize("dims", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_all_functions_in_all_types(dtype, dims):
    for each in DECOMPOSITIONS:
        same_operators(each, dtype, dims)


def test_a_step_of_an_expansion_with_another_reader_is_computed_too():
    def shared(x):
        return lax.erfc(x), jnp.exp(-(x * x)), lax.erfc(-x)

    model = smelt.trace(exported(shared, *structs(1, "3", "float32")))
    assert operators(model)["Erfc"] == 2
    x = np.float32([-2, 0.5, np.nan])
    for got, want in zip(smelt.compile(model)(x), shared(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_expansions_are_found_in_bodies_of_loops_and_branches():
    def looped(x):
        step = lax.fori_loop(0, 3, lambda i, c: lax.erf_inv(c * 0.5), x)
        return lax.cond(x[0] > 0, lax.digamma, lax.lgamma, step)

    given = exported(looped, *structs(1, "3", "float32"))
    x = np.float32([0.5, -0.25, 0.75])
    np.testing.assert_allclose(smelt.compile(given)(x)[0], looped(x), rtol=1e-5)


def test_arithmetic_that_differs_in_one_constant_stays_arithmetic():
    written = jax_names.module_of(exported(lax.erfc, *structs(1, "3", "float32")))
    x = jnp.float32([-0.5, 0.5, 2])
    for constant, finds in (("-0.37612626", True), ("-0.37612629", False)):
        text = str(written).replace("-0.37612626", constant)
        with written.context:
            module = ir.Module.parse(text)
        jaxpr = jax.make_jaxpr(lambda a, m=module: Evaluator(m).function("main", [a]))(x)
        assert ("erfc" in {equation.primitive.name for equation in jaxpr.eqns}) is finds


@pytest.mark.parametrize("dtype", ["complex64", "float8_e5m2", "bfloat16", "int4", "bool"])
def test_constants_of_any_type_beside_an_expansion(dtype):
    def beside(x):
        return lax.erfc(x), x * jnp.full(3, 1, dtype).astype(jnp.complex64).real

    model = smelt.trace(exported(beside, *structs(1, "3", "float32")))
    assert operators(model)["Erfc"] == 1
