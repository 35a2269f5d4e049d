"""The table that ``smelt optimize`` prints: operators, weights, file sizes, before and after.

::

    before = snapshot(model)
    ...  # passes change the model
    note(summary(before, snapshot(model), "in.onnx", "out.onnx"))
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smelt.cli.layout import printable, table

if TYPE_CHECKING:
    import onnx_ir as ir

SHOWN = 5
"""How many operators the table lists, those whose counts changed most."""


@dataclass(frozen=True)
class Snapshot:
    """The number of nodes for each operator and the bytes of weights, at one time."""

    operators: Counter[str]
    weights: int

    @property
    def nodes(self) -> int:
        """The number of nodes in all graphs, bodies of loops and functions included."""
        return self.operators.total()


def snapshot(model: ir.Model) -> Snapshot:
    """Count the nodes and weight bytes of ``model``; no tensor data is read."""
    from smelt.ir import scope

    graphs = list(scope.graphs(model))
    names = (f"{node.domain}.{node.op_type}".lstrip(".") for graph in graphs for node in graph)
    tensors = [
        value.const_value
        for graph in graphs
        if hasattr(graph, "initializers")
        for value in graph.initializers.values()
    ]
    return Snapshot(Counter(names), sum(tensor.nbytes for tensor in tensors if tensor is not None))


def summary(before: Snapshot, after: Snapshot, source: str, result: str) -> str:
    """Return a table of the operators whose counts changed most, all nodes, weights and file bytes.

    ``source`` and ``result`` are paths; the row of files is left out for streams.
    """
    rows = [*_operators(before.operators, after.operators)]
    rows.append(("weights, bytes", before.weights, after.weights))
    if Path(source).is_file() and Path(result).is_file():
        sizes = Path(source).stat().st_size, Path(result).stat().st_size
        rows.append(("file, bytes", *sizes))
    cells = [("", "before", "after"), *((name, f"{a:,}", f"{b:,}") for name, a, b in rows)]
    wide = [max(len(row[column]) for row in cells) for column in (1, 2)]
    header, *lines = [(name, a.rjust(wide[0]), b.rjust(wide[1])) for name, a, b in cells]
    return table(lines, header, stream=sys.stderr)


def _operators(before: Counter[str], after: Counter[str]) -> Iterator[tuple[str, int, int]]:
    """Yield rows of name, count before and count after.

    They are the operators that changed most, all other changed operators, and all nodes.
    """
    changed = [name for name in before | after if before[name] != after[name]]
    changed.sort(key=lambda name: (-abs(before[name] - after[name]), name))
    shown, others = changed[:SHOWN], changed[SHOWN:]
    yield from ((printable(name), before[name], after[name]) for name in shown)
    if others:
        counts = [sum(side[name] for name in others) for side in (before, after)]
        yield f"{len(others)} other operators", counts[0], counts[1]
    yield "all nodes", before.total(), after.total()
