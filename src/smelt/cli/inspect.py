"""``smelt inspect MODEL``: print the facts of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from smelt.cli.arguments import bind_dims, read_model
from smelt.cli.command import Dim, Json, Model, command, print_json
from smelt.cli.inspect_text import SHOWN, producer, sections
from smelt.cli.layout import printable
from smelt.cli.progress import progress, size_of
from smelt.errors import UsageError

if TYPE_CHECKING:
    import onnx_ir as ir

    from smelt.inspection import Facts


ListKind = Annotated[
    Literal["nodes", "weights"] | None,
    typer.Option(
        "--list",
        help="Print only the nodes or the weights: one per line, tabs between columns.",
    ),
]
Snippet = Annotated[
    bool,
    typer.Option("--snippet", help="Print Python code that asserts the structure of the model."),
]


@command
def inspect(
    model: Model,
    listed: ListKind = None,
    dim: Dim = None,
    snippet: Snippet = False,
    as_json: Json = False,
) -> None:
    """Show inputs, outputs, operators, work and weights of a model.

    A multiply-add counts as two FLOPs. Symbolic dims give formulas; --dim gives numbers.

    Example: smelt inspect model.onnx --dim B=1
    """
    from smelt.inspection import inspect as facts_of

    if listed and snippet:
        raise UsageError(
            "E637",
            "--list and --snippet are given together",
            fix="leave one out",
            why="each replaces the whole output",
        )
    with progress(f"reading {model}{size_of(model)}") as shown:
        read = read_model(model, as_is=True)
        shown.say("inferring shapes")
        text = _snippet(read) if snippet else ""
        if snippet and not as_json:
            print(text)
            return
        facts = facts_of(read, bind_dims(dim) or None, own=True)
        if snippet:
            print_json({**to_json(facts, listed=None), "snippet": text})
        elif as_json:
            print_json(to_json(facts, listed))
        elif listed:
            for row in ROWS[listed](facts):
                print("\t".join(map(printable, row)))
        else:
            for title, lines in sections(facts):
                print(title)
                if lines:
                    print("\n".join(f"  {line}" for line in lines.splitlines()))


def _snippet(model: ir.Model) -> str:
    """Return Python code that asserts the structure of ``model``."""
    from smelt.check import structure

    return structure.snippet(model)


def _weights(facts: Facts) -> Iterator[tuple[object, ...]]:
    """Yield rows of name, type, elements, bytes, and share of the bytes of all weights."""
    total = sum(item.bytes for item in facts.weights)
    for item in facts.weights:
        yield item.name, item.type, item.elements, item.bytes, round(item.share_of(total), 6)


def _nodes(facts: Facts) -> Iterator[tuple[object, ...]]:
    """Yield rows of name, operator, result types, MACs, FLOPs and bytes moved."""
    from smelt.ir.text import operator, type_of

    for item in facts.work:
        types = " ".join(type_of(value) for value in item.node.outputs)
        amounts = ["?" if a is None else a for a in (item.macs, item.flops, item.bytes)]
        yield item.node.name, operator(item.node), types, *amounts


ROWS = {"nodes": _nodes, "weights": _weights}
COLUMNS = {
    "nodes": ("name", "operator", "types", "macs", "flops", "bytes"),
    "weights": ("name", "type", "elements", "bytes", "share"),
}


def to_json(facts: Facts, listed: str | None) -> dict[str, Any]:
    """Return the facts as plain data; amounts are numbers, or formulas as text."""
    from smelt.ir.text import operator

    model, work = facts.model, facts.total
    document: dict[str, Any] = {
        "schema": "smelt.inspect/2",
        "name": model.graph.name or "(no name)",
        "ir_version": model.ir_version,
        "producer": producer(model),
        "opsets": {name or "ai.onnx": version for name, version in model.opset_imports.items()},
        "domains": dict(facts.domains),
        "inputs": [{"name": p.name, "type": str(p)} for p in facts.interface.inputs],
        "outputs": [{"name": p.name, "type": str(p)} for p in facts.interface.outputs],
        "symbols": [vars(symbol) for symbol in facts.symbols],
        "nodes": sum(facts.operators.values()),
        "operators": dict(facts.operators),
        "functions": [vars(function) for function in facts.functions],
        "parameters": sum(weight.elements for weight in facts.weights),
        "parameter_bytes": sum(weight.bytes for weight in facts.weights),
        "largest_weights": [vars(weight) for weight in facts.weights[:SHOWN]],
        "macs": work.macs.to_json(),
        "flops": work.flops.to_json(),
        "bytes_moved": work.bytes.to_json(),
        "work": _work(facts),
        "longest_chains": [
            {"nodes": len(chain), "operators": [operator(node) for node in chain]}
            for chain in facts.chains
        ],
        "quantized_nodes": [
            {"name": q.node.name, "format": q.format, "bits": q.bits} for q in facts.quantized
        ],
        "quantized_weights": [
            {"name": value.name, "bits": bits} for value, bits in facts.quantized_weights
        ],
        "problem": facts.problem,
    }
    if listed:
        rows = [tuple(map(_number_or_text, row)) for row in ROWS[listed](facts)]
        document["list"] = [dict(zip(COLUMNS[listed], row, strict=True)) for row in rows]
    return document


def _work(facts: Facts) -> dict[str, Any]:
    """Return the nodes, MACs, FLOPs and bytes for each operator."""
    return {
        name: {
            "nodes": item.nodes,
            "macs": item.macs.to_json(),
            "flops": item.flops.to_json(),
            "bytes": item.bytes.to_json(),
            "not_counted": item.unknown,
        }
        for name, item in facts.work_by_operator.items()
    }


def _number_or_text(item: object) -> object:
    """Return a formula as a number or text, and anything else unchanged."""
    from smelt.inspection.polynomial import Polynomial

    return item.to_json() if isinstance(item, Polynomial) else item
