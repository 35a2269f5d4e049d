"""The target writes of node tests of ONNX what ``written.txt`` says, which is read when an entry changes.

A row is the name of a node test, or a graph, with names of dims from 2 to 9. Its entry has, for float32 on iOS 17 and for float16 on iOS 18, the
operations of the program and a digest of all of it, and of the guesses where it runs; or the errors. Operands that decide shapes are
constants where the model is refused otherwise.
``PYTHONPATH=src:tests python tests/targets/coreml/test_written.py`` writes the entries again.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from recorded import digest, made_or_refused, parsed, rows, write
from targets.coreml.node_verdicts import array_of, baked, cases

import smelt
from smelt.errors import SmeltError
from smelt.targets.base import Artifact

TABLE = Path(__file__).with_name("written.txt")
WAYS = ({"precision": "fp32", "ios": 17}, {"precision": "fp16", "ios": 18})


def entry(row: str) -> str:
    """Return the entry of a row."""
    return " | ".join(made_or_refused(lambda way=way: written(row, way)) for way in WAYS)


def written(name: str, options: dict[str, object]) -> str:
    """Return the operations of the program of a row, and a digest."""
    artifact = compiled(name, options)
    counts = Counter(
        each.type for block in artifact.plan.steps.blocks() for each in block.operations
    )
    del counts["const"]
    with np.printoptions(threshold=10_000, precision=5):
        text = re.sub(r"0x[0-9a-f]+", "", str(artifact.plan.steps))
    placement = str(artifact.report["placement"])
    return f"{' '.join(f'{n}*{kind}' for kind, n in counts.items())} {digest(text, placement)}"


def compiled(row: str, options: dict[str, object]) -> Artifact:
    """Compile the graph of a row, or a node test whose operands are constants where they must."""
    if "=>" in row:
        graph, _, open_dims = row.partition(" with ")
        dims = dict.fromkeys(open_dims.split(), (2, 9))
        return smelt.compile(parsed(graph), target="coreml", dims=dims, **options)
    case = cases()[row]
    inputs = [array for item in case.data_sets[0][0] if (array := array_of(item)) is not None]
    try:
        return smelt.compile(baked(case.model, inputs, len(inputs)), target="coreml", **options)
    except SmeltError:
        return smelt.compile(baked(case.model, inputs, 1), target="coreml", **options)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_the_program_is_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/targets/coreml/test_written.py"


if __name__ == "__main__":
    write(TABLE, entry)
