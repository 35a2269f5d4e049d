"""A search goes on with the errors in its file, and refuses a file of another search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import smelt
from smelt.errors import UsageError
from smelt.precision.int8.resume import open_record


def model(scale: float = 0.3) -> Any:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> f (float[2,16] x) => (float[2,32] y) '
        "{ a = MatMul(x, w) t = Tanh(a) y = MatMul(t, v) }"
    )
    rng = np.random.default_rng(0)
    for name, shape in {"w": (16, 24), "v": (24, 32)}.items():
        array = rng.normal(0, scale, shape).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return smelt.load(proto)


def data(seed: int = 1) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [{"x": rng.normal(size=(2, 16)).astype(np.float32)} for _ in range(6)]


def test_a_second_search_measures_nothing_again(tmp_path: Path) -> None:
    file = tmp_path / "search.jsonl"
    first = smelt.quantize(model(), data(), within="4%", resume=file)
    assert first.runs
    second = smelt.quantize(model(), data(), within="4%", resume=file)
    assert second.runs == 0
    assert second.chosen == first.chosen
    assert second.error == first.error
    assert smelt.to_proto(second.model) == smelt.to_proto(first.model)


def test_a_stopped_search_goes_on_at_its_last_whole_line(tmp_path: Path) -> None:
    file = tmp_path / "search.jsonl"
    whole = smelt.quantize(model(), data(), within="4%", resume=file)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:3]) + lines[3][:10])
    again = smelt.quantize(model(), data(), within="4%", resume=file)
    assert 0 < again.runs < whole.runs
    assert again.error == whole.error
    assert smelt.quantize(model(), data(), within="4%", resume=file).runs == 0


def test_another_limit_uses_the_same_errors(tmp_path: Path) -> None:
    file = tmp_path / "search.jsonl"
    first = smelt.quantize(model(), data(), within="4%", resume=file)
    other = smelt.quantize(model(), data(), within="2%", resume=file)
    assert other.runs < first.runs
    assert other.error <= 0.02


@pytest.mark.parametrize("change", ["model", "data", "settings", "metric", "cycles"])
def test_the_file_of_another_search_is_refused(tmp_path: Path, change: str) -> None:
    file = tmp_path / "search.jsonl"
    smelt.quantize(model(), data(), within="4%", resume=file)
    before = file.read_text()
    settings = {
        "settings": {"signed": True},
        "metric": {"metric": "cosine"},
        "cycles": {"gain": "cycles", "cpu": "cortex-m4"},
    }
    given = settings.get(change, {})
    with pytest.raises(UsageError) as caught:
        smelt.quantize(
            model(0.4 if change == "model" else 0.3),
            data(2 if change == "data" else 1),
            within="4%",
            resume=file,
            **given,  # type: ignore[arg-type]
        )
    assert caught.value.code == "E629"
    assert file.read_text() == before


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    for name, content in {"text": b"hello\n", "bytes": b"\xff\xfe\x00"}.items():
        file = tmp_path / name
        file.write_bytes(content)
        with pytest.raises(UsageError, match="no errors of this search"):
            open_record(file, "0")
        assert file.read_bytes() == content


def test_a_file_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot create") as caught:
        open_record(tmp_path / "none" / "search.jsonl", "0")
    assert caught.value.code == "E629"
