"""Outputs are cast to requested element types."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

import smelt
from smelt.errors import UsageError
from smelt.ir import text
from smelt.passes.interface.update_output_dtypes import update_output_dtypes
from smelt.runtime.runner import open_runner

G = "g (float[B,2] x) => (float[B,2] y, float[B,2] z) { y = Neg(x) z = Exp(y) }"

CAST = {
    "by name": (
        ("z:float16",),
        "g (float[B,2] x) => (float[B,2] y, float16[B,2] z) { y = Neg(x) e = Exp(y) z = Cast<to=10>(e) }",
    ),
    "one that is read inside": (
        ("y:double",),
        "g (float[B,2] x) => (double[B,2] y, float[B,2] z) { n = Neg(x) z = Exp(n) y = Cast<to=11>(n) }",
    ),
    "one for each": (
        ("float64", "int32"),
        "g (float[B,2] x) => (double[B,2] y, int32[B,2] z) "
        "{ n = Neg(x) e = Exp(n) y = Cast<to=11>(n) z = Cast<to=6>(e) }",
    ),
    "one of them as it is": (
        ("float", "BFLOAT16"),
        "g (float[B,2] x) => (float[B,2] y, bfloat16[B,2] z) { y = Neg(x) e = Exp(y) z = Cast<to=16>(e) }",
    ),
}


@pytest.mark.parametrize(("dtypes", "after"), CAST.values(), ids=CAST.keys())
def test_casts(dtypes: tuple[str, ...], after: str) -> None:
    check_rewrite(update_output_dtypes, G, after, dtypes=dtypes)


KEPT = {
    "nothing is asked": (G, ()),
    "the type that it has": (G, ("z:float32",)),
    "an input that is returned": ("g (float[2] x) => (float[2] x) { }", ("x:float16",)),
}


@pytest.mark.parametrize(("graph", "dtypes"), KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str, dtypes: tuple[str, ...]) -> None:
    check_unchanged(update_output_dtypes, graph, dtypes=dtypes)


def test_a_constant_that_is_returned() -> None:
    check_rewrite(
        update_output_dtypes,
        "g () => (float[2] w) { w = Constant<value = float[2] {1,2}>() }",
        "g () => (float16[2] w) { c = Constant<value = float[2] {1,2}>() w = Cast<to=10>(c) }",
        dtypes=("w:float16",),
    )


REFUSED = {
    "no such output": (G, ("w:float16",)),
    "no such type": (G, ("z:half",)),
    "no name": (G, (":float16",)),
    "too few types": (G, ("float16",)),
    "two types for one": (G, ("y:float16", "y:double")),
    "names and a list": (G, ("y:float16", "double")),
    "text": ("g (string[2] x) => (string[2] y) { y = Identity(x) }", ("y:float",)),
}


@pytest.mark.parametrize(("graph", "dtypes"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses(graph: str, dtypes: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        run_pass(update_output_dtypes, text.parse(graph), dtypes=dtypes)
    assert caught.value.code == "E603"


def test_in_a_pipeline_with_names_that_hold_a_colon() -> None:
    model = text.parse(G)
    model.graph.outputs[1].name = "serving:0"
    done = smelt.optimize(model, pipeline="default,update-output-dtypes{dtypes=serving:0:float16}")
    x = np.asarray([[1, -2]], np.float32)
    y, z = open_runner(done)(x)
    np.testing.assert_array_equal(y, -x)
    np.testing.assert_array_equal(z, np.exp(-x).astype(np.float16))
    assert [value.name for value in done.graph.outputs] == ["y", "serving:0"]
