"""A model of more than 2 GiB becomes float16, in about twice the memory of its weights."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

WIDTH, LAYERS = 8192, 9
LAYER_BYTES = 4 * WIDTH * WIDTH
ROWS = 64
"""The first rows of each weight are not 0; the others need no disk."""

CONVERT = """
import resource, sys
from smelt.cli.main import run
try:
    run()
except SystemExit as done:
    assert not done.code, done.code
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def write(path: Path) -> None:
    """Layers in a function, and the last one in a branch, with all weights in one external file."""
    rng, data = np.random.default_rng(0), path.with_suffix(".onnx.data")
    weights = []
    with data.open("wb") as file:
        for layer in range(LAYERS):
            file.seek(layer * LAYER_BYTES)
            file.write(rng.normal(0, 0.1, (ROWS, WIDTH)).astype(np.float32).tobytes())
            tensor = TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[WIDTH] * 2)
            tensor.data_location = TensorProto.EXTERNAL
            place = {"location": data.name, "offset": layer * LAYER_BYTES, "length": LAYER_BYTES}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))
            weights.append(tensor)
        file.truncate(LAYERS * LAYER_BYTES)

    def port(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", WIDTH])

    opset = [helper.make_opsetid("", 17)]
    layer_nodes = [
        helper.make_node("MatMul", ["a", "w"], ["m"]),
        helper.make_node("Tanh", ["m"], ["r"]),
    ]
    function = helper.make_function("local", "Layer", ["a", "w"], ["r"], layer_nodes, opset)
    names = ["x", *(f"h{layer}" for layer in range(LAYERS - 1))]
    nodes = [
        helper.make_node("Layer", [names[i], f"w{i}"], [names[i + 1]], domain="local")
        for i in range(LAYERS - 1)
    ]
    product = helper.make_node("MatMul", [names[-1], f"w{LAYERS - 1}"], ["p"])
    branches = {
        "then_branch": helper.make_graph([product], "then", [], [port("p")]),
        "else_branch": helper.make_graph(
            [helper.make_node("Neg", [names[-1]], ["q"])], "else", [], [port("q")]
        ),
    }
    nodes.append(helper.make_node("If", ["c"], ["y"], **branches))
    inputs = [port("x"), helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "large", inputs, [port("y")], weights)
    imports = [*opset, helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, functions=[function], opset_imports=imports, ir_version=8)
    path.write_bytes(model.SerializeToString())


@pytest.mark.slow
def test_a_model_over_2_gib_with_a_function_and_a_branch(tmp_path: Path) -> None:
    source, half = tmp_path / "large.onnx", tmp_path / "half.onnx"
    write(source)
    command = [sys.executable, "-c", CONVERT, "optimize", source, "--fp16", "-o", half]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    assert "float16: " in done.stderr + done.stdout
    peak = int(done.stdout.split("peak ")[1])
    assert peak < 3 * LAYERS * LAYER_BYTES
    stored = sum(path.stat().st_size for path in tmp_path.glob("half*"))
    assert stored < 0.51 * LAYERS * LAYER_BYTES
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, WIDTH)).astype(np.float32)
    for branch in (True, False):
        results = []
        for path in (source, half):
            session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
            (result,) = session.run(None, {"x": x, "c": np.asarray(branch)})
            results.append(result)
            del session
        assert np.linalg.norm(results[1] - results[0]) < 4e-3 * np.linalg.norm(results[0])
