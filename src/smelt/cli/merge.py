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
    from smelt.merging.merge import Options
    from smelt.merging.outputs import Caches

SHOWN = 4
"""How many names of outputs a line lists."""


Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODELS",
        help="A decoder without past and one with past; with --share, any models.",
    ),
]
Destination = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE|FOLDER",
        help="The file to write, or - for standard output; with --share, a folder.",
    ),
]
Share = Annotated[
    bool,
    typer.Option(
        "--share",
        help="Keep the models apart, and write the weights of all into one file, equal ones once.",
    ),
]
Connect = Annotated[
    list[str] | None,
    typer.Option(
        "--connect",
        metavar="OUTPUT=INPUT",
        help="Run the second model after the first: OUTPUT, an output or an input of the first, is"
        " the INPUT of the second. Repeatable.",
    ),
]
Condition = Annotated[
    str,
    typer.Option(
        "--condition", metavar="NAME", help="The name of the input that chooses the branch."
    ),
]
RepeatCaches = Annotated[
    bool,
    typer.Option(
        "--repeat-caches",
        help="After the first step, return the caches that the second model only reads, instead of"
        " empty tensors.",
    ),
]
TieEmbeddings = Annotated[
    bool,
    typer.Option(
        "--tie-embeddings",
        help="If an output projection equals the transposed embedding, store a Transpose of the"
        " embedding instead. ONNX Runtime computes it when it opens the file.",
    ),
]


@command
def merge(
    models: Models,
    output: Destination,
    share: Share = False,
    connect: Connect = None,
    condition: Condition = "use_cache_branch",
    repeat_caches: RepeatCaches = False,
    tie_embeddings: TieEmbeddings = False,
    verify: Verify = "off",
    dim: TrialDims = None,
    as_json: Json = False,
) -> None:
    """Store the weights of several models once.

    A decoder without past and a decoder with past become one model. Its bool input
    use_cache_branch chooses the branch of a run, as in the merged decoders of optimum. With
    --share, each model stays a file, and all read their weights from one file, model.onnx_data.
    With --connect, the result runs the second model on outputs of the first.

    Example: smelt merge decoder_model.onnx decoder_with_past_model.onnx -o merged.onnx
    """
    from smelt.merging.merge import Options
    from smelt.merging.share import share as write_shared

    one_document(as_json, output)
    branch_options = {
        "--condition": condition != "use_cache_branch",
        "--repeat-caches": repeat_caches,
    }
    if connect:
        _refuse_with("--connect", {"--share": share, **branch_options})
    elif share:
        _refuse_with("--share", {"--tie-embeddings": tie_embeddings, **branch_options})
    names = _names(models, share)
    with progress(f"reading {' and '.join(models)}") as shown:
        sources = [read_model(model, as_is=True) for model in models]
        shown.say(f"writing {output}")
        verified, sizes = verify != "off", parse_dims(dim)
        if share:
            by_name = dict(zip(names, sources, strict=True))
            facts = write_shared(by_name, output, verified=verified, dims=sizes)
        else:
            options = Options(verified, sizes, tie_embeddings)
            caches: Caches = "repeated" if repeat_caches else "empty"
            facts = _write_merged(sources, names, output, options, connect, condition, caches)
    if as_json:
        print_json({"schema": "smelt.merge/1", "output": output, **facts.to_json()})
    else:
        note("\n".join(_lines(facts, output, condition)))


def _write_merged(
    sources: Sequence[ir.Model],
    names: Sequence[str],
    output: str,
    options: Options,
    connect: Sequence[str] | None,
    condition: str,
    caches: Caches,
) -> Facts:
    """Make one model of two ``sources``, write it to ``output``, and return facts about it.

    With ``connect``, the second runs after the first; else both are branches of an If.
    """
    from smelt.merging.merge import connected_models, merged_decoders

    both, both_names = (sources[0], sources[1]), (names[0], names[1])
    if connect:
        model, facts = connected_models(both, both_names, _pairs(connect), options)
    else:
        model, facts = merged_decoders(both, both_names, options, condition, caches)
    write_model(model, output)
    return facts


def _refuse_with(option: str, others: Mapping[str, bool]) -> None:
    """Raise UsageError E637 if one of ``others`` is set, which have no effect with ``option``.

    ``others`` maps the name of an option to whether the command line sets it.
    """
    for other in [name for name, is_set in others.items() if is_set]:
        raise UsageError(
            "E637",
            f"{other} and {option} are given together",
            why=f"{other} has no effect with {option}",
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
                why="--connect names an output of the first model and an input of the second",
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
            f"merge got {len(models)} model{'' if len(models) == 1 else 's'}",
            why="without --share, merge makes one model of two",
            fix="smelt merge decoder_model.onnx decoder_with_past_model.onnx -o merged.onnx",
        )
    if models.count(STANDARD) > (0 if share else 1):
        raise UsageError(
            "E637",
            "a model for --share is read from standard input"
            if share
            else "both models are read from standard input",
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
            why="both would be the same file in the folder",
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
