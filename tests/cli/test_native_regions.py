"""``smelt compile --native-regions``: a library beside the model, or a refusal."""

from __future__ import annotations

import pytest


def test_the_report_has_the_regions(smelt, write, tmp_path) -> None:
    done = smelt(
        *("compile", write(), "--target", "ort", "--native-regions", "-o", tmp_path / "out"),
        *("--verify", "final"),
    )
    assert done.exit_code == 0, done.output
    assert "native regions: " in done.stdout


@pytest.mark.parametrize(
    "options",
    [
        ("--target", "onnx"),
        ("--target", "ort", "--fallback", "onnx"),
        ("--target", "ort", "--tune", "1"),
    ],
)
def test_options_that_exclude_native_regions(smelt, write, tmp_path, options) -> None:
    done = smelt("compile", write(), *options, "--native-regions", "-o", tmp_path)
    assert done.exit_code == 2
    assert "E637" in done.stderr
    assert "--native-regions" in done.stderr
