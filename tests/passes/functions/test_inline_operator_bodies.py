"""Operators without a kernel in the target are replaced by their function bodies."""

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.compiler import optimize_model
from smelt.errors import ErrorList
from smelt.ir import text
from smelt.runtime.inputs import random_inputs
from smelt.runtime.reference import Reference

LOSS = 'NegativeLogLikelihoodLoss<reduction="mean", ignore_index=1>(x, t, w)'
LABELS = "float[4,3,2] x, int64[4,2] t, float[3] w"

MODELS = {
    "body of an earlier opset": (f"g ({LABELS}) => (float y) {{ y = {LOSS} }}", 21),
    "body for the operands": (f"g ({LABELS}) => (float y) {{ y = {LOSS} }}", 22),
    "a form that kernels lack": (
        "g (float[1,2,5,8] q) => (float[1,2,5,8] y) { y = Attention<left_window_size=2>(q, q, q) }",
        25,
    ),
    "absent operands between": (
        "g (float[1,4,3,8] q, float[1,2,5,8] k, float[1,2,1,8] p) => (float[1,4,3,8] y) "
        '{ y, pk, pv = Attention(q, k, k, "", p, p) }',
        23,
    ),
    "absent results between": (
        "g (float[1,4,3,8] q) => (float[1,4,3,8] y, float[1,4,3,3] m) "
        '{ y, "", "", m = Attention<qk_matmul_output_mode=3, softcap=2.0>(q, q, q) }',
        23,
    ),
    "twice, one read by the other": (
        "g (float[1,2,3,4] x, float[1,3,2] a, float[1,3,2] b) => (float[1,2,3,4] y, float[1,2,3,4] z) "
        "{ y = RotaryEmbedding(x, a, b)  z = RotaryEmbedding(y, b, a) }",
        23,
    ),
    "names that the body has, too": (
        "g (float[2,2,3] x) => (float[2,2,2,2] y, float[2,2,3] zero) "
        "{ size = Constant<value_ints=[2,1,2,2]>()  zero = Neg(x)  y = AffineGrid(x, size) }",
        20,
    ),
    "no elements": ("g (float[3,0,4] x) => (float[3,0,4] y) { y = Celu<alpha=2.0>(x) }", 20),
}


def model_of(name: str) -> ir.Model:
    source, opset = MODELS[name]
    return text.parse(source, opset)


def inputs_of(model: ir.Model) -> list[np.ndarray]:
    given = [np.asarray(value) for value in random_inputs(model, {}, seed=3)]
    return [np.clip(a, 0, 2) if a.dtype == np.int64 else a for a in given]


@pytest.mark.parametrize("name", MODELS)
def test_it_computes_what_the_operator_does(name: str) -> None:
    model = model_of(name)
    given = inputs_of(model)
    wanted = Reference(model)(*given)
    for got, want in zip(smelt.compile(model, target="host")(*given), wanted, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_c_code_takes_it(name: str) -> None:
    assert "model.c" in smelt.compile(model_of(name), target="c").files


def inlined(
    source: str, opset: int, computed: set[str], kernels: frozenset[str] | None = None
) -> list[str]:
    model = text.parse(source, opset)
    optimize_model(
        model,
        pipeline="inline-operator-bodies",
        kernels=kernels,
        computes=lambda _, node: node.op_type in computed,
    )
    return [node.op_type for node in model.graph]


def test_operators_of_the_target_stay() -> None:
    source = "g (float[2,3] x) => (float[2,3] y) { y = Softmax(x) }"
    assert inlined(source, 18, {"Softmax"}) == ["Softmax"]
    assert "Exp" in inlined(source, 18, set())


@pytest.mark.parametrize(("kernels", "kind"), [("Loop", "Loop"), ("Add Mul", "Range")])
def test_a_body_with_a_loop_needs_a_target_that_computes_loops(kernels, kind) -> None:
    source = "g (float a, float b, float c) => (float[N] y) { y = Range(a, b, c) }"
    assert kind in inlined(source, 18, set(), frozenset(kernels.split()))


def test_an_operator_with_an_attribute_of_a_later_runtime_stays() -> None:
    source = (
        '<ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1]>\n'
        "g (float[2,3] x) => (float[2,3] y) { y = com.microsoft.FastGelu<later=1>(x) }"
    )
    assert inlined(source, 20, set()) == ["FastGelu"]
    assert inlined(source.replace("<later=1>", ""), 20, set()) == ["Gelu"]


def test_without_a_target_that_says_so_all_stays() -> None:
    model = text.parse("g (float[2,3] x) => (float[2,3] y) { y = Softmax(x) }", 18)
    optimize_model(model, pipeline="inline-operator-bodies")
    assert [node.op_type for node in model.graph] == ["Softmax"]


def test_a_body_of_a_later_opset_raises_the_model() -> None:
    model = text.parse("g (float[2,3] x) => (float[2,3] y) { y = Selu(x) }", 13)
    optimize_model(model, pipeline="inline-operator-bodies", computes=lambda *_: False)
    assert model.opset_imports[""] == 18
    assert "Selu" not in {node.op_type for node in model.graph}


def test_a_later_opset_is_not_taken_where_the_opset_is_kept() -> None:
    model = text.parse("g (float[2,3] x) => (float[2,3] y) { y = Selu(x) }", 13)
    optimize_model(
        model, pipeline="inline-operator-bodies", computes=lambda *_: False, highest_opset=0
    )
    assert [node.op_type for node in model.graph] == ["Selu"]


def test_operators_without_kernel_and_body_are_refused() -> None:
    model = text.parse("g (float[3] x) => (float[3] y) { y = RandomUniformLike(x) }", 20)
    with pytest.raises(ErrorList, match="RandomUniformLike"):
        smelt.compile(model, target="host")
