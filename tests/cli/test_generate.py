"""``smelt generate`` prints tokens as they are known, and refuses what is no prompt or no decoder."""

from pathlib import Path

import numpy as np
import pytest

MODELS = Path(__file__).parents[1] / "merging" / "models"
GPT2 = (MODELS / "gpt2_decoder_with_past.onnx", "--first", MODELS / "gpt2_decoder.onnx")


@pytest.mark.parametrize("ids", ["3,1,4", "3 1 4", "-", "ids.npy"])
def test_tokens_are_printed(smelt, tmp_path, monkeypatch, ids):
    monkeypatch.chdir(tmp_path)
    np.save("ids.npy", [3, 1, 4])
    stdin = b"3 1 4" if ids == "-" else b""
    result = smelt("generate", *GPT2, "--ids", ids, "--tokens", "3", stdin=stdin)
    assert result.exit_code == 0, result.stderr
    assert [len(result.stdout.splitlines()), len(result.stdout.split())] == [1, 3]
    assert "3 tokens, " in result.stderr


def test_a_document_has_the_tokens(smelt, document):
    options = ("--tokens", "2", "--temperature", "1", "--seed", "0", "--stop", "99", "--json")
    found = document(smelt("generate", *GPT2, "--ids", "3,1", *options))
    assert (found["prompt"], len(found["tokens"])) == (2, 2)


@pytest.mark.parametrize(
    ("model", "words", "code"),
    [
        ("gpt2_decoder", ("--ids", "a"), "E803"),
        ("gpt2_decoder", ("--ids", ""), "E803"),
        ("gpt2_decoder", ("--ids", "1", "--top-p", "2"), "E802"),
        ("gpt2_decoder", ("--ids", "1", "--input", "hidden=zeros"), "E804"),
        ("t5_decoder", ("--ids", "1"), "E801"),
    ],
)
def test_wrong_use(smelt, model, words, code):
    result = smelt("generate", MODELS / f"{model}.onnx", *words)
    assert (result.exit_code, code in result.stderr) == (2, True)
