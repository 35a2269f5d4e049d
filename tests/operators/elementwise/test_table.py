"""The rows of elementwise operators, held against ONNX, NumPy and each other."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir import opset, text
from smelt.ir.build import Builder
from smelt.ir.shapes import broadcast
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.elementwise import (
    BROADCASTING,
    COMMUTATIVE,
    ELEMENTWISE,
    ROWS,
    UNARY,
    WITHIN_FORMULAS,
    Row,
)
from smelt.operators.formula import Arrays, Nodes
from smelt.operators.rounding import ROUNDED_ALIKE, ROUNDING
from smelt.runtime.onnxruntime import OnnxRuntime

OPSET = 24


def test_the_sets_agree() -> None:
    assert UNARY | BROADCASTING < ELEMENTWISE
    assert not UNARY & BROADCASTING
    assert COMMUTATIVE <= BROADCASTING
    assert set(broadcast.ELEMENTWISE) == BROADCASTING
    assert not ELEMENTWISE & (opset.RANDOM | opset.MOVEMENT - {"Identity"} | opset.REDUCTIONS)


def test_inference_broadcasts_the_same_operators() -> None:
    several = {name for name, row in ROWS.items() if row.operands != 1}
    assert several == {*broadcast.ELEMENTWISE, *broadcast.ALIKE}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_onnx_has_it_with_as_many_operands(row: Row) -> None:
    schema = opset.schema(row.name, OPSET)
    assert schema is not None
    if row.operands is None:
        assert schema.inputs[0].option.name == "Variadic"
    elif row.name not in ("Clip", "Dropout"):
        assert schema.min_input == row.operands


def test_operators_rounded_alike_are_exact_or_rounded_once() -> None:
    assert {"Add", "Div", "Sqrt", "Relu", "Where", "LeakyRelu", "Gather"} <= ROUNDED_ALIKE
    assert not ROUNDED_ALIKE & {"Exp", "Sum", "Mean", "Tanh", "Gelu", "Pow", "MatMul"}
    assert {"Exp", "Div", "Sqrt", "MatMul"} <= ROUNDING
    assert not ROUNDING & {"Add", "Mul", "Sum", "Relu", "Mod", "Identity"}


FORMULAS = {
    name: row for name, row in (*ROWS.items(), *WITHIN_FORMULAS.items()) if row.formula is not None
}
EDGES = np.array([0.0, -0.0, 1e-8, -1e-8, 0.5, -0.5, 3.0, -3.0, 40.0, -40.0, 200.0, np.inf, np.nan])


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_a_formula_means_the_same_in_numpy_and_as_nodes(name: str, dtype: str) -> None:
    row = FORMULAS[name]
    names = opset.attribute_names(name, OPSET)
    attributes = {each: opset.default_attribute(name, each, OPSET) for each in names}
    x = EDGES.astype({"float": np.float32, "double": np.float64}[dtype])
    operands = [x, np.full_like(x, 1.5)][: row.operands]
    with np.errstate(all="ignore"):
        expected = Arrays().apply(row, *operands, **attributes)
    inputs = ", ".join(f"{dtype}[{x.size}] x{i}" for i in range(len(operands)))
    model = text.parse(f"g ({inputs}) => (y) {{ y = Identity(x0) }}", OPSET)
    graph = model.graph
    graph.remove(graph[0], safe=False)
    m = Nodes(Builder(model, graph, ShapeInference(model)))
    graph.outputs[0] = row.formula(m, *map(m.tensor, graph.inputs), **attributes).value
    graph.outputs[0].name = "y"
    (got,) = OnnxRuntime(model)(*operands)
    single = dtype == "float" or name == "Fmod"
    np.testing.assert_allclose(got, expected, rtol=3e-6 if single else 1e-13, atol=1e-12)


@pytest.mark.parametrize("name", ["Expm1", "Log1p"])
def test_small_numbers_lose_no_digits(name: str) -> None:
    x = ir.DataType.DOUBLE.numpy().type(1e-12)
    formula, array = WITHIN_FORMULAS[name].formula, WITHIN_FORMULAS[name].array

    class Plain(Arrays):
        def op(self, op_type, *inputs):
            assert op_type not in WITHIN_FORMULAS
            return super().op(op_type, *inputs)

    assert formula(Plain(), x) == pytest.approx(float(array(x)), rel=1e-15)
