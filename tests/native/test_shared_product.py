"""``size=small``: convolutions and products by functions that layers share."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from c_library import Library, compile_text, random_inputs
from native.test_conv import GRAPHS as CONVOLUTIONS

from bench.cortex_m import BOARDS
from bench.microcontrollers import code_bytes
from bench.networks import NETWORKS
from smelt import Artifact
from smelt import compile as compile_model
from smelt.errors import UsageError

PRODUCTS = {
    "rows": "g (float[3,7] x, float[7,9] w) => (float[3,9] y) { y = MatMul(x, w) }",
    "few columns": "g (float[3,7] x, float[7,3] w) => (float[3,3] y) { y = MatMul(x, w) }",
    "doubles": "g (double[2,5] x, double[5,6] w) => (double[2,6] y) { y = MatMul(x, w) }",
    "batches": "g (float[2,3,4] x, float[2,4,5] w) => (float[2,3,5] y) { y = MatMul(x, w) }",
    "nothing summed": "g (float[2,0] x, float[0,5] w) => (float[2,5] y) { y = MatMul(x, w) }",
    "nothing": "g (float[0,2] x, float[2,5] w) => (float[0,5] y) { y = MatMul(x, w) }",
    "transposed": """g (float[4,3] x, float[5,4] w) => (float[3,5] y)
        { y = Gemm<transA = 1, transB = 1>(x, w) }""",
    "epilogue": """g (float[3,7] x, float[7,9] w, float[9] b) => (float[3,9] y)
        { p = MatMul(x, w) s = Add(p, b) y = Relu(s) }""",
    "integers": "g (int32[3,7] x, int32[7,9] w) => (int32[3,9] y) { y = MatMul(x, w) }",
}
GRAPHS = dict(list(CONVOLUTIONS.items())[::3]) | PRODUCTS


@pytest.fixture(scope="module", params=["", "w b"], ids=["computed", "constant"])
def library(request: pytest.FixtureRequest) -> Library:
    return Library(GRAPHS, constant=request.param, size="small")


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_onnx_runtime(library: Library, name: str) -> None:
    library.check(name, random_inputs(library.models[name].source), rtol=1e-4, atol=1e-5)


def test_nan_and_infinity_reach_the_results() -> None:
    graph = "g (float[1,2] x, float[2,5] w) => (float[1,5] y) { p = MatMul(x, w) y = Relu(p) }"
    library = Library({"product": graph}, size="small")
    weights = np.array([[np.nan, np.inf, -np.inf, 1, -1], [0] * 5], np.float32)
    y = library.run("product", [np.ones((1, 2), np.float32), weights])[0]
    assert np.array_equal(y, [[np.nan, np.inf, 0, 1, 0]], equal_nan=True)


def text_of(artifact: Artifact) -> str:
    return artifact.files["model.c"].decode()


def test_layers_share_one_function() -> None:
    graph = """g (float[1,4,8,8] x, float[4,4,3,3] w, float[6,4,1,1] v) => (float[1,6,6,6] y)
        { c = Conv(x, w) y = Conv(c, v) }"""
    text = text_of(compile_text(graph, size="small"))
    assert text.count("static void convolve_float(") == 1
    assert text.count("    convolve_float(sizes") == 2
    assert "convolve_float" not in text_of(compile_text(graph))


def test_shared_functions_run_on_one_thread() -> None:
    with pytest.raises(UsageError, match="E660"):
        compile_text(PRODUCTS["rows"], size="small", threads=2)


MOST_BYTES = {
    "tiny_mlp": 1300,
    "mnist_cnn": 1700,
    "dscnn_kws": 2400,
    "resnet8": 2350,
    "tiny_transformer": 3500,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MOST_BYTES)
def test_code_of_small_models_on_a_cortex_m4(name: str, tmp_path: Path) -> None:
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    artifact = compile_model(NETWORKS[name](), target="c", cpu="cortex-m4", size="small")
    for file, data in artifact.files.items():
        (tmp_path / file).write_bytes(data)
    assert code_bytes(BOARDS["cortex-m4"], tmp_path) <= MOST_BYTES[name]
