"""docs/what-is-checked.md lists the rules of ONNX that are checked; each has a model that breaks it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from frontends.onnx.broken import (
    accepted,
    attributes,
    control_flow,
    functions,
    graphs,
    tensors,
    types,
    versions,
)

import smelt
from smelt.error_codes import CODES
from smelt.errors import SmeltError

PAGE = Path(__file__).parents[3] / "docs" / "what-is-checked.md"
BROKEN = {
    name: model
    for family in (versions, graphs, types, attributes, control_flow, functions, tensors)
    for name, model in family.CASES.items()
}


class Row(NamedTuple):
    """A line of a table: a rule of ONNX, the error, and the models of ours that break the rule."""

    rule: str
    source: str
    code: str
    cases: tuple[str, ...]


def rows(section: str) -> list[Row]:
    text = PAGE.read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line] for line in lines[2:]]
    return [Row(a, b, c, tuple(d.split("; "))) for a, b, c, d in cells]


REFUSED = {case: row.code for row in rows("Refused") for case in row.cases}
ACCEPTED = [case for row in rows("Accepted all the same") for case in row.cases]


@pytest.mark.parametrize("case", REFUSED)
def test_a_broken_rule_is_refused(case: str) -> None:
    with pytest.raises(SmeltError) as caught:
        smelt.load(BROKEN[case]())
    assert caught.value.code == REFUSED[case]
    assert caught.value.code in CODES


def test_the_page_lists_every_broken_model() -> None:
    assert REFUSED.keys() == BROKEN.keys()
    assert sorted(ACCEPTED) == sorted(accepted.CASES)


@pytest.mark.parametrize("case", accepted.CASES)
def test_accepted_models_become_valid(case: str) -> None:
    source = accepted.CASES[case]()
    result = smelt.optimize(source)
    if case != "an input without a shape":  # Which nothing can tell.
        onnx.checker.check_model(result)
    x = np.array([-1, 0, 1, 2], np.float32)
    inputs = [x, np.array(1, np.float32)][: len(result.graph.input)]
    source.graph.node[0].name = ""  # ONNX Runtime takes all of them but equal names of nodes.
    np.testing.assert_array_equal(_run(result, inputs), _run(source, inputs))


def _run(model: onnx.ModelProto, inputs: list[np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [info.name for info in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))[0]


ONLY_IN_PROTOBUF = {
    *("no ir_version", "no opset", "one domain twice", "one domain by two names"),
    *("a domain of its own twice", "a function that imports a domain twice"),
    *("a sequence of nothing", "an optional of nothing", "an input of element type 99"),
    "an output without an element type",
    *("a map without a key type", "a map keyed by floats", "a map to nothing"),
    *("a function that writes a value twice", "a function that writes its input"),
    "a function with an output that nothing writes",
    *("two functions of one name", "a function without a name", "a function without a domain"),
    *("a function with an attribute twice", "a function with two outputs of one name"),
    "a function with an attribute with and without a default",
    *("a function with two defaults of one attribute", "a function with an input without a name"),
    *(
        "a function with two inputs of one name",
        "a reference to an attribute that the function lacks",
    ),
}
"""What IR cannot hold: it keeps one of two of a name, and has values instead of names."""

IN_MEMORY = [
    case
    for family in (versions, control_flow, functions, types)
    for case in family.CASES
    if case not in ONLY_IN_PROTOBUF
]


@pytest.mark.parametrize("case", IN_MEMORY)
def test_a_model_in_memory_is_checked_too(case: str) -> None:
    model = ir.from_proto(BROKEN[case]())
    for run in (smelt.optimize, smelt.compile, smelt.load):
        with pytest.raises(SmeltError) as caught:
            run(model)
        assert caught.value.code in (REFUSED[case], "E302")
