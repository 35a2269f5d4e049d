"""The cost table: the seconds of each form of a choice, measured at points of a grid."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from smelt.errors import UsageError, damage
from smelt.runtime.onnxruntime import version
from smelt.targets.ort.choices import CHOICES, Choice

DEFAULT = "costs_x86_64.json"
OLDER = (((1, 28), "costs_x86_64_1_24.json"), ((1, 30), "costs_x86_64_1_28.json"))
"""Tables of older runtimes: (first version that a table no longer covers, file), ascending.

The slower kernel changed twice: LayerNormalization in 1.28 and 1.29, SkipLayerNormalization from
1.30 on.
"""
SCHEMA = "smelt.costs/1"

GAIN = 0.95
"""A form replaces another if it takes at most this share of its time; noise is smaller."""

LOSS = 1.02
"""The largest ratio allowed at any grid size if a size is unknown."""

Dim: TypeAlias = "int | None"
Cell: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Costs:
    """The seconds of each form by choice and sizes, in the order of the grid's axes.

    ``about`` describes the measurement: runtime, machine, threads.
    """

    about: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, Mapping[Cell, Mapping[str, float]]] = field(default_factory=dict)

    def ratio(self, choice: Choice, form: str, sizes: Mapping[str, Dim]) -> float | None:
        """Return the time of ``form`` relative to the first form; None if the table lacks it.

        For unknown sizes it is the geometric mean over the grid, or the largest ratio if that
        exceeds ``LOSS``.
        """
        cells = self.seconds.get(choice.name, {})
        if any(form not in seconds for seconds in cells.values()) or len(cells) < _count(choice):
            return None
        default_form = next(iter(choice.forms))
        corners = [
            values if (size := sizes[axis]) is None else (size,)
            for axis, values in choice.grid.items()
        ]
        logs = [
            _interpolated_seconds(choice, cells, form, point)
            - _interpolated_seconds(choice, cells, default_form, point)
            for point in itertools.product(*corners)
        ]
        worst, mean = math.exp(max(logs)), math.exp(sum(logs) / len(logs))
        return worst if worst > LOSS and len(logs) > 1 else mean


def _count(choice: Choice) -> int:
    """Return the number of sizes at which a choice is timed."""
    return math.prod(map(len, choice.grid.values()))


def _interpolated_seconds(
    choice: Choice, cells: Mapping[Cell, Mapping[str, float]], form: str, point: Sequence[int]
) -> float:
    """Return the logarithm of the seconds at ``point``, interpolated in logarithms of sizes.

    Beyond the grid, the value at its end is used.
    """
    sides = [
        _enclosing_points(axis, size)
        for axis, size in zip(choice.grid.values(), point, strict=True)
    ]
    total = 0.0
    for corner in itertools.product(*sides):
        weight = math.prod(part for _, part in corner)
        if weight:
            total += weight * math.log(cells[tuple(size for size, _ in corner)][form])
    return total


def _enclosing_points(axis: Sequence[int], size: int) -> list[tuple[int, float]]:
    """Return the points of ``axis`` on both sides of ``size``, each with its weight."""
    size = min(max(size, axis[0]), axis[-1])
    for low, high in itertools.pairwise(axis):
        if low <= size <= high:
            part = math.log(size / low) / math.log(high / low)
            return [(low, 1 - part), (high, part)]
    return [(axis[0], 1.0)]


def read_costs(path: str | Path) -> Costs:
    """Return the table in a file of ``smelt tune``; raises UsageError E662 for any other file."""
    return costs_of(read_document(path, "smelt tune --target ort -o costs.json"))


def read_document(path: str | Path, fix: str) -> dict[str, Any]:
    """Return the JSON document in a file of ``smelt tune``; raises UsageError E662 if it is no
    table.
    """
    try:
        document: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        costs_of(document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            "E662",
            f"{str(path)!r} is not a table of costs",
            why=damage(error),
            fix=fix,
        ) from error
    return document


def costs_of(document: Mapping[str, Any]) -> Costs:
    """Return the table in a JSON document; raises ValueError, KeyError or TypeError
    if it is none.
    """
    if document["schema"] != SCHEMA:
        raise ValueError(f"its schema is {document['schema']!r}, not {SCHEMA!r}")
    seconds: dict[str, dict[Cell, dict[str, float]]] = {}
    for name, cells in document["choices"].items():
        choice = CHOICES.get(name)
        if choice is None:
            continue
        for cell in cells:
            sizes = tuple(int(cell["sizes"][axis]) for axis in choice.grid)
            by_form = {form: float(value) for form, value in cell["seconds"].items()}
            if not all(0 < value < math.inf for value in by_form.values()):
                raise ValueError(f"{name} at {sizes} took {by_form}")
            seconds.setdefault(name, {})[sizes] = by_form
    return Costs({field: fact for field, fact in document.items() if field != "choices"}, seconds)


def default_costs() -> Costs:
    """Return the built-in table for the installed runtime, or the newest table without one.

    The table names the machine and the runtime of the measurement.
    """
    try:
        return costs_of_runtime(version())
    except UsageError:
        return costs_of_runtime("")


@cache
def costs_of_runtime(runtime: str) -> Costs:
    """Return the built-in table for a version of the runtime, such as ``"1.28.0"``."""
    numbers = tuple(int(part) for part in runtime.split(".")[:2] if part.isdigit())
    names = [name for before, name in OLDER if len(numbers) == 2 and numbers < before]
    return read_costs(Path(__file__).with_name(names[0] if names else DEFAULT))
