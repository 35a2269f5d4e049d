"""A decoder generates what its network computes anew from all tokens in ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import smelt
from smelt.decoding.sampling import Sampler, Sampling
from smelt.ir import text

MODELS = Path(__file__).parents[1] / "merging" / "models"
HIDDEN = np.random.default_rng(0).standard_normal((1, 9, 16)).astype(np.float32)
DRAWN = {"temperature": 3.0, "seed": 7}


def reference(network, prompt, count, **options):
    """The tokens that the network without a past gives, run on all tokens in each step."""
    session = onnxruntime.InferenceSession(str(MODELS / f"{network}_decoder.onnx"))
    names = [port.name for port in session.get_inputs()]
    sampler, seen = Sampler(Sampling(**options)), np.array([prompt])
    for _ in range(count):
        known = {"input_ids": seen, "attention_mask": np.ones_like(seen)}
        known["encoder_hidden_states"] = HIDDEN
        (logits, *_) = session.run(None, {name: known[name] for name in names})
        chosen = sampler.choose(logits[:, -1], seen)
        seen = np.concatenate([seen, chosen[:, None]], axis=1)
    return seen[0, len(prompt) :].tolist()


@pytest.mark.parametrize(
    "options", [pytest.param({}, marks=pytest.mark.slow), DRAWN], ids=["greedy", "drawn"]
)
@pytest.mark.parametrize(
    ("network", "model", "first"),
    [
        ("gpt2", "gpt2_decoder_with_past", None),
        pytest.param("gpt2", "gpt2_decoder_with_past", "gpt2_decoder", marks=pytest.mark.slow),
        pytest.param("gpt2", "gpt2_decoder", None, marks=pytest.mark.slow),
        ("t5", "t5_decoder_with_past", "t5_decoder"),
        pytest.param(
            "whisper", "whisper_decoder_with_past", "whisper_decoder", marks=pytest.mark.slow
        ),
    ],
)
def test_generated_tokens_are_those_of_the_network(network, model, first, options):
    files = [None if each is None else MODELS / f"{each}.onnx" for each in (model, first)]
    inputs = {} if network == "gpt2" else {"encoder_hidden_states": HIDDEN}
    decoder = smelt.Decoder(*files, inputs=inputs)
    got = decoder.generate([3, 1, 4, 1, 5], 9, **options)
    assert got.tolist() == reference(network, [3, 1, 4, 1, 5], 9, **options)


def test_a_merged_decoder_has_both_parts():
    merged = smelt.merge(MODELS / "gpt2_decoder.onnx", MODELS / "gpt2_decoder_with_past.onnx")
    got = smelt.generate(merged, [3, 1, 4], 6)
    assert got.tolist() == reference("gpt2", [3, 1, 4], 6)


@pytest.fixture(scope="module")
def gpt2():
    """A decoder with a past."""
    return smelt.Decoder(MODELS / "gpt2_decoder_with_past.onnx", MODELS / "gpt2_decoder.onnx")


def test_prompts_of_any_lengths_give_what_each_gives_alone(gpt2):
    prompts = [[3, 1, 4], [1, 5], [9, 2, 6]]
    steps = []
    got = gpt2.generate(prompts, 6, on_token=steps.append)
    assert [row.tolist() for row in got] == [reference("gpt2", each, 6) for each in prompts]
    equally_long = gpt2.generate([prompts[0], prompts[2]], 6)
    assert [row.tolist() for row in equally_long] == [got[0].tolist(), got[2].tolist()]
    assert len(steps) == 18


def test_a_sequence_ends_after_a_stop_token(gpt2):
    all_tokens = reference("gpt2", [3, 1, 4], 9, **DRAWN)
    stop = all_tokens[4]
    got = gpt2.generate([3, 1, 4], 9, stop=[stop], **DRAWN)
    assert got.tolist() == all_tokens[: all_tokens.index(stop) + 1]


def test_a_stream_yields_the_tokens_one_by_one(gpt2):
    tokens = gpt2.stream([3, 1, 4], 5, **DRAWN)
    assert next(tokens) == reference("gpt2", [3, 1, 4], 5, **DRAWN)[0]
    assert len(list(tokens)) == 4


@pytest.mark.parametrize("ids", [[], [[]], [[1], []], [1.5], [-1], [[1, 2], [3, -4]]])
def test_no_prompt(gpt2, ids):
    with pytest.raises(smelt.SmeltError, match="E803"):
        gpt2.generate(ids)


def test_an_input_that_the_decoder_lacks():
    with pytest.raises(smelt.SmeltError, match="E804"):
        smelt.Decoder(MODELS / "gpt2_decoder.onnx", inputs={"attention_maks": HIDDEN})


COUNTS = """<ir_version: 10, opset_import: ["": 18]>
g (int64[B,S] tokens, float[B,6] counts) => (float[B,S,6] logits, float[B,6] new_counts)
<int64 six = {6}, float[2] on = {0, 1}, int64 one = {1}, int64[1] axis = {1}, int64 last = {-1}>
{ e = OneHot(tokens, six, on) s = CumSum(e, one) u = Unsqueeze(counts, axis) logits = Add(s, u)
  new_counts = Gather<axis=1>(logits, last) }"""


@pytest.mark.parametrize(
    ("first_state", "expected"), [(None, 2), ([0, 0, 0, 0, 1, 0], 2), ([0, 0, 0, 0, 9, 0], 4)]
)
def test_a_state_that_is_given_is_the_first_one(first_state, expected):
    """The logits count the tokens so far, so the most frequent one is generated."""
    inputs = {} if first_state is None else {"counts": np.float32([first_state])}
    decoder = smelt.Decoder(text.parse(COUNTS), inputs=inputs)
    for _ in range(2):  # a second call begins with the first state again
        assert decoder.generate([2, 1, 2], 3).tolist() == [expected] * 3


def test_a_state_has_the_batch_of_the_tokens_whatever_its_dim_is_called():
    model = text.parse(COUNTS.replace("float[B,6]", "float[N,6]"))
    got = smelt.generate(model, [[2, 1, 2], [1, 1, 3]], 3)
    assert [row.tolist() for row in got] == [[2] * 3, [1] * 3]


def test_padding_does_not_enter_a_state():
    """The model has a mask and positions, but counts the tokens of padding, too."""
    inputs = "int64[B,S] tokens, int64[B,T] attention_mask, int64[B,S] position_ids"
    model = COUNTS.replace("int64[B,S] tokens", inputs)
    got = smelt.generate(text.parse(model), [[2, 1, 2, 1, 1], [3]], 2)
    assert [row.tolist() for row in got] == [[1] * 2, [3] * 2]
