"""An output projection that is its embedding transposed is read from the embedding."""

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.ir import text
from smelt.merging.merge import Options, merged_decoders
from smelt.merging.ties import tie_embeddings

ROWS = np.arange(300 * 64, dtype=np.float32).reshape(300, 64) - 5000
NAN = ROWS.copy()
NAN[7, 9] = np.nan
SIGNED = np.where(ROWS == 0, np.float32(-0.0), ROWS)
CHANGED = ROWS.copy()
CHANGED[299, 63] += 1

SOURCE = """g (int64[B,S] ids, float[B,S,64] x{past}) => (float[B,S,64] e, float[B,S,300] y) {{
    e = Gather<axis = {axis}>(w, ids)
    y = {operator}
}}"""


def model(columns, rows=ROWS, axis=0, operator="MatMul(x, h)", past=""):
    made = text.parse(
        SOURCE.format(axis=axis, operator=operator, past=past)
        .replace("past) =>", "past, float[A,B] w, float[A,B] h) =>")
        .replace("64] x) =>", "64] x, float[A,B] w, float[A,B] h) =>"),
        18,
    )
    for name, array in (("w", rows), ("h", columns)):
        value = next(each for each in made.graph.inputs if each.name == name)
        made.graph.inputs.remove(value)
        value.const_value = ir.tensor(array, name=name)
        value.type, value.shape = ir.TensorType(value.const_value.dtype), ir.Shape(array.shape)
        made.graph.register_initializer(value)
    return made


@pytest.mark.parametrize("rows", [ROWS, NAN], ids=["numbers", "a NaN"])
def test_a_projection_is_a_transpose_of_its_embedding(rows):
    made = model(rows.T, rows)
    assert tie_embeddings(made) == ["h"]
    assert [node.op_type for node in made.graph] == ["Transpose", "Gather", "MatMul"]
    assert [*made.graph.initializers] == ["w"]
    assert smelt.verify(model(rows.T, rows), made).ok


def test_both_branches_of_merged_decoders_read_one_transpose():
    sources = model(ROWS.T), model(ROWS.T, past=", float[P] past")
    merged, facts = merged_decoders(sources, ("a", "b"), Options(True, None, True))
    assert facts.weights == (4 * ROWS.nbytes, ROWS.nbytes)
    assert facts.tied == ["h"]
    assert [node.op_type for node in merged.graph] == ["Transpose", "If"]
    optimized = smelt.optimize(merged)
    assert [*optimized.graph.initializers] == ["w"], "the Transpose is not folded"


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (CHANGED.T, {}),
        (SIGNED.T, {}),
        (ROWS.reshape(64, 300), {}),
        (ROWS[:100].T, {"rows": ROWS[:100]}),
        (ROWS, {"operator": "Gather(h, ids)"}),
        (ROWS.T, {"axis": 1}),
        (ROWS.T.astype(np.int32), {}),
    ],
    ids=[
        "a number",
        "a sign of 0",
        "reshaped",
        "small",
        "equal",
        "columns gathered",
        "another type",
    ],
)
def test_weights_that_are_no_transposed_embedding_stay(columns, options):
    made = model(columns, **options)
    assert tie_embeddings(made) == []
    assert sorted(made.graph.initializers) == ["h", "w"]


def test_a_projection_that_the_model_returns_stays():
    made = model(ROWS.T)
    made.graph.outputs.append(made.graph.initializers["h"])
    assert tie_embeddings(made) == []
