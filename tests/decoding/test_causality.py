"""A model without a past is a decoder if the logits of a token do not depend on later tokens."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import text

TABLE = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)


def model(mixing, inputs="int64[B,S] input_ids", rows=9, batch="B"):
    """Tokens to logits, with ``mixing`` between the rows of an embedding and a product."""
    table, out = (", ".join(map(str, each.ravel())) for each in (TABLE[:rows], TABLE.T))
    return text.parse(
        f'<ir_version: 10, opset_import: ["": 18]> g ({inputs}) => (float[{batch},S,9] logits)'
        f" <float[{rows},4] table = {{{table}}}, float[4,9] out = {{{out}}},"
        f" int64 one = {{1}}, int64[1] axis = {{1}}> {{"
        f" rows = Gather(table, input_ids) {mixing} logits = MatMul(mixed, out) }}"
    )


SUMS = "mixed = CumSum(rows, one)"
MEANS = "mean = ReduceMean(rows, axis) mixed = Add(rows, mean)"
REVERSED = "mixed = CumSum<reverse=1>(rows, one)"
INFINITE = """sums = CumSum<reverse=1>(rows, one) ones = Div(rows, rows) numbers = CumSum(ones, one)
before = Sub(numbers, ones) infinite = Div(ones, before) mixed = Add(sums, infinite)"""
TYPES = "int64[B,S] input_ids, int64[B,S] token_type_ids, float[B,S] attention_mask"


@pytest.mark.parametrize("inputs", ["int64[B,S] input_ids", TYPES])
def test_a_decoder_reads_earlier_tokens_only(inputs):
    smelt.Decoder(model(SUMS, inputs))


@pytest.mark.parametrize("batch", ["B", "2"])
def test_the_batch_is_that_of_the_model_or_of_a_given_array(batch):
    inputs = f"int64[{batch},S] input_ids, float[{batch},1,4] hidden"
    mixing = "sums = CumSum(rows, one) mixed = Add(sums, hidden)"
    hidden = np.zeros((2, 1, 4), np.float32)
    decoder = smelt.Decoder(model(mixing, inputs, batch=batch), inputs={"hidden": hidden})
    if batch == "B":
        assert [len(row) for row in decoder.generate([[3, 1], [4, 1]], 2)] == [2, 2]


@pytest.mark.parametrize("mixing", [MEANS, REVERSED, INFINITE])
def test_an_encoder_is_refused(mixing):
    with pytest.raises(
        smelt.SmeltError, match="depend on later tokens, as in an encoder"
    ) as caught:
        smelt.Decoder(model(mixing))
    assert caught.value.code == "E801"


def test_a_model_of_a_fixed_number_of_tokens_is_refused():
    with pytest.raises(smelt.SmeltError, match="it takes 5 tokens") as caught:
        smelt.Decoder(model(SUMS, "int64[B,5] input_ids"))
    assert caught.value.code == "E801"


def test_tokens_beyond_the_vocabulary_are_refused():
    decoder = smelt.Decoder(model(SUMS, rows=7))
    with pytest.raises(smelt.SmeltError, match="the decoder knows the tokens 0 to 6") as caught:
        decoder.generate([1, 7, 2], 1)
    assert caught.value.code == "E803"
