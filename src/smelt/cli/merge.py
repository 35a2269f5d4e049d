"""``smelt merge A B -o OUT``: store the weights of several models once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smelt.cli.arguments import STANDARD, one_document, parse_dims, read_model, write_model
from smelt.cli.command import Json, TrialDims, Verify, command, note, print_json
from smelt.cli.progress import progress
from smelt.errors import UsageError, listed

if TYPE_CHECKING:
    import onnx_ir as ir

    from smelt.merging.facts import Facts
    from smelt.merging.outputs import Caches

SHOWN = 4
"""How many names of outputs a line lists."""


@command
def merge(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODELS",
            help="A decoder without past and one with past; with --share, any models.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE|FOLDER",
            help="The file to write, or - for standard output; with --share, a folder.",
        ),
    ],
    share: Annotated[
        bool,
        typer.Option(
            "--share",
            help="Keep the models apart, and write the weights of all into one file, equal ones"
            " once.",
        ),
    ] = False,
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
    """Store the weights of several models once.

    Two decoders, without past and with past, become one model. Its bool input use_cache_branch
    chooses the branch of a run, as in the merged decoders of optimum. With --share, models stay
    files of their own and read their weights from one file, model.onnx_data.

    Example: smelt merge decoder_model.onnx decoder_with_past_model.onnx -o merged.onnx
    """
    one_document(as_json, output)
    names = _names(models, share)
    with progress(f"reading {' and '.join(models)}") as shown:
        sources = [read_model(model, as_is=True) for model in models]
        shown.say(f"writing {output}")
        if share:
            facts = _shared(dict(zip(names, sources, strict=True)), output, verify, dim)
        else:
            caches: Caches = "repeated" if repeat_caches else "empty"
            facts = _merged(sources, names, output, condition, caches, verify, dim)
    if as_json:
        print_json({"schema": "smelt.merge/1", "output": output, **facts.to_json()})
    else:
        note("\n".join(_lines(facts, output, condition)))


def _shared(models: Mapping[str, ir.Model], output: str, verify: str, dim: TrialDims) -> Facts:
    """Write ``models`` with one file of weights into the folder ``output``."""
    from smelt.merging.share import share

    return share(models, output, verified=verify != "off", dims=parse_dims(dim))


def _merged(
    sources: Sequence[ir.Model],
    names: Sequence[str],
    output: str,
    condition: str,
    caches: Caches,
    verify: str,
    dim: TrialDims,
) -> Facts:
    """Write one model of both decoders to the file ``output``."""
    from smelt.merging.merge import merged_decoders

    model, facts = merged_decoders(
        (sources[0], sources[1]),
        (names[0], names[1]),
        condition=condition,
        caches=caches,
        verified=verify != "off",
        dims=parse_dims(dim),
    )
    write_model(model, output)
    return facts


def _names(models: Sequence[str], share: bool) -> list[str]:
    """Return the names of the models: their files, with folders if two names are equal.

    Raises UsageError E674 for a wrong number of models, E637 for models from standard input that
    cannot be told apart, and E669 for models that would be one file.
    """
    if len(models) < 2 or (len(models) > 2 and not share):
        raise UsageError(
            "E674",
            f"merge got {len(models)} model{'s'[: len(models) != 1]}",
            why="it makes one model of two; only with --share are there more",
            fix="smelt merge decoder_model.onnx decoder_with_past_model.onnx -o merged.onnx",
        )
    if models.count(STANDARD) > (0 if share else 1):
        raise UsageError(
            "E637",
            "a model for --share is read from standard input" * share
            or "both models are read from standard input",
            why="standard input holds one model, and has no name",
            fix="give a path for it",
        )
    names = [Path(model).name for model in models]
    if len(set(names)) == len(names):
        return names
    if share:
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(
            "E669",
            f"two models are called {twice!r}",
            why="each is written under its name into one folder",
            fix="rename one of them",
        )
    return list(models)


def _lines(facts: Facts, output: str, condition: str) -> list[str]:
    """Return the lines about the result: its weights, its branches, and the comparisons."""
    before, after = facts.weights
    lines = [f"{output}: weights of {before:,} bytes became {after:,}"]
    if facts.not_computed:
        what = "empty" if facts.caches == "empty" else "the cached inputs"
        names = listed(facts.not_computed, SHOWN)
        lines.append(f"{what} while {condition} is true: {names}")
    lines += [f"verified {report.names[0]} {report.summary()}" for report in facts.reports]
    return lines
