"""Data-dependent sizes get a symbol each, also where shape inference left them unnamed."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.program.lower import lower

NODES = {
    "Tile": ("int64[2] r", "y = Tile(x, r)", 2),
    "Slice": ("int64[2] s, int64[2] e", "y = Slice(x, s, e)", 2),
    "Pad": ("int64[4] p", "y = Pad(x, p)", 2),
    "Reshape": ("int64[3] s", "y = Reshape(x, s)", 3),
}


@pytest.mark.parametrize(("inputs", "node", "rank"), NODES.values(), ids=NODES)
def test_unnamed_sizes_of_a_result_get_names(inputs: str, node: str, rank: int) -> None:
    dims = ",".join("ABC"[:rank])
    model = text.parse(f"g (float[2,3] x, {inputs}) => (float[{dims}] y) {{ {node} }}")
    model.graph.outputs[0].shape = ir.Shape([None] * rank)
    program = lower(model)
    names = [str(dim) for dim in program.slots[program.outputs[0]].shape]
    assert "None" not in names
    assert len(set(names)) == rank
