"""The caller may rename inputs and outputs."""

from __future__ import annotations

import pytest

from smelt.errors import UsageError
from smelt.frontends.jax import trace


def names_of(model):
    graph = model.graph
    return [value.name for value in graph.inputs], [value.name for value in graph.outputs]


def fn(batch, scale):
    return {"logits": batch["image"] * scale, "probs": batch["mask"]}


SPECS = ({"image": "f32[B,4]", "mask": "f32[B]"}, "f32[]")


def test_a_list_names_all_in_order():
    model = trace(fn, *SPECS, input_names=["image", "mask", "s"], output_names=("a", "b"))
    assert names_of(model) == (["image", "mask", "s"], ["a", "b"])


def test_a_dict_renames_some():
    model = trace(fn, *SPECS, input_names={"batch_image": "x"}, output_names={"out_probs": "p:0"})
    assert names_of(model) == (["x", "batch_mask", "scale"], ["out_logits", "p:0"])


def test_names_may_be_swapped():
    model = trace(lambda a, b: a - b, "f32[]", "f32[]", input_names={"a": "b", "b": "a"})
    assert names_of(model)[0] == ["b", "a"]
    assert [value.name for value in model.graph[0].inputs] == ["b", "a"]


def test_a_parameter_gets_another_name_than_an_output():
    import numpy as np

    weight = np.ones((4, 4), np.float32)
    model = trace(lambda x: x @ weight, "f32[4]", output_names=["weight"])
    assert names_of(model)[1] == ["weight"]
    assert list(model.graph.initializers) == ["weight_2"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"input_names": ["a", "b"]}, "there are 2 names for 3 inputs"),
        ({"output_names": []}, "there are 0 names for 2 outputs"),
        ({"input_names": ["a", "b", "a"]}, "two inputs have the name 'a'"),
        ({"input_names": {"scale": "batch_mask"}}, "two inputs have the name 'batch_mask'"),
        ({"input_names": {"image": "x"}}, "there is no input 'image'"),
        ({"output_names": ["a", " "]}, "' ' is not a name"),
        ({"output_names": ["a", 3]}, "3 is not a name"),
        ({"output_names": ["scale", "b"]}, "'scale' is also the name of an input"),
        ({"output_names": ["a", "val_7"]}, "reserved for inner values"),
        ({"output_names": "ab"}, "is text, not a list of names"),
    ],
)
def test_wrong_names_are_refused(given, says):
    with pytest.raises(UsageError) as caught:
        trace(fn, *SPECS, **given)
    assert caught.value.code == "E108"
    assert says in caught.value.why


def test_the_error_lists_the_existing_names():
    with pytest.raises(UsageError) as caught:
        trace(fn, *SPECS, input_names={"image": "x"})
    assert caught.value.fix == "the inputs are batch_image, batch_mask, scale"
