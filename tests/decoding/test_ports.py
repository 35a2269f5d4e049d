"""The meaning of inputs and outputs, from their names, types and shapes."""

from __future__ import annotations

import pytest

from smelt.decoding.find_ports import ports_of
from smelt.errors import UsageError
from smelt.ir import text

OPENING = '<opset_import: ["": 18]> g'


def ports(inputs, outputs, **options):
    """The ports of a model with these inputs and outputs."""
    names = [each.split()[-1] for each in outputs.split(", ")]
    nodes = "\n".join(f"{name} = Identity({inputs.split()[1].strip(',')})" for name in names)
    return ports_of(text.parse(f"{OPENING} ({inputs}) => ({outputs}) {{ {nodes} }}"), **options)


@pytest.mark.parametrize(
    ("inputs", "outputs", "expected"),
    [
        ("int64[B,S] input_ids", "float[B,S,9] logits", ("input_ids", None, None, [])),
        (
            "int64[B,S] ids, int64[B,T] attention_mask, int64[B,S] position_ids",
            "float[B,S,9] logits",
            ("ids", "attention_mask", "position_ids", []),
        ),
        (
            "int32[B,S] tok, float[B,2,P,4] past_key_values_0_key, float[B,2,P,4] past_key_values_0_value",
            "float[B,S,9] y, float[B,2,T,4] present_0_value, float[B,2,T,4] present_0_key",
            ("tok", None, None, [("past_key_values_0_key", "present_0_key", "grown", 2)]),
        ),
        (
            "int64[B,S] x, float[B,P,8] k, float[B,6] h",
            "float[B,S,9] scores, float[B,Q,8] nk, float[B,6] nh",
            ("x", None, None, [("k", "nk", "grown", 1), ("h", "nh", "replaced", 0)]),
        ),
    ],
)
def test_ports_are_found(inputs, outputs, expected):
    found = ports(inputs, outputs)
    caches = [(each.input, each.output, each.kind, each.axis) for each in found.caches]
    assert (found.tokens, found.mask, found.positions) == expected[:3]
    assert caches[: len(expected[3])] == expected[3]


def test_an_input_of_the_caller_is_no_past():
    inputs = "int64[B,S] x, float[B,E,8] hidden"
    assert ports(inputs, "float[B,S,9] y", given=["hidden"]).caches == ()
    with pytest.raises(UsageError, match="nothing gives the input hidden"):
        ports(inputs, "float[B,S,9] y")


def test_a_first_state_may_be_given_and_a_past_that_grows_may_not():
    inputs = "int64[B,S] x, float[B,6] state_1, float[B,P,8] past_k"
    outputs = "float[B,S,9] y, float[B,6] new_state_1, float[B,Q,8] present_k"
    (state, _) = ports(inputs, outputs, given=["state_1"]).caches
    assert (state.input, state.output, state.kind) == ("state_1", "new_state_1", "replaced")
    with pytest.raises(UsageError, match="the past 'past_k' cannot be given") as error:
        ports(inputs, outputs, given=["past_k"])
    assert error.value.code == "E804"


@pytest.mark.parametrize(
    ("inputs", "outputs", "why"),
    [
        ("float[B,S] x", "float[B,S,9] y", "int64"),
        ("int64[B,S] a, int64[B,S] b", "float[B,S,9] y", "may be the tokens"),
        ("int64[B,S] x", "float[B,S] y", "none of its outputs"),
        ("int64[B,S] x, float[B,P] h", "float[B,S,9] y, double[B,P] nh", "nothing gives"),
    ],
)
def test_other_models_are_refused(inputs, outputs, why):
    with pytest.raises(UsageError, match=why):
        ports(inputs, outputs)
