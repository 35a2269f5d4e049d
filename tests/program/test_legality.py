"""What a target lacks for a program is told at once, each lack once, by one gate for all targets."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.errors import ErrorList
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.native.schedule import ordered
from smelt.program.legality import check_program
from smelt.program.lower import lower

FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.INT64})
GRAPH = """g (float[4] x, float16[4] h) => (float[4] y, float16[4] z) {
    a = Erf(x) b = Erf(a) c = Cos(b) y = Tan(c) k = Exp(h) z = Sin(k)
}"""


def inferred(graph: str) -> ir.Model:
    model = text.parse(graph)
    ShapeInference(model).infer_model()
    return model


def told(check) -> list[tuple[str, str, str]]:
    with pytest.raises(ErrorList) as caught:
        check()
    return [(error.code, error.what, error.at[0]) for error in caught.value.errors]


def test_types_and_kernels_are_told_together() -> None:
    def refusal(instruction):
        return "it is slow" if instruction.op == "Erf" else None

    program = lower(inferred(GRAPH))
    assert told(lambda: check_program(program, "npu", FLOATS, refusal)) == [
        ("E402", "target 'npu' has no element type float16", "value 'h'"),
        ("E201", "operator Erf has no kernel on target 'npu'", "node 'Erf' and 1 more"),
    ]


def test_kernels_are_not_asked_about_types_that_the_target_lacks() -> None:
    asked = []
    program = lower(inferred(GRAPH))
    told(lambda: check_program(program, "npu", FLOATS, lambda each: asked.append(each.op)))
    assert asked == ["Erf", "Erf", "Cos", "Tan"]


def test_kernels_are_asked_about_instructions_with_absent_operands() -> None:
    graph = """g (float[4] x, float16[4] h, float high) => (float[4] y, float16[4] z) {
        y = Clip(x, , high) z = Exp(h)
    }"""
    asked = []
    program = lower(inferred(graph))
    told(lambda: check_program(program, "npu", FLOATS, lambda each: asked.append(each.op)))
    assert asked == ["Clip"]


def test_programs_within_the_tables_pass() -> None:
    program = lower(text.parse("g (float[4] x) => (float[4] y) { y = Erf(x) }"))
    check_program(program, "npu", FLOATS, lambda each: None)


def test_the_native_engine_names_who_asks() -> None:
    graph = "g (int32[4] x) => (int32[4] y) { a = Tan(x) y = Tan(a) }"
    assert told(lambda: ordered(inferred(graph), "npu")) == [
        ("E201", "operator Tan has no kernel on target 'npu'", "node 'Tan' and 1 more")
    ]


def test_types_that_c_lacks_are_refused() -> None:
    graph = "g (string[3] x) => (string[6] y) { y = Concat<axis = 0>(x, x) }"
    assert [code for code, *_ in told(lambda: ordered(inferred(graph), "c"))] == ["E402"]


@pytest.mark.parametrize(("name", "called"), [("net", "net"), ("", "model")])
def test_a_program_is_called_like_its_graph(name: str, called: str) -> None:
    model = text.parse("g (bool c, float[4] x) => (float[4] y) { y = If<then_branch = t () => (p) "
        "{ p = Neg(x) }, else_branch = e () => (q) { q = Abs(x) }>(c) }")  # fmt: skip
    model.graph.name = name
    ShapeInference(model).infer_model()
    program = lower(model)
    assert program.name == called
    assert [program.slots[slot].name for slot in program.outputs] == ["y"]
