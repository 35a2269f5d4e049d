"""``smelt convert PKG.MOD:FN``: convert a JAX function to an ONNX model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.arguments import STANDARD, bounded_dims, find_function, one_document, write_model
from smelt.cli.command import CompiledDims, Output, Target, Verify, command, note, print_json
from smelt.cli.comparing import check_result
from smelt.cli.dry_run import show_dry_run
from smelt.cli.half_types import HalfTypes
from smelt.cli.input_values import Samples, check_samples, read_samples
from smelt.cli.rewriting import Rewriting
from smelt.cli.tracing import (
    Calling,
    ChannelsFirst,
    Constraints,
    Input,
    InputNames,
    InputParams,
    OutputNames,
    parse_names,
)
from smelt.cli.watching import Watching
from smelt.cli.weights import Weights
from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.check.user_function import Call
    from smelt.check.verification import Report as VerificationReport
    from smelt.targets.base import Artifact


SAME_INPUTS = {*("kwargs", "static", "input_names", "output_names", "constraints", "x64", "strict")}
"""Trace options that leave the inputs of the model equal to those of the function."""


Traceable = Annotated[
    str,
    typer.Argument(
        metavar="PKG.MOD:FN|FILE",
        help="A JAX function as package.module:function, or a file that jax.export wrote.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Fail if the function has run-time checks or prints, instead of dropping them.",
    ),
]
ExternalData = Annotated[
    bool,
    typer.Option("--external-data", help="Write the weights into a second file next to the model."),
]


@command
def convert(
    function: Traceable,
    output: Output,
    specs: Input = None,
    input_name: InputNames = None,
    output_name: OutputNames = None,
    input_param: InputParams = None,
    channels_first: ChannelsFirst = None,
    constraint: Constraints = None,
    strict: Strict = False,
    target: Target = "onnx",
    verify: Verify = "off",
    dim: CompiledDims = None,
    samples: Samples = None,
    external_data: ExternalData = False,
    *,
    calling: Calling,
    rewriting: Rewriting,
    half_types: HalfTypes,
    weights: Weights,
    watching: Watching,
) -> None:
    """Convert a JAX function to an optimized ONNX model.

    Give one --input for each argument of the function.

    Example: smelt convert net:apply --input 'f32[B,64]' -o net.onnx
    """
    from smelt.compiler import compile_model
    from smelt.consumers.readers import Readers, readers
    from smelt.frontends.stablehlo.detect import is_exported

    if watching.dry_run:
        show_dry_run(rewriting.stages(), watching.as_json, target)
        return
    one_document(watching.as_json, output)
    _check_external_data(external_data, output)
    half = half_types.keyword(native=rewriting.keep_bf16)
    check_samples(samples, verify, measures=bool(half))
    sizes, call = bounded_dims(dim), calling.typed(specs)
    names = {
        "input_names": parse_names(input_name, "--input-name"),
        "output_names": parse_names(output_name, "--output-name"),
    }
    tracing = {
        **_trace_options(call, strict, input_param, channels_first, constraint),
        **names,
        **weights.tracing(),
    }
    traced = function if is_exported(function) else find_function(function)
    with watching.watched(f"tracing {function}", function, output) as seen:
        artifact = compile_model(
            traced,
            *call.positional,
            target=target,
            pipeline=rewriting.stages(),
            verify=verify if half or verify == "each" else "off",
            dims=sizes or None,
            samples=read_samples(samples) if half else None,
            tracing=tracing,
            observers=seen.observers,
            **half,
            **rewriting.of_target(),
            **weights.stored(),
        )
        seen.report.artifact = artifact
        verified = None
        if verify != "off" and not half:  # a conversion to half precision measures its error
            reference = partial(_reference, traced, call, tracing)
            verified = check_result(seen, artifact, reference, sizes, samples)
        seen.shown.say(f"writing {output}")
        where = {"external_data": True} if external_data else {}
        write_model(artifact.model, output, functions=rewriting.functions, **where)
    read_by = readers(artifact.model, rewriting.consumers) if rewriting.consumers else Readers()
    if watching.as_json:
        evidence = {"verification": verified.to_json()} if verified else {}
        facts = {**artifact.report, **evidence, **read_by.to_json(), **seen.clock.facts()}
        print_json({"schema": "smelt.convert/1", "output": output, **facts})
        return
    _note_result(artifact, output, read_by.lines(), verified)


def _note_result(
    artifact: Artifact,
    output: str,
    reader_lines: Iterable[str],
    verified: VerificationReport | None,
) -> None:
    """Print on standard error the number of nodes, ``reader_lines``, and the measured errors."""
    half_lines = artifact.report.get("half", {}).get("text", ())
    nodes = f"{output}: {len(artifact.model.graph)} nodes"
    note("\n".join([nodes, *reader_lines, *half_lines]))
    if verified is not None:
        note(f"verified {verified.summary()}")


def _check_external_data(external_data: bool, output: str) -> None:
    """Raise UsageError E637 for ``--external-data`` of a model on standard output."""
    if external_data and output == STANDARD:
        raise UsageError(
            "E637",
            "--external-data is given, and the model goes to standard output",
            why="the weights are written into a second file next to the model",
            fix="-o FILE",
        )


def _trace_options(
    call: Call,
    strict: bool,
    input_params: Sequence[str] | None,
    channels_first: Sequence[str] | None,
    constraints: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the options of ``smelt.trace`` that the command line gives."""
    return {
        "kwargs": call.keyword,
        "static": call.static,
        "input_params": input_params or (),
        "channels_first": channels_first or (),
        "constraints": constraints or (),
        "x64": call.x64,
        "strict": strict,
    }


def _reference(source: Any, call: Call, tracing: Mapping[str, Any]) -> Any:
    """Return the reference for the comparison: the function, or its trace.

    The trace is the reference if its inputs differ from the function's: parameters as inputs,
    images in another layout, or weights of a checkpoint.
    """
    from smelt.compiler import trace

    requested = {name for name, value in tracing.items() if value}
    if callable(source) and requested <= SAME_INPUTS:
        return call.bound(source)
    return trace(source, *call.positional, **tracing)
