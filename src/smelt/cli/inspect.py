"""``smelt inspect MODEL``: what is in a model."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.arguments import read_model
from smelt.cli.command import Json, command, print_json
from smelt.cli.layout import table

if TYPE_CHECKING:
    import onnx_ir as ir


@command
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file, or - for stdin.")],
    snippet: Annotated[
        bool, typer.Option("--snippet", help="Print a test of the structure instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show inputs, outputs, opsets, operators, parameters and bytes of a model."""
    read = read_model(model, as_is=True)
    facts = describe(read)
    if snippet:
        from smelt.check import structure

        facts["snippet"] = structure.snippet(read)
    if as_json:
        print_json({"schema": "smelt.inspect/1", **facts})
        return
    if snippet:
        print(facts["snippet"])
        return
    print(f"{facts['name']}  (IR version {facts['ir_version']}, from {facts['producer']})")
    for word in ("inputs", "outputs"):
        print(word)
        print(_indent([(port["name"], port["type"]) for port in facts[word]]))
    print("opsets")
    print(_indent([(domain, version) for domain, version in facts["opsets"].items()]))
    print(f"operators ({facts['nodes']} nodes)")
    print(_indent(list(facts["operators"].items())))
    print(f"parameters {facts['parameters']:,} in {facts['parameter_bytes']:,} bytes")


def _indent(rows: list[tuple[Any, ...]]) -> str:
    return "\n".join(f"  {line}" for line in table(rows).splitlines()) or "  none"


def describe(model: ir.Model) -> dict[str, Any]:
    """The facts of a model as plain data; operators by falling count."""
    from smelt.ir import scope
    from smelt.ir.text import operator
    from smelt.runtime.interface import interface_of

    interface = interface_of(model)
    counts = Counter(map(operator, scope.nodes(model)))
    tensors = [
        value.const_value
        for graph in scope.graphs(model)
        for value in graph.initializers.values()
        if value.const_value is not None
    ]
    return {
        "name": model.graph.name or "(no name)",
        "ir_version": model.ir_version,
        "producer": " ".join(filter(None, (model.producer_name, model.producer_version))) or "?",
        "opsets": {domain or "ai.onnx": version for domain, version in model.opset_imports.items()},
        "inputs": [{"name": port.name, "type": str(port)} for port in interface.inputs],
        "outputs": [{"name": port.name, "type": str(port)} for port in interface.outputs],
        "nodes": counts.total(),
        "operators": dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        "functions": sorted(
            f"{function.domain}.{function.name}" for function in model.functions.values()
        ),
        "parameters": sum(int(tensor.size) for tensor in tensors),
        "parameter_bytes": sum(int(tensor.nbytes) for tensor in tensors),
    }
