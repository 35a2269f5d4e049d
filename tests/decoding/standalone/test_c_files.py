"""A decoder in C gives the tokens of the decoder in this process, by plain gcc without warnings."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import smelt
from smelt.decoding.sampling import Sampler, Sampling
from smelt.ir import text

MODELS = Path(__file__).parents[2] / "merging" / "models"
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-DSMELT_NO_DISPATCH")
SANITIZED = ("-O2", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")

STATE = """<ir_version: 10, opset_import: ["": 18]>
g (int64[B,S] tokens, float[B,6] counts) => (float[B,S,6] logits, float[B,6] new_counts)
<int64 six = {6}, float[2] on = {0, 1}, int64 one = {1}, int64[1] axis = {1}, int64 last = {-1}>
{ e = OneHot(tokens, six, on) s = CumSum(e, one) u = Unsqueeze(counts, axis) logits = Add(s, u)
  new_counts = Gather<axis=1>(logits, last) }"""
"""The logits count the tokens so far; the counts are a state of fixed size."""

CACHE = """<ir_version: 10, opset_import: ["": 18]>
g (int64[B,S] tokens, int64[B,S] positions, float[B,1,P,4] past_k, float[B,1,P,4] past_v)
  => (float[B,S,8] logits, float[B,1,T,4] present_k, float[B,1,T,4] present_v)
<float[8,4] table, float[4,8] out, float[16,4] places, int64[1] heads = {1}, float half = {0.5}>
{ e = Gather(table, tokens) p = Gather(places, positions) x = Add(e, p) k = Unsqueeze(x, heads)
  present_k = Concat<axis=2>(past_k, k) present_v = Concat<axis=2>(past_v, k)
  t = Transpose<perm=[0,1,3,2]>(present_k) scores = MatMul(k, t) scaled = Mul(scores, half)
  w = Softmax(scaled) y = MatMul(w, present_v) z = Squeeze(y, heads) logits = MatMul(z, out) }"""
"""An attention that a rewrite does not recognize, because its cache is read by other operators."""

DRAWN = {"temperature": 1.5, "top_k": 9, "top_p": 0.9, "min_p": 0.02, "seed": 123456789012}


def program(folder, model, *flags, **options):
    """Compile a model to C and build it; return the program."""
    smelt.compile_decoder(model, **options).save(folder)
    sources = sorted(str(path) for path in folder.glob("*.c"))
    command = ["gcc", "-O0", *flags, *sources, "-o", str(folder / "decoder"), "-lm"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder / "decoder"


def run(decoder, ids, count, **sampling):
    """Return the status of the program and the tokens that it prints."""
    more = [each for k, v in sampling.items() for each in (f"--{k.replace('_', '-')}", str(v))]
    command = [decoder, ",".join(map(str, ids)), "--tokens", str(count), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=decoder.parent)
    return done.returncode, [int(token) for token in done.stdout.split()], done.stderr


@pytest.mark.slow
def test_tokens_are_those_of_this_process(tmp_path):
    model = MODELS / "gpt2_decoder_with_past.onnx"
    decoder = program(tmp_path, model, *STRICT, context=16)
    for sampling in ({}, DRAWN, DRAWN | {"repetition_penalty": 1.4}):
        expected = smelt.generate(model, [3, 1, 4], 9, **sampling).tolist()
        assert run(decoder, [3, 1, 4], 9, **sampling)[:2] == (0, expected)
    expected = smelt.generate(model, [3, 1, 4], 9).tolist()
    stop = expected[3]
    got = run(decoder, [3, 1, 4], 9, stop=stop)[1]
    assert got == expected[: expected.index(stop) + 1]
    status, tokens, told = run(decoder, [3, 1, 4], 15)
    assert (status, tokens) == (2, [])
    assert "error 806" in told
    assert "error 803" in run(decoder, [20], 2)[2]
    assert "error 802" in run(decoder, [3], 2, top_p=0)[2]


def test_a_state_of_fixed_size_begins_with_zeros(tmp_path):
    decoder = program(tmp_path, text.parse(STATE), *STRICT, context=160)
    assert run(decoder, [2, 1, 2] * 50, 4)[:2] == (0, [2] * 4)
    drawn = DRAWN | {"repetition_penalty": 1.4}
    sampler, seen = Sampler(Sampling(**drawn)), np.array([[2, 1, 2]])
    for _ in range(20):
        counts = np.bincount(seen[0], minlength=6)[None].astype(np.float32)
        seen = np.concatenate([seen, sampler.choose(counts, seen)[:, None]], axis=1)
    expected = seen[0, 3:].tolist()
    assert run(decoder, [2, 1, 2], 20, **drawn)[:2] == (0, expected)
    assert "error 806" in run(decoder, [2, 1, 2] * 50, 12)[2]
    assert "error 803" in run(decoder, [6], 2)[2]
    assert "error 802" in run(decoder, [3], 2, top_p=0)[2]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gpt2_decoder_with_past", "gpt2_decoder", "state"])
@pytest.mark.parametrize("weights", ["hex", "incbin", "bin"])
def test_no_sanitizer_objects(tmp_path, model, weights):
    source = text.parse(STATE) if model == "state" else MODELS / f"{model}.onnx"
    decoder = program(tmp_path, source, *STRICT, *SANITIZED, weights=weights, context=14)
    ids = [3, 1, 4, 1, 5, 2]
    for sampling in ({}, DRAWN):
        expected = smelt.generate(source, ids, 9, **sampling).tolist()
        assert run(decoder, ids, 9, **sampling)[:2] == (0, expected)


@pytest.mark.parametrize(
    ("model", "options", "code"),
    [
        (MODELS / "t5_decoder_with_past.onnx", {}, "E801"),
        (MODELS / "gpt2_decoder_with_past.onnx", {"target": "ort"}, "E808"),
        (MODELS / "gpt2_decoder_with_past.onnx", {"project": "cmake"}, "E660"),
        (MODELS / "gpt2_decoder_with_past.onnx", {"weights": "none"}, "E660"),
        (text.parse(STATE.replace("int64[B,S]", "int64[B,3]")), {}, "E808"),
    ],
)
def test_other_models_and_options_are_refused(model, options, code):
    with pytest.raises(smelt.SmeltError) as refused:
        smelt.compile_decoder(model, **options)
    assert refused.value.code == code


@pytest.mark.slow
def test_caches_that_the_program_copies_turn_between_two_buffers(tmp_path):
    """Here, a table of 16 positions limits the context."""
    random = np.random.default_rng(0)
    model = CACHE
    for name, size in {
        "float[8,4] table": 32,
        "float[4,8] out": 32,
        "float[16,4] places": 64,
    }.items():
        numbers = ", ".join(map(str, random.standard_normal(size).astype(np.float32)))
        model = model.replace(name, f"{name} = {{{numbers}}}")
    model = text.parse(model)
    decoder = program(tmp_path, model, *STRICT)
    expected = smelt.generate(model, [3, 1, 4], 14).tolist()
    assert run(decoder, [3, 1, 4], 14)[:2] == (0, expected)
    assert "error 806" in run(decoder, [3, 1, 4], 15)[2]
    with pytest.raises(smelt.SmeltError, match="E806"):
        smelt.compile_decoder(model, context=17)
