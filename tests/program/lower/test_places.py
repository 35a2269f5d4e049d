"""Ends of Slices and repeats of Tiles that are expressions of input sizes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from lowered import lowered

import smelt
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.program.instruction import DYNAMIC_SLICE
from smelt.runtime.onnxruntime import OnnxRuntime

SIZES = "d = Shape(x) n = Slice(d, zero, one) c = Slice(d, one, two)"
CONSTANTS = "<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}>"

GRAPHS = {
    "a Slice to a size": f"{SIZES} y = Slice(w, zero, n, zero, one)",
    "a Tile": f"{SIZES} r = Concat<axis=0>(n, c) y = Tile(w, r)",
}


def _model(nodes: str) -> ir.Model:
    return text.parse(
        f"g (float[N,C] x, float[6,2] w) => (float[K,L] y) {CONSTANTS} {{ {nodes} }}", opset=18
    )


@pytest.mark.parametrize("nodes", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_host_computes_them_for_each_size(nodes: str, engine: str) -> None:
    artifact = smelt.compile(_model(nodes), target="host", engine=engine)
    reference = OnnxRuntime(_model(nodes))
    w = np.arange(12, dtype=np.float32).reshape(6, 2)
    for shape in ((1, 1), (3, 2), (2, 4)):
        x = np.ones(shape, np.float32)
        np.testing.assert_array_equal(artifact(x, w)[0], reference(x, w)[0])


def test_ends_are_expressions_in_a_program() -> None:
    nodes = f"{SIZES} y = Slice(w, zero, n, zero, one)"
    program = lowered(f"g (float[N,C] x, float[6,2] w) => (y) {CONSTANTS} {{ {nodes} }}")
    (found,) = (each for each in program.instructions if each.outputs == program.outputs)
    assert [str(end) for end in found.attributes["ends"]] == ["N"]  # type: ignore[union-attr]
    with pytest.raises(SmeltError, match="depends on the size N") as caught:
        found.ints("ends")
    assert caught.value.code == "E411"


def test_slices_with_a_run_time_end_are_cut_at_run_time() -> None:
    graph = "g (float[N] x, int64[1] e) => (y) <int64[1] zero = {0}> { y = Slice(x, zero, e) }"
    (instruction,) = lowered(graph).instructions
    assert instruction.op == DYNAMIC_SLICE
