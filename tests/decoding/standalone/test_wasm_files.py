"""A decoder in WebAssembly gives the tokens of the decoder in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from webassembly import needs_wasm, node

import smelt
from smelt.ir import text

GPT2 = Path(__file__).parents[2] / "merging" / "models" / "gpt2_decoder_with_past.onnx"

STATE = """<ir_version: 10, opset_import: ["": 18]>
g (int64[B,S] tokens, float[B,6] counts) => (float[B,S,6] logits, float[B,6] new_counts)
<int64 six = {6}, float[2] on = {0, 1}, int64 one = {1}, int64[1] axis = {1}, int64 last = {-1}>
{ e = OneHot(tokens, six, on) s = CumSum(e, one) u = Unsqueeze(counts, axis) logits = Add(s, u)
  new_counts = Gather<axis=1>(logits, last) }"""
"""The logits count the tokens so far, so the most frequent one is generated."""

SCRIPT = """
import { load } from "./model.mjs";
const decoder = await load();
async function all(ids, options) {
  const tokens = [];
  try {
    for await (const token of decoder.generate(ids, options)) tokens.push(token);
  } catch (error) {
    return [error.name, error.status];
  }
  return tokens;
}
"""

DRAWN = {"temperature": 1.5, "top_k": 9, "top_p": 0.9, "min_p": 0.02, "seed": 123456789012}


@needs_wasm()
def test_tokens_and_errors(tmp_path):
    model = text.parse(STATE)
    artifact = smelt.compile_decoder(model, target="wasm", plain=False, context=8)
    artifact.save(tmp_path)
    assert {"model.wasm", "model.mjs", "model.d.ts", "package.json"} == set(artifact.files)
    script = """tell([
  await all([2, 1, 2], { maxTokens: 3 }), await all([2, 1, 2], { maxTokens: 6, stop: [2] }),
  await all([4, 4, 2], { maxTokens: 3, repetitionPenalty: 4 }),
  await all([2, 1, 2], { maxTokens: 7 }), await all([6], { maxTokens: 1 }),
  await all([], { maxTokens: 1 }), await all([1], { maxTokens: 1, topP: 0 }),
]);"""
    errors = [["ModelError", code] for code in (806, 803, 803, 802)]
    assert node(tmp_path, SCRIPT + script) == [[2] * 3, [2], [4] * 3, *errors]


@needs_wasm()
@pytest.mark.slow
@pytest.mark.parametrize("weights", ["inside", "beside"])
def test_tokens_are_those_of_this_process(tmp_path, weights):
    smelt.compile_decoder(GPT2, target="wasm", weights=weights, context=16).save(tmp_path)
    script = """tell([await all([3, 1, 4], { maxTokens: 9 }), await all([3, 1, 4], {
  maxTokens: 9, temperature: 1.5, topK: 9, topP: 0.9, minP: 0.02, seed: 123456789012 })]);"""
    expected = [smelt.generate(GPT2, [3, 1, 4], 9, **how).tolist() for how in ({}, DRAWN)]
    assert node(tmp_path, SCRIPT + script) == expected
