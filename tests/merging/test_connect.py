"""Two models one after the other: outputs of the first are inputs of the second."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from merging.decoders import WEIGHT

import smelt
from smelt.errors import SmeltError
from smelt.ir import scope, text
from smelt.merging.merge import Options, connected_models
from smelt.merging.verification import verify_chain
from smelt.runtime.runner import run

ENCODER = f"""
encoder (float[B,S,8] x, bool c) => (float[B,S,8] h, float[B,S,8] y)
<float[8,8] w = {{{WEIGHT}}}> {{
    h = MatMul(x, w)
    y = If(c) <then_branch = t () => (float[B,S,8] a) {{ a = Neg(h) }},
               else_branch = e () => (float[B,S,8] b) {{ b = MatMul(h, w) }}>
}}
"""
DECODER = f"""
decoder (float[N,E,8] hidden, float[N,S,8] x, bool c) => (float[N,S,8] y, float[N,E,8] kept)
<float[8,8] w = {{{WEIGHT}}}, int64[1] one = {{1}}> {{
    m = ReduceMean<keepdims = 1>(hidden, one)
    kept = Relu(hidden)
    y = If(c) <then_branch = t () => (float[N,S,8] a) {{ a = Add(x, m) }},
               else_branch = e () => (float[N,S,8] b) {{ h = MatMul(x, w) b = Add(h, m) }}>
}}
"""
NAMES = ("encoder.onnx", "decoder.onnx")


def models():
    return text.parse(ENCODER, 18), text.parse(DECODER, 18)


def shapes(model):
    values = (*model.graph.inputs, *model.graph.outputs)
    return {value.name: [str(dim) for dim in value.shape.dims] for value in values}


def test_the_chain_computes_both_models_and_names_what_collides():
    joined, facts = connected_models(models(), NAMES, {"h": "hidden"}, Options(verified=True))
    assert facts.reports[0].ok
    assert len({trial.inputs for trial in facts.reports[0].trials}) == 4
    assert facts.renamed == {"x": "decoder_x", "c": "decoder_c", "y": "decoder_y"}
    assert shapes(joined) == {
        "x": ["B", "S", "8"],
        "c": [],
        "decoder_x": ["B", "decoder_S", "8"],
        "decoder_c": [],
        "y": ["B", "S", "8"],
        "decoder_y": ["B", "decoder_S", "8"],
        "kept": ["B", "S", "8"],
    }
    assert scope.weight_bytes(joined) == 64 * 4 + 8, "the weights of both are equal"
    onnx.checker.check_model(smelt.to_proto(joined), full_check=True)


def test_an_input_may_be_connected_too():
    pairs = {"h": "hidden", "c": "c", "y": "x"}
    joined, facts = connected_models(models(), NAMES, pairs, Options(verified=True))
    assert facts.reports[0].ok
    assert [*shapes(joined)] == ["x", "c", "y", "kept"]
    x = np.random.default_rng(0).standard_normal((2, 3, 8)).astype(np.float32)
    h = x @ np.array(WEIGHT.split(","), np.float32).reshape(8, 8)
    expected = h.mean(1, keepdims=True) - h
    np.testing.assert_allclose(run(joined, [x, np.array(True)])[0], expected, rtol=1e-4, atol=1e-4)


def test_an_input_that_is_returned_and_opsets_of_both():
    second = text.parse("g (float[N,E,8] a) => (float[N,E,8] z) { z = Identity(a) }", 20)
    second.graph.outputs[0] = second.graph.inputs[0]
    joined = smelt.merge(text.parse(ENCODER, 18), second, connect={"h": "a"}, verify="final")
    assert joined.opset_imports[""] == 20
    assert [value.name for value in joined.graph.outputs] == ["y", "a"]


@pytest.mark.parametrize(
    ("source", "dims"),
    [
        ("(float[N,E] a, float[E,S] b) => (float[N,S] z) { z = MatMul(a, b) }", ["S", "m_S"]),
        ("(float[N,E] a, float[E,m_S] b) => (float[N,m_S] z) { z = MatMul(a, b) }", ["S", "m_S"]),
        (
            "(float[N,E] a, float[E,S] b, float[m_S] c) => (float[N,S] z) { z = MatMul(a, b) }",
            ["S", "None"],
        ),
    ],
)
def test_dims_of_the_second_model_get_names_of_their_own(source, dims):
    first = text.parse("f (float[B,S] x) => (float[B,S] h) { h = Neg(x) }", 18)
    second = text.parse(f"g {source}", 18)
    joined, facts = connected_models(
        (first, second), ("f", "m.onnx"), {"h": "a"}, Options(verified=True)
    )
    assert facts.reports[0].ok
    assert shapes(joined)["b"] == dims
    assert shapes(joined)["z"] == ["B", dims[1]]


def test_a_wrong_chain_is_found():
    joined, facts = connected_models(models(), NAMES, {"h": "hidden"})
    node = next(node for node in joined.graph if node.op_type == "ReduceMean")
    node.replace_input_with(0, joined.graph.inputs[0])
    sources = list(zip(NAMES, models(), strict=True))
    assert not verify_chain(joined, sources, {"h": "hidden"}, facts.renamed).ok


def other_size(decoder):
    decoder.graph.inputs[0].shape = ir.Shape(["N", "E", 16])


def other_rank(decoder):
    decoder.graph.inputs[0].shape = ir.Shape(["N", 8])


def nothing(decoder):
    """Leave it as it is."""


@pytest.mark.parametrize(
    ("pairs", "change", "code"),
    [
        ({"hh": "hidden"}, nothing, "E673"),
        ({"h": "hiden"}, nothing, "E673"),
        ({"h": "hidden", "y": "hidden"}, nothing, "E673"),
        ({"h": "hidden"}, other_size, "E666"),
        ({"h": "hidden"}, other_rank, "E666"),
        ({"c": "hidden"}, nothing, "E666"),
    ],
)
def test_wrong_connections_are_refused(pairs, change, code):
    first, second = models()
    change(second)
    with pytest.raises(SmeltError) as refused:
        smelt.merge(first, second, connect=pairs)
    assert refused.value.code == code
    assert refused.value.fix
