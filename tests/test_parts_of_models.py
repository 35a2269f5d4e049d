"""Parts of exported models compute what they did inside, and reduced ones are models."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import smelt
from smelt.errors import UsageError
from smelt.frontends.onnx import load
from smelt.runtime.inputs import random_inputs
from smelt.runtime.interface import interface_of
from smelt.runtime.runner import open_runner

MODELS = Path(__file__).parent / "models"
CHOSEN = ["dynamo_bert", "torchscript_gpt", "jax2onnx_block", "tf2onnx_cnn"]


@pytest.fixture(params=CHOSEN)
def path(request):
    return MODELS / f"{request.param}.onnx"


def cut_at(path, name, inputs):
    """The part from ``name`` on; it takes the inputs of the model too where it needs them."""
    try:
        return smelt.extract(path, inputs=[name])
    except UsageError:
        return smelt.extract(path, inputs=[name, *inputs])


def test_two_parts_compute_what_the_whole_does(path):
    model = load(path, as_is=True)
    sizes = dict.fromkeys(interface_of(model).symbols(), 2)
    names = [value.name for value in model.graph.inputs]
    given = dict(zip(names, random_inputs(model, sizes), strict=True))
    whole = smelt.run(path, given)
    nodes = list(model.graph)
    for node in nodes[:: max(1, len(nodes) // 4)]:
        name = node.outputs[0].name
        head = smelt.extract(path, outputs=[name])
        values = {**given, **smelt.run(head, _taken(head, given))}
        tail = cut_at(path, name, names)
        for output, result in smelt.run(tail, _taken(tail, values)).items():
            np.testing.assert_allclose(result, whole[output], rtol=1e-5, atol=1e-6)


def _taken(part, values):
    return {value.name: values[value.name] for value in part.graph.inputs}


def test_reduced_models_are_valid(path):
    last = list(load(path, as_is=True).graph)[-1].op_type

    def check(candidate):
        proto = smelt.to_proto(candidate)
        onnx.checker.check_model(proto, full_check=True)
        open_runner(proto, "onnxruntime")
        return any(node.op_type == last for node in candidate.graph)

    assert [node.op_type for node in smelt.reduce(path, check).model.graph] == [last]
