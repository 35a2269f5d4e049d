"""``smelt extract MODEL -o PART``: write the part of a model between given values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.arguments import one_document, read_model, write_model
from smelt.cli.command import Json, Model, Output, command, note, print_json
from smelt.cli.progress import progress, size_of
from smelt.errors import UsageError

if TYPE_CHECKING:
    import onnx_ir as ir

Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--inputs",
        metavar="NAME[,NAME]",
        help="The values that become inputs. By default, the inputs of the model that the"
        " outputs need.",
    ),
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--outputs",
        metavar="NAME[,NAME]",
        help="The values that become outputs. By default, the outputs of the model.",
    ),
]


@command
def extract(
    model: Model,
    output: Output,
    inputs: Inputs = None,
    outputs: Outputs = None,
    as_json: Json = False,
) -> None:
    """Write the part of a model between given values.

    Inputs and outputs of the part can be any values of the main graph. Weights and functions that
    the part does not use are left out.

    Example: smelt extract model.onnx --inputs h1 --outputs h5 -o part.onnx
    """
    from smelt.frontends.onnx.extract import extract as take_out
    from smelt.ir.extraction import named_values
    from smelt.runtime.interface import interface_of

    one_document(as_json, output)
    if not inputs and not outputs:
        raise UsageError(
            "E637",
            "neither --inputs nor --outputs is given",
            fix="--outputs NAME",
            why="without them, the part is the whole model",
        )
    with progress(f"reading {model}{size_of(model)}") as shown:
        read = read_model(model, as_is=True)
        before = len(read.graph)
        known = named_values(read.graph).keys()
        part = take_out(read, _names(inputs, known), _names(outputs, known))
        shown.say(f"writing {output}")
        write_model(part, output)
    if as_json:
        print_json(_document(part, before, output))
        return
    note(f"{output}: {len(part.graph)} of {before} nodes")
    interface = interface_of(part)
    for word, ports in (("takes", interface.inputs), ("returns", interface.outputs)):
        note(f"{word} {', '.join(f'{port.name}: {port}' for port in ports) or 'nothing'}")


def _document(part: ir.Model, nodes_before: int, output: str) -> dict[str, Any]:
    """Return the document of ``--json``: the nodes before and after, and the interface."""
    from smelt.runtime.interface import interface_of

    interface = interface_of(part)
    return {
        "schema": "smelt.extract/1",
        "output": output,
        "nodes": [nodes_before, len(part.graph)],
        "inputs": [{"name": port.name, "type": str(port)} for port in interface.inputs],
        "outputs": [{"name": port.name, "type": str(port)} for port in interface.outputs],
    }


def _names(items: Sequence[str] | None, known: Collection[str]) -> list[str] | None:
    """Return the names in ``items``, split at commas; None if there are none.

    An item that is a ``known`` name as a whole is not split, because names may contain commas.
    """
    if not items:
        return None
    names: list[str] = []
    for item in items:
        names += [item] if item in known else item.split(",")
    return names
