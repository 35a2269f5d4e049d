"""Names in the options of passes must be existing operators and nodes."""

from __future__ import annotations

import onnx_ir as ir
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.passes.operator_names import operator_names

GRAPH = """<ir_version: 10, opset_import: ["" : 20, "mine" : 1]>
g (float[2,3] x) => (float[2,3] y) { a = Mul(x, x) b = Softmax(a) c = mine.Odd_One(b) y = Add(c, x) }"""


@pytest.mark.parametrize(
    ("given", "operator"),
    [
        *(("Mul", "Mul"), ("mul", "Mul"), ("const", "Constant"), ("reduce_mean", "ReduceMean")),
        *(("softmax", "Softmax"), ("real_div", "Div"), ("layer_norm", "LayerNormalization")),
        *(("Odd_One", "Odd_One"), ("oddone", "Odd_One"), ("GEMM", "Gemm")),
    ],
)
def test_spellings(given: str, operator: str) -> None:
    assert operator_names("a-pass", [given], text.parse(GRAPH)) == {operator}


@pytest.mark.parametrize("name", ["Sofmax", "", "*", "Soft max"])
def test_a_typo_is_refused(name: str) -> None:
    with pytest.raises(SmeltError, match="E603"):
        operator_names("a-pass", [name], text.parse(GRAPH))


REFUSED = {
    "add-fp16-cast{skip-ops-by-type=Sofmax}": "did you mean 'Softmax'",
    "add-fp16-cast{skip-nodes=/head/*}": "no node of the model has such a name",
    "add-fp16-cast{only-nodes=b,Softmx_0}": "no node of the model has such a name",
    "topological-reorder{ops=Transpos}": "did you mean 'Transpose'",
    "image-input-preprocess{inputs=z}": "no input of that name",
    "update-output-dtypes{dtypes=z:float16}": "the outputs are y",
    "update-output-dtypes{dtypes=y:float17}": "the types are",
    "materialize-symbolic-dims{dims=B=1}": "no input has a dim called 'B'",
}


@pytest.mark.parametrize(("pipeline", "why"), REFUSED.items(), ids=REFUSED)
def test_every_option_that_names_something_names_what_there_is(pipeline: str, why: str) -> None:
    with pytest.raises(SmeltError, match=f"(?s)E6[03]3.*{why}"):
        smelt.optimize(text.parse(GRAPH), pipeline=pipeline)


def test_core_mls_own_spelling_keeps_the_operators() -> None:
    model = smelt.optimize(text.parse(GRAPH), pipeline="add-fp16-cast{skip-ops-by-type=mul,const}")
    types = {node.op_type: node.inputs[0].dtype for node in model.graph if not node.domain}
    assert types["Mul"] == ir.DataType.FLOAT
    assert types["Softmax"] == ir.DataType.FLOAT16


def test_a_pattern_is_looked_up_once() -> None:
    model = text.parse(GRAPH)
    for node in model.graph:
        node.name = f"/head/{node.op_type}"
    step = "add-fp16-cast{skip-nodes=/head/Mul}"
    result = smelt.optimize(model, pipeline=f"{step},{step}")
    assert [node.op_type for node in result.graph].count("Mul") == 1
