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
    connect: Annotated[
        list[str] | None,
        typer.Option(
            "--connect",
            metavar="OUTPUT=INPUT",
            help="Run one model after the other: an output, or an input, of the first is this input"
            " of the second. Repeatable.",
        ),
    ] = None,
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
    tie_embeddings: Annotated[
        bool,
        typer.Option(
            "--tie-embeddings",
            help="Store an output projection that is its embedding transposed as a Transpose of"
            " the embedding, which ONNX Runtime computes when it opens the file.",
        ),
    ] = False,
    verify: Verify = "off",
    dim: TrialDims = None,
    as_json: Json = False,
) -> None:
    """Store the weights of several models once.

    Two decoders, without past and with past, become one model. Its bool input use_cache_branch
    chooses the branch of a run, as in the merged decoders of optimum. With --share, models stay
    files of their own and read their weights from one file, model.onnx_data. With --connect, one
    model of both computes the second from outputs of the first.

    Example: smelt merge decoder_model.onnx decoder_with_past_model.onnx -o merged.onnx
    """
    from smelt.merging.merge import Options, connected_models, merged_decoders
    from smelt.merging.share import share as write_shared

    one_document(as_json, output)
    of_branches = {
        "--condition": condition != "use_cache_branch",
        "--repeat-caches": repeat_caches,
    }
    if connect:
        _refuse_beside("--connect", {"--share": share, **of_branches})
    elif share:
        _refuse_beside("--share", {"--tie-embeddings": tie_embeddings, **of_branches})
    names = _names(models, share)
    with progress(f"reading {' and '.join(models)}") as shown:
        sources = [read_model(model, as_is=True) for model in models]
        shown.say(f"writing {output}")
        verified, sizes = verify != "off", parse_dims(dim)
        if share:
            by_name = dict(zip(names, sources, strict=True))
            facts = write_shared(by_name, output, verified=verified, dims=sizes)
        else:
            pair = (sources[0], sources[1]), (names[0], names[1])
            options = Options(verified, sizes, tie_embeddings)
            if connect:
                model, facts = connected_models(*pair, _pairs(connect), options)
            else:
                caches: Caches = "repeated" if repeat_caches else "empty"
                model, facts = merged_decoders(*pair, options, condition, caches)
            write_model(model, output)
    if as_json:
        print_json({"schema": "smelt.merge/1", "output": output, **facts.to_json()})
    else:
        note("\n".join(_lines(facts, output, condition)))


def _refuse_beside(option: str, others: Mapping[str, bool]) -> None:
    """Raise UsageError E637 for the first option of ``others`` that is set beside ``option``."""
    for other in [name for name, is_set in others.items() if is_set]:
        raise UsageError(
            "E637",
            f"{other} is given beside {option}",
            why=f"{option} makes nothing that {other} could change",
            fix=f"leave out {other}",
        )


def _pairs(items: Sequence[str]) -> dict[str, str]:
    """Return ``["hidden=x"]`` as ``{"hidden": "x"}``; raises UsageError E636 and E673."""
    pairs: dict[str, str] = {}
    for item in items:
        output, _, name = item.partition("=")
        if not output or not name:
            raise UsageError(
                "E636",
                f"--connect {item!r} is not OUTPUT=INPUT",
                why="it names an output of the first model and an input of the second",
                fix="for instance: --connect last_hidden_state=encoder_hidden_states",
            )
        if output in pairs:
            raise UsageError(
                "E673",
                f"the output {output!r} is connected twice",
                why="an output goes to one input",
                fix="connect it once",
            )
        pairs[output] = name
    return pairs


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
    lines += [
        f"{old} of the second model is now called {new}" for old, new in facts.renamed.items()
    ]
    lines += [f"verified {report.names[0]} {report.summary()}" for report in facts.reports]
    return lines
