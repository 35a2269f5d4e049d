"""Packages that coremltools 9.0 wrote: read, they compute what PyTorch or coremltools computes.

``packages.zip`` holds for each package its files, the inputs and the expected outputs: those of the
PyTorch module that was converted, or of coremltools' value inference.
"""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import smelt
from smelt.runtime.runner import run

ZIP = Path(__file__).with_name("packages.zip")
NAMES = sorted({name.partition("/")[0] for name in ZipFile(ZIP).namelist()})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked packages."""
    path = tmp_path_factory.mktemp("packages")
    with ZipFile(ZIP) as file:
        file.extractall(path)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_a_package_computes_what_its_source_computes(name: str, folder: Path) -> None:
    """As it is read, and after our passes."""
    data = np.load(folder / name / "data.npz")
    model = smelt.load(folder / name / "opt.mlpackage")
    half = any("fp16" in name or value.dtype.name == "FLOAT16" for value in model.graph.inputs)
    expected = [data[key] for key in sorted((k for k in data if k[:4] == "out_"), key=_number)]
    assert expected
    for each in (model, smelt.optimize(model)):
        feeds = [data[f"in_{value.name}"] for value in each.graph.inputs]
        feeds = [a.astype(v.dtype.numpy()) for a, v in zip(feeds, each.graph.inputs, strict=True)]
        results = [np.asarray(y) for y in run(each, feeds)]
        if results[0].dtype.kind in "OU":  # the label of a classifier stands before its numbers
            assert str(results[0]) == "abcde"[int(expected[0].argmax())]
            del results[0]
        limit = 4e-3 if half or "ios18" in name else 1e-5
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, wanted, limit, limit)


def _number(key: str) -> int:
    """Return the number of an output."""
    return int(key.partition("_")[2])
