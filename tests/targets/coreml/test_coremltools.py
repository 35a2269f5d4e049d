"""coremltools accepts every package, and infers the types that we wrote."""

from __future__ import annotations

from typing import Any

import pytest
from targets.coreml.coremltools_check import needs_coremltools, problems
from targets.coreml.packages import written
from targets.coreml.test_compact_weights import MODELS as WEIGHTED
from targets.coreml.test_compact_weights import compiled, weights, with_weight
from targets.coreml.test_decoder_states import model as decoder
from targets.coreml.test_decoder_states import states_of
from targets.coreml.test_differences import ROWS
from targets.coreml.test_models import FOLDER, MODELS, names_of
from targets.coreml.test_quantized import FLOOR, NEAREST
from targets.coreml.test_quantized import ROWS as QUANTIZED
from targets.coreml.test_target import CACHE, DENSE, IMAGE

import smelt
from smelt.targets.coreml import coreml

pytestmark = needs_coremltools


def rarely(*values: object) -> list[Any]:
    """Return the values as parameters of tests; CI runs the last one only."""
    return [*(pytest.param(each, marks=pytest.mark.slow) for each in values[:-1]), values[-1]]


@pytest.mark.parametrize("ios", rarely(16, 18, 17))
@pytest.mark.parametrize("precision", rarely("fp32", "fp16"))
@pytest.mark.parametrize("row", ROWS)
def test_rows(row, precision, ios, tmp_path):
    path = tmp_path / "m.mlpackage"
    written(ROWS[row][0], opset=23, precision=precision, ios=ios).save(path)
    assert problems(path) == []


@pytest.mark.parametrize("precision", rarely("fp32", "fp16"))
@pytest.mark.parametrize("row", QUANTIZED)
def test_quantized_activations(row, precision, tmp_path):
    path = tmp_path / "m.mlpackage"
    written(QUANTIZED[row][0], precision=precision).save(path)
    assert problems(path) == []


def test_images_whose_rows_repeat(tmp_path):
    path = tmp_path / "m.mlpackage"
    written(NEAREST.format(a="3,2", b="6,6", k=4, m=FLOOR)).save(path)
    assert problems(path) == []


SMALL = "torchscript_cnn"
"""The exported model that CI asks coremltools about."""


@pytest.mark.parametrize("name", rarely(*sorted(MODELS, key=lambda each: each == SMALL)))
def test_models(name, tmp_path):
    source = FOLDER / f"{name}.onnx"
    dims = dict.fromkeys(names_of(smelt.load(source)), (1, 6))
    path = tmp_path / "m.mlpackage"
    smelt.compile(source, target=coreml, dims=dims).save(path)
    assert problems(path) == []


FORMS = {
    "functions": (DENSE, {"dims": {"B": (1, 8)}, "sizes": "B=1,8", "functions": "fixed"}),
    "states": (CACHE, {"states": "past=present"}),
    "images": (IMAGE, {"images": "x:RGB:0.5:1/2/3"}),
    "listed sizes": (DENSE, {"dims": {"B": (1, 8)}, "sizes": "B=1,8"}),
}


@pytest.mark.parametrize("precision", rarely("fp32", "fp16"))
@pytest.mark.parametrize("form", FORMS)
def test_forms_of_ios_18(form, precision, tmp_path):
    model, options = FORMS[form]
    path = tmp_path / "m.mlpackage"
    written(model, ios=18, precision=precision, **options).save(path)
    assert problems(path) == []


@pytest.mark.parametrize("precision", rarely("fp32", "fp16"))
@pytest.mark.parametrize("slide", rarely(False, True))
def test_decoders_with_states(slide, precision, tmp_path):
    model, path = decoder(slide), tmp_path / "m.mlpackage"
    options = {"states": states_of(model), "ios": 18, "precision": precision}
    smelt.compile(model, target=coreml, **options).save(path)
    assert problems(path) == []


@pytest.mark.parametrize("ios", rarely(16, 17, 18))
@pytest.mark.parametrize("name", WEIGHTED)
def test_compact_weights(name, ios, tmp_path):
    for number, kind in enumerate(("2", "9", "16", "sparse")):
        path = tmp_path / f"m{number}.mlpackage"
        compiled(with_weight(name, weights(kind, WEIGHTED[name][1])), ios, "fp16").save(path)
        assert problems(path) == []
