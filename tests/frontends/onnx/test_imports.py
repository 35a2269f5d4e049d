"""Domains whose operators a model uses without importing the domain."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import smelt
from smelt.errors import InvalidModel
from smelt.runtime.runner import open_runner

KNOWN = {
    "com.microsoft": ("y = com.microsoft.Gelu(x)", 1),
    "ai.onnx.ml": ('y = ai.onnx.ml.Normalizer<norm="L2">(x)', onnx.defs.onnx_ml_opset_version()),
}


def model(line: str, imports: str = '"": 15') -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: [{imports}]> g (float[N,4] x) => (float[N,4] y)
        {{ {line} }}"""
    )


@pytest.mark.parametrize("domain", KNOWN)
def test_domains_that_onnx_runtime_imports_by_itself_are_imported(domain: str) -> None:
    line, version = KNOWN[domain]
    source = model(line)
    small = smelt.optimize(source)
    assert {(each.domain, each.version) for each in small.opset_import} >= {(domain, version)}
    x = np.random.default_rng(0).random((3, 4), np.float32)
    for run in (open_runner(small, "onnxruntime"), smelt.compile(source, target="host")):
        np.testing.assert_allclose(run(x)[0], open_runner(source, "onnxruntime")(x)[0], rtol=1e-5)


def test_an_import_that_is_there_keeps_its_version() -> None:
    line, _ = KNOWN["ai.onnx.ml"]
    small = smelt.optimize(model(line, '"": 15, "ai.onnx.ml": 2'))
    assert {each.domain: each.version for each in small.opset_import}["ai.onnx.ml"] == 2


@pytest.mark.parametrize(
    ("line", "imports"), [("y = mine.Gelu(x)", '"": 15'), ("y = Relu(x)", '"com.microsoft": 1')]
)
def test_other_domains_have_to_be_imported(line: str, imports: str) -> None:
    with pytest.raises(InvalidModel, match="E306"):
        smelt.optimize(model(line, imports))
