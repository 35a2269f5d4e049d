"""One run is a fixpoint: to optimize what is optimized changes no operator and no byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
from sampling import is_tried

import smelt
from smelt.ir import scope, text

Source = ir.Model | onnx.ModelProto | str | Path
SHOWN = 12
"""Lines of a difference that a failure shows."""

ONE_OF = 4
"""Of the graphs of passes so many are tried once in CI: three runs of the default pipeline took a
third of the time of their tests, and whole models, networks and random graphs ask the same."""


@cache
def check_text(graph: str, opset: int) -> None:
    """What the default pipeline makes of ``graph`` stays as it is, dead readers or not."""
    if not is_tried(graph, ONE_OF):
        return
    source = text.parse(graph, opset)
    once = optimized(source)
    twice, haunted = optimized(once), optimized(with_dead_readers(source))
    assert once == twice, difference(once, twice)
    assert once == haunted, difference(once, haunted)


def check_fixpoint(source: Source, **options: Any) -> None:
    """``smelt.optimize`` of ``source``, written and read, gives the same bytes once more."""
    problem = second_run(source, **options)
    assert not problem, problem


def second_run(source: Source, **options: Any) -> str:
    """What a second ``smelt.optimize`` changes of the result of the first; empty for nothing."""
    once = optimized(source, **options)
    return difference(once, optimized(once, **options))


def with_dead_readers(model: ir.Model) -> ir.Model:
    """``model`` with a node at the end of each graph that reads each result in it, for nothing."""
    haunted = model.clone()
    for graph in list(scope.graphs(haunted)):
        results = [value for node in graph for value in node.outputs if value.name]
        graph.extend(_unread(graph, results))
    return haunted


def _unread(graph: ir.Graph, values: Sequence[ir.Value]) -> list[ir.Node]:
    nodes = [
        ir.Node("", "Shape", [value], num_outputs=1, name=f"dead_{graph.name}_{value.name}")
        for value in values
        if value.type is None or isinstance(value.type, ir.TensorType)
    ]
    for node in nodes:
        node.outputs[0].name = f"{node.name}_shape"
    return nodes


def optimized(source: Source, **options: Any) -> onnx.ModelProto:
    model = smelt.optimize(source, **options)
    return smelt.to_proto(model) if isinstance(model, ir.Model) else model


def difference(a: onnx.ModelProto, b: onnx.ModelProto) -> str:
    if a.SerializeToString(deterministic=True) == b.SerializeToString(deterministic=True):
        return ""
    before, after = _operators(a), _operators(b)
    if before != after:
        return f"operators {dict(before - after)} became {dict(after - before)}"
    lines = unified_diff(str(a).splitlines(), str(b).splitlines(), n=0, lineterm="")
    return "\n".join([line for line in lines if line[:2] not in ("++", "--", "@@")][:SHOWN])


def _operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in scope.nodes(ir.from_proto(model)))
