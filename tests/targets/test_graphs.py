"""Targets make and compute of graphs what ``graphs.txt`` says, which is read when an entry changes.

An entry has what ``host`` returns by NumPy at two sizes, as types and a digest of the numbers at
three digits, and the model that ``ort`` makes if each of its forms is cheaper; or the errors.
``PYTHONPATH=src:tests python tests/targets/test_graphs.py`` writes the entries again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import onnx_ir as ir
import pytest
from recorded import digest, facts, made_or_refused, parsed, rows, write

from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.dims import symbols_of
from smelt.runtime.inputs import random_inputs
from smelt.targets.base import Plan
from smelt.targets.host import host
from smelt.targets.host.options import Options
from smelt.targets.ort import choices, select
from smelt.targets.ort.costs import Costs
from smelt.targets.ort.options import Options as OrtOptions
from smelt.targets.selection import select as apply_rules

TABLE = Path(__file__).with_name("graphs.txt")
SIZES = (2, 3)
"""The sizes of all symbolic dims."""

HALF = Costs(
    {},
    {
        choice.name: {
            tuple(cell.values()): {form: 0.5**place for place, form in enumerate(choice.forms)}
            for cell in choice.cells()
        }
        for choice in choices.CHOICES.values()
    },
)
"""Costs under which each form takes half of the time of the one before it."""


def entry(row: str) -> str:
    """Return the entry of a row."""
    return " | ".join(made_or_refused(lambda way=way: way(parsed(row))) for way in WAYS)


def computed(model: ir.Model) -> str:
    """Return the types of what ``host`` computes, and a digest of the numbers."""
    plan = Plan(model, Options(engine="numpy"))
    host.schedule(plan)
    host.allocate(plan)
    artifact = host.emit(plan)
    dims = [dim for value in model.graph.inputs for dim in value.shape or ()]
    names = set[str]().union(*map(symbols_of, dims))
    told = [str(plan.facts)]
    for size in SIZES if names else SIZES[:1]:
        inputs = random_inputs(model, dict.fromkeys(names, size), seed=size)
        told.append(made_or_refused(lambda given=inputs: "\n".join(_numbers(artifact(*given)))))
    return f"{told[-1].partition(chr(10))[0]} {digest(*told)}"


def _numbers(values: object) -> Iterator[str]:
    """Yield the types of ``values`` and their numbers at three digits."""
    for value in values if isinstance(values, tuple | list) else [values]:
        if not isinstance(value, np.ndarray):
            yield from _numbers(value) if isinstance(value, list | tuple) else [str(value)]
            continue
        yield f"{value.dtype}{list(value.shape)}".replace(" ", "")
        is_float = value.dtype.kind in "fc" or "float" in value.dtype.name
        flat = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        flat = flat.ravel() if is_float else value.ravel()
        yield " ".join(f"{number:.3g}" if is_float else str(number) for number in flat.tolist())


def formed(model: ir.Model) -> str:
    """Return the facts of what ``ort`` makes of ``model`` if each form is cheaper."""
    ShapeInference(model).infer_model()
    with mock.patch.object(select, "default_costs", return_value=HALF):
        chosen = apply_rules(model, select.rules_for(OrtOptions()))
    return f"{facts(model)} {digest(str(chosen.to_json()))}"


WAYS = (computed, formed)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_targets_make_what_the_table_records(row: str, expected: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert entry(row) == expected, "if this is meant: python tests/targets/test_graphs.py"


if __name__ == "__main__":
    write(TABLE, entry)
