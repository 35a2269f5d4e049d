"""Uses of MIL operators are read or refused as ``read.txt`` says, which is read when an entry changes.

A row names an operator, its tensors by type and its constants: ``squeeze ios17 x=f32[1,N] axes=[0]``.
An entry holds the graph, with a digest, or the code and the reason of the refusal.
``PYTHONPATH=src:tests python tests/frontends/coreml/test_read.py`` writes the entries again.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontends.coreml.mil import constant, operation, package
from recorded import facts, rows, write

from smelt.errors import ErrorList, SmeltError
from smelt.frontends.coreml.load import model_of
from smelt.mlpackage.program import Constant, Element, TensorType

TABLE = Path(__file__).with_name("read.txt")
KINDS = {"f32": Element.FLOAT32, "f16": Element.FLOAT16, "i32": Element.INT32, "b": Element.BOOL}
TENSOR = re.compile(r"(f32|f16|i32|b)\[([\w,?]*)\]")
NUMPY = {"u1": Element.UINT1, "u2": Element.UINT2, "u4": Element.UINT4}


def kind_of(text: str) -> TensorType | None:
    """Return the type that ``f32[2,N]`` names; ``f32[?]`` has no known rank."""
    found = TENSOR.fullmatch(text)
    if found is None:
        return None
    dims = None if found[2] == "?" else [d for d in found[2].split(",") if d]
    sizes = dims and tuple(int(d) if d.isdecimal() else None for d in dims)
    return TensorType(KINDS[found[1]], None if dims is None else sizes or ())


def constant_of(text: str) -> Constant:
    """Return the constant of a literal; ``u4:[1,2]`` tells another element type than int32."""
    kind, _, literal = text.rpartition(":") if text[:1] not in "[('\"" else ("", "", text)
    value: Any = ast.literal_eval(literal)
    if not kind:
        return constant(value)
    element = NUMPY.get(kind) or Element[kind.upper()]
    return Constant(TensorType(element, np.shape(value)), np.array(value, element.numpy))


def entry(row: str) -> str:
    """Return the entry of a row."""
    name, version, *words = row.split()
    inputs, arguments, result = {}, {}, "f32[?]"
    for word in words:
        parameter, _, text = word.partition("=")
        if parameter == "->":
            result = text
        elif "+" in text:
            parts = text.split("+")
            made = [f"{parameter}{place}" for place in range(len(parts))]
            inputs |= {m: kind_of(part) for m, part in zip(made, parts, strict=True)}
            arguments[parameter] = [f"%{m}" for m in made]
        elif (kind := kind_of(text)) is not None:
            inputs[parameter] = kind
            arguments[parameter] = f"%{parameter}"
        else:
            arguments[parameter] = constant_of(text)
    outputs = {f"y{place}": kind_of(each) for place, each in enumerate(result.split("+"))}
    one = operation(name, outputs, **arguments)
    ios = int(version.removeprefix("ios"))
    try:
        return facts(model_of(package(inputs, [one], list(outputs), ios), "main"))
    except SmeltError as error:
        found = error.errors if isinstance(error, ErrorList) else (error,)
        return "; ".join(f"{each.code} {each.why}" for each in found)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_the_operator_is_read_as_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/frontends/coreml/test_read.py"


if __name__ == "__main__":
    write(TABLE, entry)
