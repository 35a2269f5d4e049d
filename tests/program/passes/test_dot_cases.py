"""Contractions of every make: right, and with no Transpose that a matrix product can do without."""

from __future__ import annotations

import copy

import numpy as np
import onnx_ir as ir
import pytest
from dot_cases import DotCase, dot_cases
from written import counting, evaluate, one_dot, ops

import smelt
from smelt.native.schedule import simplify
from smelt.program.instruction import Program
from smelt.program.passes import optimize

CASES = list(dot_cases())
SOME = [
    pytest.param(CASES[start::50], id=f"every 50th from {start}", marks=marks)
    for start, marks in ((0, ()), *((i, pytest.mark.slow) for i in range(1, 50)))
]


def program_of(case: DotCase) -> Program:
    return one_dot(case.shape(case.lhs), case.shape(case.rhs), case.dims)


def transposes(program: Program) -> int:
    return ops(program).count("Transpose")


def test_no_more_transposes_than_operands_that_cannot_be_read() -> None:
    for case in CASES:
        canonical, by_steps, native = (program_of(case) for _ in range(3))
        optimize(canonical)
        assert transposes(canonical) == case.fewest_copies(canonical=True), str(case)
        optimize(by_steps, strided=True)
        simplify(native)
        fewest = case.fewest_copies()
        assert (transposes(by_steps), transposes(native)) == (fewest, fewest), str(case)


@pytest.mark.parametrize("cases", SOME)
def test_numbers_are_those_of_numpy_and_a_second_run_changes_nothing(
    cases: list[DotCase],
) -> None:
    for case in cases:
        program = program_of(case)
        x, y = counting(program)
        optimize(program, strided=True)
        np.testing.assert_array_equal(
            evaluate(program, x, y)[0], np.einsum(str(case), x, y), err_msg=str(case)
        )
        before = copy.deepcopy((program.slots, program.instructions))
        optimize(program, strided=True)
        assert (program.slots, program.instructions) == before, str(case)


def model_of(case: DotCase) -> ir.Model:
    inputs = [
        ir.Value(
            name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(case.shape(labels))
        )
        for name, labels in (("a", case.lhs), ("b", case.rhs))
    ]
    names = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
    attributes = [ir.AttrInt64s(name, getattr(case.dims, name)) for name in names]
    node = ir.Node("smelt", "DotGeneral", inputs, attributes)
    (result,) = node.outputs
    result.name, result.type = "y", inputs[0].type
    result.shape = ir.Shape(case.shape(case.out))
    imports = {"": 23, "smelt": 1}
    graph = ir.Graph(inputs, [result], nodes=[node], name="dot", opset_imports=imports)
    return ir.Model(graph, ir_version=11)


@pytest.mark.parametrize("cases", SOME)
def test_whole_models_have_none_either(cases: list[DotCase]) -> None:
    """What the passes over the graph transpose and reshape for ONNX's MatMul is taken back."""
    for case in cases:
        artifact = smelt.compile(model_of(case), target="host", engine="native")
        program = artifact.plan.steps
        assert transposes(program) <= case.fewest_copies(), (str(case), ops(program))
        x, y = counting(program)
        np.testing.assert_array_equal(
            artifact(x, y)[0], np.einsum(str(case), x, y), err_msg=str(case)
        )
