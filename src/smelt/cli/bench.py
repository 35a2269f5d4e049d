"""``smelt bench A B``: time models against each other and test the difference against noise."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli import completion
from smelt.cli.arguments import STANDARD, bind_dims, is_function, opened_source
from smelt.cli.command import Dim, Json, command, note, print_json
from smelt.cli.input_values import InputFiles, InputOption, InputValues, read_inputs
from smelt.cli.kernels import bench_kernels
from smelt.cli.layout import table
from smelt.cli.progress import progress
from smelt.cli.tracing import Calling
from smelt.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smelt.benchmark import Benchmark
    from smelt.candidate import Candidate
    from smelt.check.user_function import Call
    from smelt.runtime.latency import Timing

SECONDS = 3.0
"""The time of all rounds without ``--runs`` and ``--seconds``."""

BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""The variables that limit the threads of BLAS libraries."""


Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="A [B ...]",
        help="Models, folders that `smelt compile` wrote, or functions. A@c is A compiled for c.",
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TARGET",
        help="Compile each model for this target first. Repeatable.",
        autocompletion=completion.targets,
    ),
]
Runs = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Stop after N rounds. A round runs each candidate once."),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        min=0.0, metavar="SECONDS", help="Stop after SECONDS. The default is 3 without --runs."
    ),
]
Threads = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="The threads of ONNX Runtime and BLAS. Target c uses one."
    ),
]
Kernels = Annotated[
    bool,
    typer.Option(
        "--kernels",
        help="Time the kernels of one folder of target c, compiled with --option profile=true.",
    ),
]


@command
def bench(
    sources: Sources,
    target: Targets = None,
    inputs: InputOption = None,
    input_file: InputFiles = None,
    dim: Dim = None,
    runs: Runs = None,
    seconds: Seconds = None,
    threads: Threads = 1,
    kernels: Kernels = False,
    as_json: Json = False,
    *,
    calling: Calling,
) -> None:
    """Time models on the same inputs and compare each with the first.

    The models take turns, so that noise of the machine hits all alike. A model that is not
    compiled runs in ONNX Runtime with its graph optimizations. A difference within the noise is
    reported as noise.

    Example: smelt bench model.onnx out.onnx model.onnx@c --dim B=1
    """
    _limit_blas_threads(threads)
    from smelt.benchmark import benchmark

    has_function = any(is_function(_split(source)[0]) for source in sources)
    values = read_inputs(inputs, input_file, function=has_function)
    sizes, call = bind_dims(dim), calling.call(*values.specs)
    rounds, limit = _limits(runs, seconds)
    if kernels:
        folder = _only_folder(sources, target)
        bench_kernels(folder, values, rounds=rounds, seconds=limit, as_json=as_json)
        return
    with progress("reading") as shown:
        candidates = _candidates(sources, target or [], call, sizes, threads, shown.say)
        result = benchmark(
            candidates,
            _values(candidates, values),
            sizes,
            rounds=rounds,
            seconds=limit,
            say=shown.say,
        )
    _show(result, threads, as_json)


def _limit_blas_threads(threads: int) -> None:
    """Set the number of threads of BLAS, unless the user has set it or BLAS is loaded already."""
    if "numpy" not in sys.modules:  # BLAS reads the variables when it is loaded
        for variable in BLAS:
            os.environ.setdefault(variable, str(threads))


def _limits(runs: int | None, seconds: float | None) -> tuple[int, float]:
    """Return the rounds and the seconds after which to stop; without options, ``SECONDS``."""
    from smelt.runtime.latency import MOST_ROUNDS

    default = float("inf") if runs else SECONDS
    return runs or MOST_ROUNDS, default if seconds is None else seconds


def _only_folder(sources: Sequence[str], targets: Sequence[str] | None) -> str:
    """Return the folder whose kernels are timed; raises UsageError E637 for other sources."""
    if len(sources) != 1 or targets:
        raise UsageError(
            "E637",
            "--kernels is given with --target or with several models",
            why="--kernels times the kernels of one folder that is already compiled",
            fix="smelt bench FOLDER --kernels",
        )
    return sources[0]


def _split(source: str) -> tuple[str, str | None]:
    """Return ``A@c`` as A and c, and any other source, or an existing file, as itself and None."""
    base, at, target = source.rpartition("@")
    if not at or not base or Path(source).exists():
        return source, None
    return base, target


def _candidates(
    sources: Sequence[str],
    targets: Sequence[str],
    call: Call,
    sizes: Mapping[str, int],
    threads: int,
    say: Any,
) -> list[Candidate]:
    """Open each source as a candidate, once for each target.

    Raises UsageError E637 for a target in both places, or if two models come from standard input.
    """
    from smelt.candidate import RunSettings, candidate
    from smelt.check.user_function import AS_IS

    settings = RunSettings(optimized=True, threads=threads)
    requests = [(source, *_split(source)) for source in sources]
    if [base for _, base, _ in requests].count(STANDARD) > 1:
        raise UsageError(
            "E637",
            "two models are read from standard input",
            why="standard input holds one model",
            fix="give a path for the others",
        )
    candidates: list[Candidate] = []
    for source, base, own_target in requests:
        if own_target is not None and targets:
            raise UsageError(
                "E637",
                f"{source!r} names a target, and --target is given",
                why="both would choose the target of this model",
                fix="leave one of them out",
            )
        say(f"reading {base}")
        opened = opened_source(base)
        called = call if is_function(base) else AS_IS
        requested: Sequence[str | None] = [own_target] if own_target else targets
        for target in requested or [None]:
            name = f"{base}@{target}" if target else base
            candidates.append(candidate(opened, name, target, called, sizes, settings))
    return candidates


def _values(candidates: Sequence[Candidate], input_values: InputValues) -> Mapping[str, Any]:
    """Return the given inputs by name.

    If no candidate declares names of inputs, the keys are positions: "0", "1", and so on.
    """
    for candidate in candidates:
        if candidate.interface is not None:
            return input_values.by_name(candidate.interface)
    values = [*input_values.ordered, *input_values.named.values()]
    return {str(index): value for index, value in enumerate(values)}


def _show(result: Benchmark, threads: int, as_json: bool) -> None:
    """Print the timings as a table, or as one JSON document."""
    pairs = list(zip(result.names, result.timings, strict=True))
    rounds = len(result.timings[0].seconds)
    if as_json:
        print_json(
            {
                "schema": "smelt.bench/1",
                "rounds": rounds,
                "threads": threads,
                "sizes": dict(result.sizes),
                "candidates": [{"name": name, **timing.to_json()} for name, timing in pairs],
            }
        )
        return
    rows = [
        (name, *_numbers(timing), _verdict(timing) if index else "")
        for index, (name, timing) in enumerate(pairs)
    ]
    print(table(rows, ("candidate", "min ms", "median ms", "spread", "ratio", "")))
    at = " ".join(f"{name}={size}" for name, size in result.sizes.items())
    note(
        f"{rounds} rounds{f' at {at}' if at else ''}, {threads} thread{'' if threads == 1 else 's'}"
    )


def _numbers(timing: Timing) -> tuple[str, ...]:
    """Return the cells of one row: shortest and median time in ms, spread, ratio to the first."""
    return (
        f"{1e3 * timing.minimum:.4g}",
        f"{1e3 * timing.median:.4g}",
        f"{100 * timing.spread:.0f}%",
        f"{timing.ratio:.3g}",
    )


def _verdict(timing: Timing) -> str:
    """Return in words whether a candidate is faster or slower than the first, or within noise.

    ``timing.differs`` is None if there are too few rounds for the test.
    """
    if timing.differs is None:
        return "too few rounds to tell"
    if not timing.differs:
        return "within noise of the first"
    return "slower than the first" if timing.ratio > 1 else "faster than the first"
