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
from frontends.coreml.mil import constant, operation, package
from targets.coreml.mil_text import WORDS, after, read, written

from smelt.frontends.coreml import load
from smelt.mlpackage.program import Block, Element, Named, TensorType
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
    """Return the types of inputs such as ``x:2,?`` and ``i:4:int32``; ``?`` is an open size."""
    found = {}
    for part in text.split():
        name, sizes, *word = part.split(":")
        element = WORDS[word[0] if word else "fp32"]
        dims = tuple(None if size == "?" else int(size) for size in sizes.split(","))
        found[name] = TensorType(element, dims)
    return found


def feeds_of(types: dict[str, TensorType]) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    return [
        rng.uniform(0.1, 3.9, [size or 3 for size in kind.dims or ()]).astype(kind.element.numpy)
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


def test_an_invariant_of_a_loop_is_read_from_outside():
    """While i < 3: i, a, b = i + 1, a + b, b; the loop then carries i and a."""
    row, count, flag = (
        TensorType(kind, ()) for kind in (Element.FLOAT32, Element.INT32, Element.BOOL)
    )
    inputs = [Named("i", count), Named("p", row), Named("q", row)]
    test = Block([operation("less", {"t": flag}, x="%i", y=3)], ["t"], inputs)
    steps = [
        operation("add", {"j": count}, x="%i", y=1),
        operation("add", {"r": row}, x="%p", y="%q"),
    ]
    blocks = [test, Block(steps, ["j", "r", "q"], inputs)]
    start = [constant(np.int32(0)), "%a", "%b"]
    results = {"n": count, "y": row, "z": row}
    made = operation("while_loop", results, blocks, loop_vars=start)
    model = load.model_of(package({"a": row, "b": row}, [made], ["y", "z"]), "main")
    feeds = [np.float32(1), np.float32(2)]
    assert [float(y) for y in run(model, feeds)] == [7, 2]
    changed = after(model, "loop-invariant-elimination")
    (loop,) = (each for each in written(changed) if each.type == "while_loop")
    assert len(loop.inputs["loop_vars"]) == len(loop.outputs) == 4  # round, condition, i, a
    assert [float(y) for y in run(changed, feeds)] == [7, 2]


def test_an_image_gets_its_channels_first():
    types = {"x": TensorType(Element.FLOAT32, (1, 4, 6, 3))}
    lines = "t = transpose(x=x, perm=[0,3,1,2])\ny = relu(x=t)"
    model = read(types, lines, ["y"], 17)
    image = np.random.default_rng(1).normal(size=(1, 4, 6, 3)).astype(np.float32)
    (before,) = run(model, [image])
    changed = after(
        model, "image-input-preprocess{inputs=x},merge-consecutive-transposes,noop-elimination"
    )
    assert [each.type for each in written(changed)] == ["relu"]
    np.testing.assert_array_equal(run(changed, [image.transpose(0, 3, 1, 2)])[0], before)


def test_names_that_are_words_of_languages_change():
    changed = after(
        read(types_of("float:3"), "y = relu(x=float)", ["y"], 17), "sanitize-input-output-names"
    )
    assert [value.name for value in changed.graph.inputs] == ["float_"]
