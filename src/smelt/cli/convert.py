"""``smelt convert PKG.MOD:FN``: a JAX function becomes an ONNX model."""

from __future__ import annotations

from typing import Annotated

import typer

from smelt.cli.arguments import find_function, write_model
from smelt.cli.command import Json, Pipeline, command, note, print_json, progress
from smelt.errors import UsageError

Input = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="SPEC", help="Type of an argument, as 'f32[B,28,28,1]'."),
]


@command
def convert(
    function: Annotated[str, typer.Argument(metavar="PKG.MOD:FN", help="The function.")],
    output: Annotated[str, typer.Option("-o", "--output", help="The file, or - for stdout.")],
    specs: Input = None,
    opset: Annotated[int | None, typer.Option(help="ONNX opset of the result.")] = None,
    x64: Annotated[bool, typer.Option("--x64", help="Trace with 64-bit types.")] = False,
    pipeline: Pipeline = "default",
    target: Annotated[str, typer.Option(help="The target that the model is for.")] = "onnx",
    as_json: Json = False,
) -> None:
    """Trace a JAX function and save it as an optimized ONNX model.

    One --input for each argument of the function, in order.
    """
    from smelt.compiler import compile_model

    if as_json and output == "-":
        raise UsageError("E637", "standard output cannot take both the model and --json")
    found = find_function(function)
    with progress(f"converting {function}"):
        artifact = compile_model(
            found, *(specs or ()), target=target, pipeline=pipeline, opset=opset, x64=x64
        )
        write_model(artifact.model, output)
    if as_json:
        print_json({"schema": "smelt.convert/1", "output": output, **artifact.report})
    else:
        note(f"{output}: {len(artifact.model.graph)} nodes")
