"""A compiled decoder is kept in the cache and in folders, and never gives tokens of another one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import smelt
from smelt.decoding import compiled, kept, saved
from smelt.decoding.forms import Forms
from smelt.ir import text

MODELS = Path(__file__).parents[1] / "merging" / "models"
HIDDEN = np.random.default_rng(0).standard_normal((1, 9, 16)).astype(np.float32)

COUNTS = """<ir_version: 10, opset_import: ["": 18]>
g (int64[B,S] tokens, float[B,6] counts) => (float[B,S,6] logits, float[B,6] new_counts)
<int64 six = {6}, float[2] on = {0, 1}, int64 one = {1}, int64[1] axis = {1}, int64 last = {-1},
float[6] weights = {1, 1, 1, 1, 1, 1}>
{ e = OneHot(tokens, six, on) w = Mul(e, weights) s = CumSum(w, one) u = Unsqueeze(counts, axis)
  logits = Add(s, u) new_counts = Gather<axis=1>(logits, last) }"""
"""The logits count the tokens so far, so the most frequent one is generated."""


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """Decoders are kept in a folder of the test; libraries are shared by all tests."""
    monkeypatch.setattr(kept, "folder_of", lambda key: tmp_path / "decoders" / key)
    monkeypatch.setattr("smelt.decoding.forms.folder_of", kept.folder_of)


@pytest.fixture
def compiles(monkeypatch):
    """The number of times that models are read and compiled."""
    counted = []
    original = compiled.Models.__init__

    def counting(self, sources):
        counted.append(sources)
        original(self, sources)

    monkeypatch.setattr(compiled.Models, "__init__", counting)
    return counted


@pytest.fixture
def counts(tmp_path):
    """The file of a small decoder."""
    path = tmp_path / "counts.onnx"
    smelt.save(text.parse(COUNTS), path)
    return path


@pytest.mark.parametrize(
    ("model", "first", "inputs"),
    [
        ("gpt2_decoder_with_past", None, {}),
        pytest.param("gpt2_decoder_with_past", "gpt2_decoder", {}, marks=pytest.mark.slow),
        ("gpt2_decoder", None, {}),
        ("t5_decoder_with_past", "t5_decoder", {"encoder_hidden_states": HIDDEN}),
    ],
)
def test_tokens_are_equal_from_the_cache_and_from_a_folder(
    model, first, inputs, compiles, tmp_path
):
    files = [None if each is None else MODELS / f"{each}.onnx" for each in (model, first)]
    compiled_here = smelt.Decoder(*files, inputs=inputs)
    expected = compiled_here.generate([3, 1, 4, 1, 5], 6).tolist()
    from_cache = smelt.Decoder(*files, inputs=inputs)
    assert from_cache.generate([3, 1, 4, 1, 5], 6).tolist() == expected
    assert len(compiles) == 1
    folder = next(tmp_path.glob("decoders/*"))
    from_folder = smelt.Decoder(folder, inputs=inputs)
    assert from_folder.generate([3, 1, 4, 1, 5], 6).tolist() == expected
    prompts = [[3, 1, 4], [1, 5]]
    together, alone = (each.generate(prompts, 3) for each in (from_cache, from_folder))
    assert [row.tolist() for row in alone] == [row.tolist() for row in together]


def test_the_first_token_does_not_wait_for_the_program_of_a_step(counts, tmp_path, monkeypatch):
    compiled_for = []
    original = compiled.ArtifactCall.takes
    monkeypatch.setattr(
        compiled.ArtifactCall,
        "takes",
        lambda call, shapes: compiled_for.append(call) or original(call, shapes),
    )
    tokens = smelt.Decoder(counts).stream([3, 1, 4], 1)
    next(tokens)
    assert len(set(compiled_for)) == 1
    assert list(tokens) == []  # the stream ends when the step is compiled, and kept
    assert len(set(compiled_for)) == 2
    assert len(list(tmp_path.glob("decoders/*"))) == 1


def test_a_changed_model_is_compiled_again(counts, compiles):
    assert smelt.generate(counts, [2, 1, 2], 2).tolist() == [2, 2]
    model = text.parse(COUNTS.replace("{1, 1, 1, 1, 1, 1}", "{1, 9, 1, 1, 1, 1}"))
    smelt.save(model, counts)
    assert smelt.generate(counts, [2, 1, 2], 2).tolist() == [1, 1]
    assert len(compiles) == 2


def test_changed_external_weights_are_compiled_again(tmp_path, compiles):
    path = tmp_path / "model.onnx"
    model = smelt.to_proto(text.parse(COUNTS))
    for each in model.graph.initializer:
        array = onnx.numpy_helper.to_array(each)
        each.CopyFrom(onnx.numpy_helper.from_array(array, each.name))
    onnx.save(model, path, save_as_external_data=True, location="data", size_threshold=0)
    data = tmp_path / "data"
    for _ in range(2):
        assert smelt.generate(path, [2, 1, 2], 2).tolist() == [2, 2]
    assert len(compiles) == 1
    weights = np.ones(6, np.float32)
    content = data.read_bytes()
    at = content.index(weights.tobytes())
    weights[1] = 9
    data.write_bytes(content[:at] + weights.tobytes() + content[at + weights.nbytes :])
    assert smelt.generate(path, [2, 1, 2], 2).tolist() == [1, 1]
    assert len(compiles) == 2


def test_a_model_that_changes_while_it_is_compiled_is_not_kept(counts, compiles, monkeypatch):
    original = Forms.keep

    def after_a_change(self, context):
        counts.touch()
        original(self, context)

    monkeypatch.setattr(Forms, "keep", after_a_change)
    smelt.generate(counts, [2, 1, 2], 2)
    smelt.generate(counts, [2, 1, 2], 2)
    assert len(compiles) == 2


@pytest.mark.parametrize("name", ["decoder.json", "weights.bin", "step.so"])
@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_a_damaged_file_is_noticed(counts, compiles, tmp_path, name, damage):
    smelt.generate(counts, [2, 1, 2], 2)
    folder = next(tmp_path.glob("decoders/*"))
    file = folder / name
    content = file.read_bytes()
    file.unlink()
    if damage != "missing":
        middle = len(content) // 2
        changed = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        file.write_bytes(content[:-2] if damage == "cut" else changed)
    with pytest.raises(smelt.SmeltError) as caught:
        smelt.Decoder(folder)
    assert caught.value.code == (
        "E609" if (name, damage) == ("decoder.json", "missing") else "E807"
    )
    assert smelt.generate(counts, [2, 1, 2], 2).tolist() == [2, 2]
    assert len(compiles) >= 2


@pytest.mark.parametrize(
    ("where", "value"), [("cpu", lambda: "another CPU"), ("VERSION", "another version")]
)
def test_code_for_another_machine_is_not_run(counts, tmp_path, monkeypatch, where, value):
    folder = tmp_path / "folder"
    smelt.Decoder(counts).save(folder)
    smelt.generate(counts, [2, 1, 2], 2)
    monkeypatch.setattr(saved, where, value)
    with pytest.raises(smelt.SmeltError, match="compiled for another") as caught:
        smelt.Decoder(folder)
    assert caught.value.code == "E807"
    assert smelt.generate(counts, [2, 1, 2], 2).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"threads": 3}, "E807"),
        ({"inputs": {"counts": np.zeros((1, 6), np.float32)}}, "E807"),
        ({"first": MODELS / "gpt2_decoder.onnx"}, "E807"),
        ({"weights": MODELS / "gpt2_decoder.onnx"}, "E807"),
    ],
)
def test_a_folder_has_its_arguments(counts, tmp_path, arguments, code):
    folder = tmp_path / "folder"
    smelt.Decoder(counts).save(folder)
    with pytest.raises(smelt.SmeltError) as caught:
        smelt.Decoder(folder, **arguments)
    assert caught.value.code == code


def test_a_folder_has_room_for_its_context(tmp_path):
    files = MODELS / "gpt2_decoder_with_past.onnx", MODELS / "gpt2_decoder.onnx"
    folder = tmp_path / "folder"
    smelt.Decoder(*files).save(folder)
    with pytest.raises(smelt.SmeltError, match="the compiled decoder is for 2048 tokens") as caught:
        smelt.Decoder(folder).generate([3, 1, 4], 2100)
    assert caught.value.code == "E806"


def test_other_files_stay(counts, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("mine")
    with pytest.raises(smelt.SmeltError, match="holds other files") as caught:
        smelt.Decoder(counts).save(tmp_path / "folder")
    assert caught.value.code == "E807"
    assert (tmp_path / "folder" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("place", ["file", "file/folder"])
def test_a_folder_that_cannot_be_written_is_told(counts, tmp_path, place):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(smelt.SmeltError, match=f"{place}' cannot be written") as caught:
        smelt.Decoder(counts).save(tmp_path / place)
    assert caught.value.code == "E807"
    assert (tmp_path / "file").read_text() == "mine"


def test_a_saved_decoder_is_written_over_and_not_saved_again(counts, tmp_path):
    folder = tmp_path / "folder"
    for _ in range(2):
        smelt.Decoder(counts).save(folder)
    with pytest.raises(smelt.SmeltError, match="copy that folder"):
        smelt.Decoder(folder).save(tmp_path / "other")


def test_old_decoders_are_dropped(counts, tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "LIMIT", 1)
    for threads in (1, 2):
        smelt.Decoder(counts, threads=threads).generate([2, 1], 1)
    assert len(list(tmp_path.glob("decoders/*"))) == 1


def test_processes_share_a_folder_without_the_compiler(counts, tmp_path):
    smelt.Decoder(counts).save(tmp_path / "folder")
    code = (
        "import sys, smelt; print(smelt.generate(sys.argv[1], [2, 1, 2], 2).tolist(),"
        " [each for each in ('onnx_ir', 'sympy', 'onnx', 'jax') if each in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "folder")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [each.communicate()[0].strip() for each in processes] == ["[2, 2] []"] * 2
