"""Products whose free dims a Transpose swaps are computed with swapped operands."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from rewrites import check_rewrite, check_unchanged

import smelt
from smelt.passes.canonicalize.swap_dot_general import swap_dot_general

HEAD = '<ir_version: 10, opset_import: ["" : 23, "smelt" : 1]> '


def product(attributes: str, operands: str) -> str:
    return f"smelt.DotGeneral<{attributes}>({operands})"


CASES = {
    "matrices": (
        "float[4,8] a, float[B,8] b",
        "float[B,4]",
        ("lhs_contracting=[1], rhs_contracting=[1]", "[1,0]"),
        ("rhs_contracting=[1], lhs_contracting=[1]", None),
    ),
    "a sequence": (
        "float[4,8] a, float[B,S,8] b",
        "float[B,S,4]",
        ("lhs_contracting=[1], rhs_contracting=[2]", "[1,2,0]"),
        ("rhs_contracting=[1], lhs_contracting=[2]", None),
    ),
    "heads, which are moved still": (
        "float[B,K,H,D] a, float[B,H,Q,K] b",
        "float[B,Q,H,D]",
        (
            "lhs_contracting=[1], rhs_contracting=[3], lhs_batch=[0,2], rhs_batch=[0,1]",
            "[0,3,1,2]",
        ),
        (
            "rhs_contracting=[1], lhs_contracting=[3], rhs_batch=[0,2], lhs_batch=[0,1]",
            "[0,2,1,3]",
        ),
    ),
}


@pytest.mark.parametrize(("inputs", "result", "before", "after"), CASES.values(), ids=CASES.keys())
def test_the_operands_change_places(inputs, result, before, after) -> None:
    g = f"{HEAD} g ({inputs}) => ({result} y)"
    old = f"t = {product(before[0], 'a, b')} y = Transpose<perm={before[1]}>(t)"
    name = "y" if after[1] is None else "t"
    new = f"{name} = {product(after[0], 'b, a')}"
    new += "" if after[1] is None else f" y = Transpose<perm={after[1]}>(t)"
    check_rewrite(swap_dot_general, f"{g} {{ {old} }}", f"{g} {{ {new} }}")


CONTRACT = "lhs_contracting=[1], rhs_contracting=[2]"
KEPT = {
    "another order": f"t = {product(CONTRACT, 'a, b')} y = Transpose<perm=[1,0,2]>(t)",
    "the order it has": f"t = {product(CONTRACT, 'a, b')} y = Transpose<perm=[0,2,1]>(t)",
    "another reader": f"t = {product(CONTRACT, 'a, b')} u = Transpose<perm=[1,2,0]>(t) v = Shape(t) w = ConstantOfShape(v) x = Transpose<perm=[1,2,0]>(w) y = Add(u, x)",
    "nothing free on the left": f"c = Constant<value_floats=[1.0,2.0,3.0]>() t = {product('lhs_contracting=[0], rhs_contracting=[2]', 'c, b')} y = Transpose<perm=[1,0]>(t)",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_other_dot_generals_stay(body: str) -> None:
    check_unchanged(
        swap_dot_general, f"{HEAD} g (float[4,3] a, float[B,S,3] b) => (float y) {{ {body} }}"
    )


def test_a_product_that_is_returned_stays() -> None:
    body = f"t = {product(CONTRACT, 'a, b')} y = Transpose<perm=[1,2,0]>(t)"
    outputs = "float[B,S,4] y, float[4,B,S] t"
    check_unchanged(
        swap_dot_general, f"{HEAD} g (float[4,3] a, float[B,S,3] b) => ({outputs}) {{ {body} }}"
    )


def test_a_linear_layer_over_batch_and_sequence_is_one_product() -> None:
    weight = jnp.ones((4, 8))
    model = smelt.optimize(smelt.trace(jax.vmap(jax.vmap(lambda x: weight @ x)), "f32[B,S,8]"))
    assert [node.op_type for node in model.graph] == ["MatMul"]


def test_narrow_integers_keep_their_dtype() -> None:
    def fn(a, b):
        return lax.dot_general(a, b, (([1], [1]), ([], [])), preferred_element_type=jnp.int32).T

    model = smelt.optimize(smelt.trace(fn, "i8[4,8]", "i8[B,8]"))
    assert str(model.graph.outputs[0].dtype) == "INT32"
