"""Passes of the MIL specification on MIL programs: read from a package, run, written again.

``mil_passes.txt`` has a row for each pattern of the specification. A row has the passes, the inputs,
the program before, whose result is ``y``, and the operators of the program after it, in order. Both
programs compute the same numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from targets.coreml.mil_text import WORDS, after, read, written

from smelt.mlpackage.program import TensorType
from smelt.runtime.runner import run

TABLE = Path(__file__).with_name("mil_passes.txt")


class Row(NamedTuple):
    """A program, the passes, and the operators that are left."""

    passes: str
    inputs: str
    lines: str
    left: str


def rows() -> dict[str, Row]:
    """Return the rows of the table by name."""
    found = {}
    for block in TABLE.read_text("utf-8").split("\n\n"):
        name, passes, inputs, *lines, left = block.strip().splitlines()
        words = [each.partition(" ")[2].strip() for each in (passes, inputs, left)]
        program = "\n".join(map(str.strip, lines))
        found[name.strip("[]")] = Row(words[0], words[1], program, words[2])
    return found


ROWS = rows()


def types_of(text: str) -> dict[str, TensorType]:
    """Return the types of inputs such as ``x:2,3 i:4:int32``."""
    found = {}
    for part in text.split():
        name, sizes, *word = part.split(":")
        element = WORDS[word[0] if word else "fp32"]
        found[name] = TensorType(element, tuple(map(int, sizes.split(","))))
    return found


def feeds_of(types: dict[str, TensorType]) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    return [
        (rng.uniform(0.1, 3.9, kind.dims or ())).astype(kind.element.numpy)
        for kind in types.values()
    ]


@pytest.mark.parametrize("name", ROWS)
def test_the_pass_on_a_program(name):
    row = ROWS[name]
    types = types_of(row.inputs)
    lines = row.lines.replace("float_inf", "1e999")
    model = read(types, lines, ["y"], 17)
    before = run(model, feeds_of(types))
    changed = after(model, row.passes)
    assert " ".join(each.type for each in written(changed)) == row.left
    for found, expected in zip(run(changed, feeds_of(types)), before, strict=True):
        np.testing.assert_allclose(found, expected, 2e-3, 2e-3)
