"""``smelt compile MODEL --target T -o DIR``: what a target makes of a model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from smelt.cli.arguments import (
    STANDARD,
    bind_dims,
    find_function,
    is_function,
    parse_options,
)
from smelt.cli.command import Dims, Json, Pipeline, Target, command, print_json, progress
from smelt.cli.layout import table
from smelt.cli.tracing import Input, Static, parse_inputs, parse_static
from smelt.errors import UsageError

OWN_OPTIONS = frozenset({"source", "target", "pipeline", "dims", "opset", "x64", "tracing"})


@command
def compile_(
    source: Annotated[str, typer.Argument(metavar="MODEL|PKG.MOD:FN", help="What to compile.")],
    output: Annotated[str, typer.Option("-o", "--output", help="The folder of the files.")],
    target: Target = "onnx",
    specs: Input = None,
    static: Static = None,
    dim: Dims = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An option of the target; repeatable."),
    ] = None,
    pipeline: Pipeline = "default",
    opset: Annotated[int | None, typer.Option(help="Raise the ONNX opset to this first.")] = None,
    x64: Annotated[bool, typer.Option("--x64", help="Trace with 64-bit types.")] = False,
    as_json: Json = False,
) -> None:
    """Compile an ONNX model or a JAX function for a target.

    --dim binds a symbolic dim to a size, which targets with planned memory need.
    """
    import sys

    from smelt.compiler import compile_model

    options = parse_options(option)
    clash = sorted(OWN_OPTIONS & options.keys())
    if clash:
        raise UsageError("E636", f"{clash[0]!r} is no option of a target", fix=f"--{clash[0]}")
    positional, keyword = parse_inputs(specs)
    values = parse_static(static)
    given: Any = source
    if is_function(source):
        given = find_function(source)
    elif source == STANDARD:
        given = sys.stdin.buffer.read()
    with progress(f"compiling {source} for {target}"):
        artifact = compile_model(
            given,
            *positional,
            target=target,
            pipeline=pipeline,
            dims=bind_dims(dim) or None,
            opset=opset,
            x64=x64,
            tracing={"kwargs": keyword, "static": values} if keyword or values else None,
            **options,
        )
        files = artifact.save(output)
    if as_json:
        paths = [str(path) for path in files]
        print_json({"schema": "smelt.compile/1", "files": paths, **artifact.report})
        return
    print(table([(len(data), name) for name, data in artifact.files.items()], ("bytes", "file")))
    for name, fact in artifact.plan.facts.items():
        print(f"{name.replace('_', ' ')}: {fact}")
