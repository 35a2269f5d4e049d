"""A malformed node of a declared operator gets a code or an unknown shape, never a Python error.

Ranks, sizes, element types, attributes and the number of inputs are drawn. E646 and E9xx blame the
declaration or smelt, so they count as failures.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import onnx_ir as ir
import pytest

import smelt
from smelt.errors import ErrorList, SmeltError
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators import all_operators
from smelt.operators.declare import Attribute, Operator

T, A = ir.DataType, ir.AttributeType
TYPES = (T.FLOAT, T.FLOAT, T.FLOAT16, T.INT8, T.UINT8, T.INT64, T.INT32, T.BOOL, T.DOUBLE)
RARE_TYPES = (*TYPES, T.STRING, T.COMPLEX64)
RANKS = (None, 0, 1, 2, 2, 3, 3, 4, 4, 5)
SIZES = (0, 1, 2, 3, 4, 8, "N", "M", None)
OWN_FAULT = "E646"
INFERRED, COMPILED = 60, 8
"""Models of each operator whose shapes are inferred, and that are compiled."""

KINDS: dict[ir.AttributeType, Callable[[random.Random], object]] = {
    A.INT: lambda rng: rng.choice([-1, 0, 1, 2, 3, 16]),
    A.FLOAT: lambda rng: rng.choice([0.0, 0.5, 1.0]),
    A.STRING: lambda rng: rng.choice(["", "Relu", "NOTSET", "SAME_UPPER", "add"]),
    A.INTS: lambda rng: [rng.choice([-1, 0, 1, 2]) for _ in range(rng.randrange(5))],
    A.FLOATS: lambda rng: [1.0] * rng.randrange(3),
    A.STRINGS: lambda rng: ["Relu"] * rng.randrange(3),
}


def drawn(operator: Operator, seed: int) -> ir.Model:
    """Return a model of one node whose operands and attributes rarely fit."""
    rng = random.Random(f"{operator.domain} {operator.name} {seed}")
    count = len(operator.inputs) - rng.choice([0, 0, 0, 0, 1, 2, -1])
    one = rng.choice(TYPES) if rng.random() < 0.6 else None
    inputs = [_operand(rng, i, one or rng.choice(RARE_TYPES)) for i in range(max(count, 0))]
    attributes = [a for each in operator.attributes if (a := _attribute(rng, each)) is not None]
    node = ir.Node(
        operator.domain,
        operator.name,
        inputs,
        attributes,
        num_outputs=rng.randint(1, len(operator.outputs)),
    )
    for i, output in enumerate(node.outputs):
        output.name = f"y{i}"
    given = [value for value in inputs if value is not None]
    graph = ir.Graph(
        given,
        list(node.outputs),
        nodes=[node],
        name="g",
        opset_imports={"": 23, operator.domain: operator.version},
    )
    return ir.Model(graph, ir_version=10)


def _operand(rng: random.Random, place: int, dtype: ir.DataType) -> ir.Value | None:
    """Return an input of any shape, or None."""
    rank = rng.choice(RANKS)
    shape = None if rank is None else ir.Shape([rng.choice(SIZES) for _ in range(rank)])
    if rng.random() < 0.1:
        return None
    return ir.Value(name=f"x{place}", type=ir.TensorType(dtype), shape=shape)


def _attribute(rng: random.Random, attribute: Attribute) -> ir.Attr | None:
    """Return a value of the attribute, None to leave it out."""
    if attribute.type not in KINDS or rng.random() < (0.1 if attribute.required else 0.6):
        return None
    return ir.Attr(attribute.name, attribute.type, KINDS[attribute.type](rng))


def fault(run: Callable[[], object]) -> str:
    """Return the error of smelt's own fault that ``run`` raises; empty if it blames the model."""
    try:
        run()
    except SmeltError as error:
        first = error.errors[0] if isinstance(error, ErrorList) else error
        own = first.code == OWN_FAULT or first.code.startswith("E9")
        return f"{first.code} {first.why}" if own else ""
    except Exception as error:  # noqa: BLE001 - what is looked for
        return repr(error)
    return ""


@pytest.mark.parametrize("operator", all_operators(), ids=lambda each: f"{each.domain}.{each.name}")
def test_a_malformed_node_is_no_python_error(operator: Operator) -> None:
    found = {}
    for seed in range(INFERRED):
        found[seed, "infer"] = fault(ShapeInference(drawn(operator, seed)).infer_model)
        if seed < COMPILED:
            model = drawn(operator, seed)
            found[seed, "c"] = fault(lambda model=model: smelt.compile(model, target="c"))
            model = drawn(operator, seed)
            found[seed, "optimize"] = fault(lambda model=model: smelt.optimize(model))
    assert {key: what for key, what in found.items() if what} == {}


def test_some_draws_fit_and_most_do_not() -> None:
    operators = all_operators()
    typed = 0
    for operator in operators:
        model = drawn(operator, 3)
        with suppress(SmeltError):
            ShapeInference(model).infer_model()
            typed += model.graph.outputs[0].shape is not None
    assert 5 < typed < len(operators) / 2
