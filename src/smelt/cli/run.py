"""``smelt run MODEL``: run a model on given inputs and show its outputs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli import completion
from smelt.cli.arguments import STANDARD, bind_dims, is_function, opened_source
from smelt.cli.command import Dim, Json, Seed, command, note, print_json
from smelt.cli.input_values import InputFiles, InputOption, InputValues, read_inputs
from smelt.cli.layout import table
from smelt.cli.progress import progress, size_of
from smelt.cli.tracing import Calling
from smelt.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smelt.candidate import Candidate
    from smelt.runtime.interface import Value
    from smelt.runtime.named_inputs import Chosen
    from smelt.runtime.value_summary import Summary

RunTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TARGET",
        help="Compile for this target first, and run the result.",
        autocompletion=completion.targets,
    ),
]


Runnable = Annotated[
    str,
    typer.Argument(
        metavar="MODEL|FOLDER|PKG.MOD:FN",
        help="A model, a folder that `smelt compile` wrote, a function, or - for standard input.",
    ),
]
OutputsFile = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write the outputs to this .npz file, or - for standard output.",
    ),
]


@command
def run(
    source: Runnable,
    inputs: InputOption = None,
    input_file: InputFiles = None,
    dim: Dim = None,
    target: RunTarget = None,
    seed: Seed = 0,
    output: OutputsFile = None,
    as_json: Json = False,
    *,
    calling: Calling,
) -> None:
    """Run a model once and print a summary of its outputs.

    Inputs that you do not give are random, and equal on each run. Symbolic dims that you do not
    give are 1.

    Example: smelt run model.onnx --input x=x.npy --dim B=4 -o y.npz
    """
    from smelt.candidate import candidate

    if as_json and output == STANDARD:
        raise UsageError(
            "E637",
            "the outputs and the JSON document of --json both go to standard output",
            why="a reader could not tell one from the other",
            fix="write the outputs to a file: -o FILE.npz",
        )
    values = read_inputs(inputs, input_file, function=is_function(source))
    opened = opened_source(source)
    dims = bind_dims(dim)
    with progress(f"reading {source}{size_of(source)}") as shown:
        chosen_source = candidate(opened, source, target, calling.call(*values.specs), dims)
        shown.say(f"compiling for {target}" if target else "opening")
        results, chosen = _run(chosen_source, opened, values, dims, seed)
        if output is not None:
            _write(output, results)
    _show(source, target, chosen, results, output, as_json)


def _run(
    source: Candidate, opened: Any, values: InputValues, dims: Mapping[str, int], seed: int
) -> tuple[Mapping[str, Value], Chosen | None]:
    """Run ``source`` once and return its results by name, and the inputs that were chosen.

    ``opened`` is the function or the path of ``source``. The inputs are None for a function that
    declares no inputs; it is called with the given arrays. Raises UsageError E637 if it comes with
    ``dims``.
    """
    from smelt.candidate import run_once

    if source.interface is not None:
        return run_once(source, values.by_name(source.interface), dims, seed)
    if dims:
        raise UsageError(
            "E637",
            "--dim is given for a function of arrays",
            why="arrays have sizes, and a function without types has no symbolic dims",
            fix="leave out --dim, or give types: --input 'f32[B,4]'",
        )
    arguments = values.arguments(opened, source.name)
    return source.named(source.open({})(*arguments)), None


def _write(output: str, results: Mapping[str, Value]) -> None:
    """Write the results that are arrays to a .npz file or standard output; name the others."""
    from smelt.ir.files import write_atomically
    from smelt.runtime.array_files import arrays_of, write_npz

    arrays = {k: a for name, value in results.items() for k, a in arrays_of(name, value).items()}
    left_out = [name for name, value in results.items() if not arrays_of(name, value)]
    if output == STANDARD:
        write_npz(sys.stdout.buffer, arrays)
        sys.stdout.buffer.flush()
    else:
        write_atomically(output, lambda stream: write_npz(stream, arrays))
    if left_out:
        note(f"not in {output}: {', '.join(left_out)} (no array)")


def _show(
    source: str,
    target: str | None,
    chosen: Chosen | None,
    results: Mapping[str, Value],
    output: str | None,
    as_json: bool,
) -> None:
    """Print a summary of each result as a table, or as one JSON document."""
    from smelt.runtime.value_summary import summarize

    summaries = [summary for name, value in results.items() for summary in summarize(name, value)]
    if as_json:
        made_up = chosen.made_up if chosen else {}
        print_json(
            {
                "schema": "smelt.run/1",
                "source": source,
                "target": target,
                "sizes": chosen.sizes if chosen else {},
                "made_up": {name: str(item) for name, item in made_up.items()},
                "outputs": [summary.to_json() for summary in summaries],
                "output": output,
            }
        )
        return
    text = table([_row(summary) for summary in summaries], ("output", "type", *_COLUMNS))
    show_text = note if output == STANDARD else print
    show_text(text)
    if chosen is not None:
        _note_inputs(chosen)


_COLUMNS = ("min", "max", "mean", "NaN", "inf")


def _row(summary: Summary) -> tuple[str, ...]:
    """Return one row of the table: name, type, smallest, largest and mean number, counts of NaN and
    inf."""
    numbers = (summary.minimum, summary.maximum, summary.mean)
    shown = ["-" if number is None else f"{number:.6g}" for number in numbers]
    return (summary.name, summary.type, *shown, str(summary.nans), str(summary.infinities))


def _note_inputs(chosen: Chosen) -> None:
    """Print on standard error the sizes and the inputs that were made up."""
    sizes = " ".join(f"{name}={size}" for name, size in chosen.sizes.items())
    made_up = ", ".join(f"{name} {item}" for name, item in chosen.made_up.items())
    parts = [f"sizes: {sizes}"] if sizes else []
    parts += [f"made up: {made_up}"] if made_up else []
    if parts:
        note("; ".join(parts))
