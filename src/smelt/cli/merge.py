"""``smelt merge A B -o OUT``: one model of a decoder without and one with past."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smelt.cli.arguments import STANDARD, one_document, parse_dims, read_model, write_model
from smelt.cli.command import Json, Output, TrialDims, Verify, command, note, print_json
from smelt.cli.progress import progress
from smelt.errors import UsageError, listed

if TYPE_CHECKING:
    from smelt.merging.merge import Merged

SHOWN = 4
"""How many names of outputs a line lists."""


@command
def merge(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL MODEL",
            help="A decoder without past and one with past; - is standard input.",
        ),
    ],
    output: Output,
    condition: Annotated[
        str,
        typer.Option(
            "--condition", metavar="NAME", help="The name of the input that chooses the branch."
        ),
    ] = "use_cache_branch",
    repeat_caches: Annotated[
        bool,
        typer.Option(
            "--repeat-caches",
            help="Let the branch with past return the caches that it only reads, instead of empty"
            " tensors.",
        ),
    ] = False,
    verify: Verify = "off",
    dim: TrialDims = None,
    as_json: Json = False,
) -> None:
    """Merge a decoder without past and one with past into one model.

    The result holds all weights once. Its bool input use_cache_branch chooses the branch of a run,
    as in the merged decoders of optimum.

    Example: smelt merge decoder_model.onnx decoder_with_past_model.onnx -o merged.onnx
    """
    from smelt.merging.merge import merged_decoders

    one_document(as_json, output)
    names = _two(models)
    with progress(f"reading {models[0]} and {models[1]}") as shown:
        first, second = (read_model(model, as_is=True) for model in models)
        shown.say("merging")
        merged = merged_decoders(
            (first, second),
            names,
            condition=condition,
            caches="repeated" if repeat_caches else "empty",
            verify=verify != "off",
            dims=parse_dims(dim),
        )
        for report in merged.reports:
            report.check()
        shown.say(f"writing {output}")
        write_model(merged.model, output)
    if as_json:
        print_json({"schema": "smelt.merge/1", "output": output, **merged.to_json()})
    else:
        note("\n".join(_lines(merged, output, condition)))


def _two(models: list[str]) -> tuple[str, str]:
    """Return the names of both models in messages.

    Raises UsageError E674 for another number of models, E637 for two from standard input.
    """
    if len(models) != 2:
        raise UsageError(
            "E674",
            f"merge got {len(models)} model{'s'[: len(models) != 1]}",
            why="it makes one model of two: a decoder without past and one with past",
            fix="smelt merge decoder_model.onnx decoder_with_past_model.onnx -o merged.onnx",
        )
    if models == [STANDARD, STANDARD]:
        raise UsageError(
            "E637",
            "both models are read from standard input",
            why="standard input holds one model",
            fix="give a path for one of them",
        )
    first, second = (Path(model).name for model in models)
    return (models[0], models[1]) if first == second else (first, second)


def _lines(merged: Merged, output: str, condition: str) -> list[str]:
    """Return the lines about the result: its weights, its branches, and the comparisons."""
    before, after = merged.weights
    lines = [f"{output}: weights of {before:,} bytes became {after:,}"]
    if merged.not_computed:
        what = "empty" if merged.caches == "empty" else "the cached inputs"
        names = listed(merged.not_computed, SHOWN)
        lines.append(f"{what} while {condition} is true: {names}")
    lines += [f"verified {report.names[0]} {report.summary()}" for report in merged.reports]
    return lines
