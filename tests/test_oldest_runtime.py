"""The oldest ONNX Runtime that smelt allows gives the same results as the pinned one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTED = (
    "tests/targets/onnx",
    "tests/targets/ort",
    "tests/test_exported_models.py",
    "tests/test_runtime_gaps.py",
    "tests/passes/test_known_miscompiles.py",
    "tests/consumers",
)


def oldest_series() -> str:
    """The lowest release of the bounds in pyproject.toml, such as 1.24."""
    bound = re.search(r'"onnxruntime>=([\d.]+)', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert bound is not None
    return bound[1]


@pytest.mark.slow
def test_models_load_and_agree_in_the_oldest_release(tmp_path: Path) -> None:
    series = oldest_series()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path]
    subprocess.run([*pip, f"onnxruntime=={series}.*"], check=True)
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *TESTED],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    version = f"import onnxruntime; assert onnxruntime.__version__.startswith('{series}.')"
    subprocess.run(
        [sys.executable, "-c", version], env={**os.environ, "PYTHONPATH": path}, check=True
    )
