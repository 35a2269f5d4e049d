"""Extension operators written as ONNX functions: loadable anywhere, and taken back on loading."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from smelt import operators
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.runtime.reference import Reference

THREE_KINDS = """g (float[B,3,4] x, float[B,5,4] y, float[4,6] w) => (float[B,3,5] a, float[B,3,6] b, float[B,3,5] c, float[B,3,5] d) {
    a = smelt.DotGeneral<lhs_contracting=[2], rhs_contracting=[2], lhs_batch=[0], rhs_batch=[0]>(x, y)
    b = smelt.DotGeneral<lhs_contracting=[2], rhs_contracting=[0]>(x, w)
    c = smelt.DotGeneral<lhs_contracting=[2], rhs_contracting=[2], lhs_batch=[0], rhs_batch=[0], semiring="max_plus">(x, y)
    d = smelt.DotGeneral<lhs_contracting=[2], rhs_contracting=[2], lhs_batch=[0], rhs_batch=[0], semiring="sum_product">(x, y)
}"""


def inferred(source: str) -> ir.Model:
    model = text.parse(source)
    ShapeInference(model).infer_model()
    return model


def test_one_function_for_each_kind_of_use() -> None:
    model = inferred(THREE_KINDS)
    assert operators.attach_functions(model) == ()
    names = [name for _, name, _ in model.functions]
    assert names == ["DotGeneral", "DotGeneral_2", "DotGeneral_3"]
    assert [node.op_type for node in model.graph] == [*names, "DotGeneral"]


@pytest.mark.parametrize("runner", [OnnxRuntime, Reference])
def test_every_runtime_computes_the_same(runner: type) -> None:
    model = inferred(THREE_KINDS)
    rng = np.random.default_rng(0)
    x, y, w = (rng.standard_normal(s).astype(np.float32) for s in ((2, 3, 4), (2, 5, 4), (4, 6)))
    operators.attach_functions(model)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    a, b, c, d = runner(model)(x, y, w)
    np.testing.assert_allclose(a, np.einsum("bmk,bnk->bmn", x, y), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(b, x @ w, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(c, (x[:, :, None] + y[:, None]).max(-1))
    np.testing.assert_array_equal(a, d)


def test_attaching_twice_changes_nothing() -> None:
    model = inferred(THREE_KINDS)
    operators.attach_functions(model)
    once = ir.to_proto(model).SerializeToString(deterministic=True)
    operators.attach_functions(model)
    assert ir.to_proto(model).SerializeToString(deterministic=True) == once


def test_restoring_gives_the_operators_back() -> None:
    model = inferred(THREE_KINDS)
    before = text.canonical(model)
    operators.attach_functions(model)
    loaded = ir.from_proto(ir.to_proto(model))
    assert operators.restore_operators(loaded) == 3
    assert not loaded.functions
    assert text.canonical(loaded) == before


def test_a_function_of_that_name_that_is_not_ours_stays() -> None:
    source = """
    <ir_version: 10, opset_import: ["" : 23, "smelt" : 1]>
    g (float[2,2] x) => (float[2,2] y) { y = smelt.DotGeneral(x, x) }
    <domain: "smelt", opset_import: ["" : 23]>
    DotGeneral (a, b) => (c) { c = Add(a, b) }
    """
    model = text.parse(source)
    assert operators.restore_operators(model) == 0
    assert operators.attach_functions(model) == ()
    (result,) = OnnxRuntime(model)(np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(result, 2)


def test_operators_without_a_body_are_reported() -> None:
    model = inferred("g (float[3,3] a) => (lu) { lu = smelt.ValidateNonsingular(a) }")
    (node,) = operators.attach_functions(model)
    assert node.op_type == "ValidateNonsingular"
    assert not model.functions
