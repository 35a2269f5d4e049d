"""``smelt convert PKG.MOD:FN``: convert a JAX function to an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from smelt.cli.arguments import find_function, one_document, write_model
from smelt.cli.command import X64, Output, Pipeline, Target, command, note, print_json
from smelt.cli.comparing import called, compared
from smelt.cli.dry_run import show_dry_run
from smelt.cli.tracing import (
    ChannelsFirst,
    Constraints,
    Input,
    InputNames,
    InputParams,
    OutputNames,
    Static,
    parse_inputs,
    parse_names,
    parse_static,
)
from smelt.cli.watching import Watching
from smelt.cli.weights import Weights
from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.check.verification import Report
    from smelt.targets.base import Artifact


SAME_INPUTS = {*("kwargs", "static", "input_names", "output_names", "constraints", "x64", "strict")}
"""Trace options that leave the inputs of the model equal to those of the function."""


@command
def convert(
    function: Annotated[
        str,
        typer.Argument(metavar="PKG.MOD:FN|FILE", help="The function, or what jax.export wrote."),
    ],
    output: Output,
    specs: Input = None,
    static: Static = None,
    input_name: InputNames = None,
    output_name: OutputNames = None,
    input_param: InputParams = None,
    channels_first: ChannelsFirst = None,
    constraint: Constraints = None,
    opset: Annotated[int | None, typer.Option(help="ONNX opset of the result.")] = None,
    x64: X64 = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail on checks and prints, which are skipped otherwise."),
    ] = False,
    pipeline: Pipeline = "default",
    target: Target = "onnx",
    keep_bf16: Annotated[
        bool,
        typer.Option("--keep-bf16", help="Keep bfloat16 that ONNX Runtime has no kernels for."),
    ] = False,
    verify: Annotated[
        Literal["off", "final"],
        typer.Option(help="Compare the model with the function, or the file; then write it."),
    ] = "off",
    external_data: Annotated[
        bool, typer.Option("--external-data", help="Write the weights into a file of their own.")
    ] = False,
    *,
    weights: Weights,
    watching: Watching,
) -> None:
    """Trace a JAX function and save it as an optimized ONNX model.

    One --input for each argument of the function, in order; NAME=SPEC for those by keyword.
    """
    from smelt.compiler import compile_model
    from smelt.frontends.stablehlo.detect import is_exported

    if watching.dry_run:
        show_dry_run(pipeline, watching.as_json, target)
        return
    one_document(watching.as_json, output)
    if external_data and output == "-":
        raise UsageError("E637", "weights beside the model need a file, not standard output")
    positional, keyword = parse_inputs(specs)
    tracing = {
        "kwargs": keyword,
        "static": parse_static(static),
        "input_names": parse_names(input_name, "--input-name"),
        "output_names": parse_names(output_name, "--output-name"),
        "input_params": input_param or (),
        "channels_first": channels_first or (),
        "constraints": constraint or (),
        "x64": x64 or None,
        "strict": strict,
        **weights.tracing(),
    }
    kept: dict[str, Any] = {"keep_bfloat16": True} if keep_bf16 else {}
    found = function if is_exported(function) else find_function(function)
    with watching.over(f"tracing {function}", function, output) as seen:
        artifact = compile_model(
            found,
            *positional,
            target=target,
            pipeline=pipeline,
            opset=opset,
            tracing=tracing,
            observers=seen.observers,
            **weights.stored(),
            **kept,
        )
        seen.report.artifact = artifact
        verified = None
        if verify != "off":
            seen.shown.say("comparing")
            verified = _verified(found, positional, tracing, artifact)
            seen.report.verification = verified
            verified.check()
        seen.shown.say(f"writing {output}")
        write_model(artifact.model, output, **{"external_data": True} if external_data else {})
    if watching.as_json:
        evidence = {"verification": verified.to_json()} if verified else {}
        facts = {**artifact.report, **evidence, **seen.clock.facts()}
        print_json({"schema": "smelt.convert/1", "output": output, **facts})
    else:
        note(f"{output}: {len(artifact.model.graph)} nodes")
        if verified is not None:
            note(f"verified {verified.summary()}")


def _verified(
    source: Any, positional: Sequence[str], tracing: Mapping[str, Any], artifact: Artifact
) -> Report:
    """Compare ``artifact`` with the function, or with its trace, and return the Report.

    The trace is the reference if its inputs differ from the function's: parameters as inputs,
    images in another layout, or weights of a checkpoint.
    """
    from smelt.compiler import trace

    asked = {name for name, given in tracing.items() if given}
    reference: Any = source
    if callable(source) and asked <= SAME_INPUTS:
        reference = called(source, positional, tracing["kwargs"], tracing["static"], tracing["x64"])
    else:
        reference = trace(source, *positional, **tracing)
    return compared(reference, artifact, {}, None)
