"""The weights of a file replace those of a decoder by name; quantized blocks keep their bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from frontends.weights.gguf_files import floats, written

import smelt
from smelt.compiler import compile_model
from smelt.decoding.gguf_names import halves_first
from smelt.decoding.weights import feed, read_weights
from smelt.frontends.weights.gguf import open_gguf
from smelt.ir import text

WORDS, WIDTH = 8, 32
SHAPES = {
    "model.embed_tokens.weight": (WORDS, WIDTH),
    "model.layers.0.self_attn.q_proj.weight": (WIDTH, WIDTH),
    "lm_head.weight": (WORDS, WIDTH),
}
RANDOM = np.random.default_rng(0)
LLAMA = {"general.architecture": "llama", "llama.attention.head_count": 2}


def model(prefix="", dtype="float", query="[1, 0]"):
    """Tokens to logits by an embedding and two products, with weights of zeros.

    ``query`` permutes the axes of the first product's weight.
    """
    zeros = [", ".join(["0"] * (rows * columns)) for rows, columns in SHAPES.values()]
    declared = ", ".join(
        f"{dtype}[{rows},{columns}] w{index} = {{{zeros[index]}}}"
        for index, (rows, columns) in enumerate(SHAPES.values())
    )
    made = text.parse(
        '<ir_version: 10, opset_import: ["": 18]> g (int64[B,S] ids) => '
        f"({dtype}[B,S,8] logits) <{declared}> {{"
        f" rows = Gather(w0, ids) qt = Transpose<perm = {query}>(w1)"
        " hidden = MatMul(rows, qt) ht = Transpose<perm = [1, 0]>(w2)"
        " logits = MatMul(hidden, ht) }"
    )
    for index, name in enumerate(SHAPES):
        value = made.graph.initializers.pop(f"w{index}")
        value.name = prefix + name
        made.graph.initializers.add(value)
    return made


def halves(count):
    """``count`` numbers of float16 around 1, as bytes."""
    return RANDOM.uniform(0.5, 1.5, (count, 1)).astype("<f2").view(np.uint8)


def blocks(kind, shape, head, body):
    """Random blocks of 32 elements: ``head`` numbers of float16, then ``body`` bytes."""
    count = shape[0] * shape[1] // 32
    bits = RANDOM.integers(0, 256, (count, body), np.uint8)
    parts = [halves(count) for _ in range(head)]
    return kind, shape, np.concatenate([*parts, bits], axis=1).tobytes()


TENSORS = {
    "token_embd.weight": blocks(8, (WORDS, WIDTH), 1, 32),
    "blk.0.attn_q.weight": blocks(2, (WIDTH, WIDTH), 1, 16),
    "output.weight": blocks(3, (WORDS, WIDTH), 2, 16),
    "rope_freqs.weight": floats(np.ones(4)),
}
IDS = np.array([[3, 1, 4, 1]])


def logits(model):
    """The logits of ``IDS``."""
    return np.asarray(compile_model(model, target="host", engine="numpy")(IDS)[0])


@pytest.mark.parametrize("prefix", ["", "decoder."])
def test_a_gguf_file_gives_the_weights(tmp_path: Path, prefix):
    path = written(tmp_path / "m.gguf", LLAMA, TENSORS)
    numbers = {name: each.numpy() for name, each in open_gguf(path).tensors.items()}
    fed = model(prefix)
    assert feed(fed, read_weights(path)) == [
        "1 tensors of Q8_0 as int8 in blocks of 32",
        "1 tensors of Q4_0 as int4 in blocks of 32",
        "1 tensors of Q4_1 as float32, because its blocks have offsets",
    ]
    stored = [each.const_value for each in fed.graph.initializers.values()]
    assert sorted(str(each.dtype) for each in stored if each.size >= 256) == [
        "FLOAT",
        "INT4",
        "UINT8",
    ]
    query = halves_first(numbers["blk.0.attn_q.weight"], 2)
    expected = numbers["token_embd.weight"][IDS] @ query.T @ numbers["output.weight"].T
    np.testing.assert_allclose(logits(fed), expected, rtol=1e-4, atol=1e-3)


def test_a_square_weight_keeps_the_axes_of_a_transpose_that_swaps_none(tmp_path: Path):
    path = written(tmp_path / "m.gguf", LLAMA, TENSORS)
    numbers = {name: each.numpy() for name, each in read_weights(path).items()}
    embedding, query, head = (numbers[name] for name in SHAPES)
    fed = model(query="[0, 1]")
    feed(fed, read_weights(path))
    np.testing.assert_allclose(logits(fed), embedding[IDS] @ query @ head.T, rtol=1e-4, atol=1e-3)


def test_blocks_become_float16_for_a_model_in_float16(tmp_path: Path):
    path = written(tmp_path / "m.gguf", LLAMA, TENSORS)
    fed = model(dtype="float16")
    assert "1 tensors of Q4_0 as float16, because the model has this type" in feed(
        fed, read_weights(path)
    )
    for name, tensor in read_weights(path).items():
        stored = fed.graph.initializers[name].const_value
        assert np.array_equal(stored.numpy(), tensor.numpy().astype(np.float16))
    assert logits(fed).dtype == np.float16


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"lm_head.weight": np.ones((8, 32), np.int32)}, "is f32 in the model and i32 in the file"),
        (
            {"embed_tokens.weight": np.ones((8, 32))},
            "a second tensor embed_tokens.weight for model",
        ),
    ],
)
def test_tensors_of_another_type_and_second_tensors_are_refused(tmp_path: Path, change, why):
    arrays = {name: np.ones(shape, np.float32) for name, shape in SHAPES.items()}
    np.savez(tmp_path / "m.npz", **(arrays | change))
    with pytest.raises(smelt.SmeltError, match=why) as caught:
        feed(model(), read_weights(tmp_path / "m.npz"))
    assert caught.value.code == "E805"


def test_rows_of_llama_become_halves():
    pairs = np.array([0, 4, 1, 5, 2, 6, 3, 7])
    both = np.concatenate([pairs, pairs + 8])
    assert halves_first(both, 2).tolist() == list(range(16))


def test_a_tied_table_stands_once_in_the_file(tmp_path: Path):
    table = RANDOM.standard_normal((WORDS, WIDTH)).astype(np.float32)
    tensors = {"token_embd.weight": floats(table), "blk.0.attn_q.weight": floats(np.eye(WIDTH))}
    path = written(tmp_path / "m.gguf", {"general.architecture": "qwen2"}, tensors)
    fed = model()
    assert feed(fed, read_weights(path)) == []
    np.testing.assert_allclose(logits(fed), table[IDS] @ table.T, rtol=1e-5, atol=1e-5)


def test_norms_of_gemma_lose_their_one(tmp_path: Path):
    tensors = {"output_norm.weight": floats(np.array([1.0, 3.0]))}
    path = written(tmp_path / "m.gguf", {"general.architecture": "gemma2"}, tensors)
    assert read_weights(path)["model.norm.weight"].numpy().tolist() == [0, 2]


def test_other_checkpoints_have_the_names_of_the_model(tmp_path: Path):
    arrays = {name: RANDOM.standard_normal(shape) for name, shape in SHAPES.items()}
    np.savez(tmp_path / "m.npz", **arrays)
    decoder = smelt.Decoder(model(), weights=tmp_path / "m.npz")
    assert decoder.notes == ()
    first, second, third = (each.astype(np.float32) for each in arrays.values())
    fed = model()
    feed(fed, read_weights(tmp_path / "m.npz"))
    np.testing.assert_allclose(logits(fed), first[IDS] @ second.T @ third.T, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("metadata", "changes", "why"),
    [
        ({"general.architecture": "bert"}, {}, "its architecture is bert; known are llama"),
        (
            LLAMA,
            {"blk.0.attn_rot.weight": floats(np.ones(4))},
            "nothing is known of blk.0.attn_rot",
        ),
        (LLAMA, {"blk.7.attn_norm.weight": floats(np.ones(4))}, "the model has no model.layers.7"),
        (LLAMA, {"blk.0.attn_q.weight": None}, "the file lacks model.layers.0.self_attn.q_proj"),
        (
            LLAMA,
            {"output.weight": floats(np.ones((8, 31)))},
            r"\[8, 32\] in the model and \[8, 31\]",
        ),
        (LLAMA | {"llama.attention.head_count": 5}, {}, "32 rows for 5 heads"),
        (LLAMA, {"blk.0.attn_q.weight": floats(np.float32(1))}, "1 rows for 2 heads"),
    ],
)
def test_weights_that_do_not_fit_change_nothing(tmp_path: Path, metadata, changes, why):
    tensors = {name: each for name, each in (TENSORS | changes).items() if each is not None}
    path = written(tmp_path / "m.gguf", metadata, tensors)
    untouched = model()
    with pytest.raises(smelt.SmeltError, match=why) as caught:
        feed(untouched, read_weights(path))
    assert caught.value.code == "E805"
    assert not logits(untouched).any()
