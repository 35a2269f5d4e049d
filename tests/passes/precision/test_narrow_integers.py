"""Integers of 64 bits become integers of 32 bits where bounds prove that they fit."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from rewrites import check_unchanged

import smelt
from smelt.ir import text
from smelt.passes.precision.narrow_integers import narrow_integers

PIPELINE = (
    "fixpoint(narrow-integers,cast-optimization,const-elimination,noop-elimination,"
    "dead-code-elimination){max=9}"
)
TABLE = "<float[3,2] t = {1, 2, 3, 4, 5, 6}>"
NARROWED = {
    "an index of a table": f"g (int64[4] i) => (float[4,2] y) {TABLE} {{ y = Gather(t, i) }}",
    "sums of bounded numbers": "g (float[4] x) => (int64[1] y) <int64 two = {2}> "
    "{ p = ArgMax(x) q = Add(p, two) y = Mul(q, two) }",
    "choices and comparisons": "g (int32[3] a, bool[3] c) => (bool[3] y) <int64 z = {0}> "
    "{ w = Cast<to=7>(a) v = Where(c, w, z) y = Equal(v, z) }",
    "booleans that are added up": "g (bool[2,3] c) => (int64[2,3] y) <int64 axis = {1}> "
    "{ w = Cast<to=7>(c) y = CumSum(w, axis) }",
}


def inner_types(model: ir.Model) -> set[ir.DataType | None]:
    """The types of what nodes other than Casts read, without sizes and axes of constants."""
    return {
        value.dtype
        for node in model.graph
        if node.op_type != "Cast"
        for value in node.inputs
        if value is not None and value.const_value is None
    }


@pytest.mark.parametrize("name", NARROWED)
def test_numbers_that_fit_are_computed_in_int32(name) -> None:
    source = text.parse(NARROWED[name], 18)
    model = smelt.optimize(source, pipeline=PIPELINE, verify="final")
    assert ir.DataType.INT64 not in inner_types(model)
    assert [v.dtype for v in model.graph.inputs] == [v.dtype for v in source.graph.inputs]
    assert [v.dtype for v in model.graph.outputs] == [v.dtype for v in source.graph.outputs]


def test_inputs_become_int32_on_request() -> None:
    model = text.parse(NARROWED["an index of a table"], 18)
    narrow = smelt.optimize(
        model, pipeline=PIPELINE.replace("integers", "integers{inputs=true}"), verify="final"
    )
    assert narrow.graph.inputs[0].dtype == ir.DataType.INT32
    assert [node.op_type for node in narrow.graph] == ["Gather"]
    [result] = smelt.compile(narrow, target="onnx")(np.array([0, -1, 2, 1], np.int32))
    assert result.tolist() == [[1, 2], [5, 6], [5, 6], [3, 4]]


@pytest.mark.parametrize(("default", "kind"), [(-7, "INT32"), (2**31, "INT64")])
def test_the_default_of_an_input_becomes_int32_with_it_if_it_fits(default, kind) -> None:
    model = text.parse(f"g (int64 i = {{{default}}}) => (int64 y) {{ y = Neg(i) }}", 18)
    narrow = smelt.optimize(model, pipeline="narrow-integers{inputs=true}", verify="final")
    [value] = narrow.graph.inputs
    assert value.dtype == ir.DataType[kind] == value.const_value.dtype
    assert value.const_value.numpy() == default


KEPT = {
    "an input of any number": "g (int64[4] x) => (int64[4] y) { y = Neg(x) }",
    "a product beyond 32 bits": "g (int32[4] x) => (int64[4] y) <int64 big = {4294967296}> "
    "{ w = Cast<to=7>(x) y = Mul(w, big) }",
    "sizes of a shape": "g (float[N,4] x) => (float[M,2] y) <int64[1] two = {2}> "
    "{ n = Shape<start=0, end=1>(x) d = Mul(n, two) s = Concat<axis=0>(d, two) y = Reshape(x, s) }",
    "an operator that takes int64 only": f"g (int64[4,1] i) => (float[4,2] y) {TABLE} "
    "{ y = GatherND(t, i) }",
    "an index of a branch": f"g (int64[4] i, bool c) => (float[4,2] y) {TABLE} "
    "{ y = If<then_branch = a () => (float[4,2] p) { p = Gather(t, i) }, "
    "else_branch = b () => (float[4,2] q) <float[4,2] z = {1, 2, 3, 4, 5, 6, 7, 8}> "
    "{ q = Identity(z) }>(c) }",
}


@pytest.mark.parametrize("name", KEPT)
def test_other_numbers_stay(name) -> None:
    check_unchanged(narrow_integers, KEPT[name], opset=18)
