"""Bodies of declared operators are those of ``bodies.txt``, which is read when one changes.

Each line with a graph is followed by its table entry: types of the results, operators of the body,
and a digest of it. ``python tests/operators/test_bodies.py`` writes the entries again; whoever runs
it reads the difference and has other tests that the new body is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from smelt import operators
from smelt.errors import InvalidModel
from smelt.ir import scope, text
from smelt.ir.fingerprint import fingerprint
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.expand import write_in_line

TABLE = Path(__file__).with_name("bodies.txt")
DIGITS = 6
"""Significant digits of constants that count; machines differ in the last places of a few."""


def lines() -> list[tuple[str, str]]:
    """The graphs of the table and their entries."""
    found = TABLE.read_text(encoding="utf-8").splitlines()
    return list(zip(found[::2], found[1::2], strict=True))


def entry(graph: str) -> str:
    """The entry for ``graph``: the reason of the refusal if it has no such operands."""
    model = text.parse("g " + graph)
    try:
        ShapeInference(model).infer_model()
    except InvalidModel as error:
        return f"    {error.code}: {error.why}"
    results = ", ".join(text.type_of(value) for value in model.graph.outputs)
    operators.expand(model)
    write_in_line(model)
    kinds = Counter(node.op_type for node in scope.nodes(model))
    round_constants(model)
    listed = " ".join(f"{count}*{kind}" for kind, count in kinds.items())
    return f"    {results}: {listed} {fingerprint(model.graph).hex()[:12]}"


def round_constants(model: ir.Model) -> None:
    """Round the floats among constants to ``DIGITS``."""
    for node in scope.nodes(model):
        value = node.attributes.get("value")
        if value is not None and value.type == ir.AttributeType.TENSOR:
            node.attributes["value"] = ir.AttrTensor("value", rounded(value.as_tensor()))
    for graph in scope.graphs(model):
        for weight in graph.initializers.values():
            if weight.const_value is not None:
                weight.const_value = rounded(weight.const_value)


def rounded(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """``tensor`` with floats rounded to ``DIGITS``."""
    array = tensor.numpy()
    if array.dtype.kind != "f":
        return tensor
    numbers = [float(f"{number:.{DIGITS}g}") for number in array.ravel().tolist()]
    return ir.tensor(np.array(numbers, array.dtype).reshape(array.shape))


@pytest.mark.parametrize(("graph", "expected"), lines(), ids=lambda line: line.strip()[:60])
def test_the_body_is_that_of_the_table(graph: str, expected: str) -> None:
    assert entry(graph) == expected


def named() -> Iterator[tuple[str, str]]:
    """The operators whose bodies the table has."""
    for graph, _ in lines():
        for node in text.parse("g " + graph).graph:
            yield node.domain, node.op_type


def test_every_declared_operator_with_a_body_is_in_the_table() -> None:
    """Examples of pages, which run in the same process, declare operators of other domains."""
    table = {*named()}
    domains = {domain for domain, _ in table}
    with_body = {each.key for each in operators.all_operators() if each.body is not None}
    assert {key for key in with_body if key[0] in domains} <= table


if __name__ == "__main__":
    TABLE.write_text("".join(f"{graph}\n{entry(graph)}\n" for graph, _ in lines()), "utf-8")
