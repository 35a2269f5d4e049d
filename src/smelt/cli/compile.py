"""``smelt compile MODEL --target T -o DIR``: compile a model for a target and write its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.arguments import STANDARD, bounded_dims
from smelt.cli.command import CompiledDims, Target, Verify, command, note, print_json
from smelt.cli.comparing import check_result
from smelt.cli.decoding import Decoding
from smelt.cli.dry_run import show_dry_run
from smelt.cli.half_types import HalfTypes
from smelt.cli.input_values import Samples, check_samples, read_samples
from smelt.cli.layers import layers
from smelt.cli.layout import table
from smelt.cli.progress import size_of
from smelt.cli.rewriting import Rewriting
from smelt.cli.source import Source
from smelt.cli.target_options import target_options_of
from smelt.cli.tracing import Calling, Input
from smelt.cli.tuning import Tuning
from smelt.cli.watching import Watching
from smelt.cli.weights import Weights
from smelt.cli.within import Within
from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.check.verification import Report
    from smelt.consumers.readers import Readers
    from smelt.targets.base import Artifact
    from smelt.targets.phase_observer import PhaseObserver


Compilable = Annotated[
    str,
    typer.Argument(
        metavar="MODEL|PKG.MOD:FN",
        help="An ONNX file, - for standard input, or a JAX function as package.module:function.",
    ),
]
Folder = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FOLDER",
        help="The folder to write. The target host writes no files and needs none.",
    ),
]
TargetOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the target; `smelt explain TARGET` lists them. Repeatable.",
    ),
]
Fallback = Annotated[
    str | None,
    typer.Option(
        metavar="TARGET",
        help="Compile the nodes that --target does not support for this target.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Fail on nodes that the target does not support, and on run-time checks and"
        " prints of a function, instead of using a fallback or dropping them.",
    ),
]
PrintAfterPhase = Annotated[
    str | None,
    typer.Option(
        "--print-after-phase",
        metavar="PHASE,...",
        help="Print the result of the phases select, schedule, allocate or emit, or of all.",
    ),
]
VerifyPhases = Annotated[
    bool,
    typer.Option(
        "--verify-phases",
        help="Check the invariants of the graph, the Program and the memory plan after each phase.",
    ),
]


@command
def compile_(
    source: Compilable,
    output: Folder = None,
    target: Target = "onnx",
    specs: Input = None,
    dim: CompiledDims = None,
    option: TargetOptions = None,
    fallback: Fallback = None,
    strict: Strict = False,
    verify: Verify = "off",
    samples: Samples = None,
    print_after_phase: PrintAfterPhase = None,
    verify_phases: VerifyPhases = False,
    *,
    calling: Calling,
    rewriting: Rewriting,
    half_types: HalfTypes,
    weights: Weights,
    decoding: Decoding,
    limit: Within,
    tuning: Tuning,
    watching: Watching,
) -> None:
    """Compile an ONNX model or a JAX function for a target.

    Some targets, such as c, plan their memory: --dim gives them sizes or bounds of symbolic dims.

    Example: smelt compile model.onnx --target c --dim B=1 -o out
    """
    from smelt.consumers.readers import Readers, readers
    from smelt.targets.phase_observer import observe_phases

    half = half_types.keyword(native=rewriting.keep_bf16)
    check_samples(samples, verify, measures=bool(half or limit.within))
    if decoding.is_given():
        artifact = decoding.compiled(source, target, target_options_of(option), weights)
        decoding.tell(artifact, _saved(artifact, output), watching.as_json)
        return
    _check_fallback(fallback, strict)
    target_options = {**target_options_of(option), **weights.stored()}
    if watching.dry_run:
        show_dry_run(rewriting.stages(), watching.as_json, target, target_options)
        return
    sizes = bounded_dims(dim)
    to_compile = Source.read(source, specs, calling, weights.tracing())
    doing = f"reading {source}{size_of(source)}"
    observers = _phase_observers(print_after_phase, verify_phases, watching.print_limit)
    with (
        watching.watched(doing, source, STANDARD, reads=[source]) as seen,
        observe_phases(*observers),
    ):
        if half:
            half["samples"] = read_samples(samples)
        work = limit.quantized(to_compile, target_options, samples, seen.shown.say)
        make = tuning.compiler(seen.shown.say, target, fallback)
        artifact = make(
            work.model,
            *to_compile.call.positional,
            target=target,
            pipeline=rewriting.stages(),
            verify=verify if half or verify == "each" else "off",
            dims=sizes or None,
            x64=to_compile.call.x64,
            tracing=to_compile.tracing() or None,
            observers=seen.observers,
            fallback=fallback,
            strict=strict,
            **half,
            **rewriting.of_target(),
            **target_options,
        )
        seen.report.artifact = artifact
        verified = None
        if verify != "off" and not half:  # a conversion to half precision measures its error
            verified = check_result(seen, artifact, to_compile.reference, sizes, samples)
        seen.shown.say(f"writing {output}")
        files = _saved(artifact, output)
    read_by = readers(artifact.model, rewriting.consumers) if rewriting.consumers else Readers()
    if watching.as_json:
        _print_facts(artifact, files, verified, {**read_by.to_json(), **seen.clock.facts()})
        return
    _show(artifact, files, output)
    _note_checks(artifact, read_by, verified)


def _check_fallback(fallback: str | None, strict: bool) -> None:
    """Raise UsageError E637 if both ``--fallback`` and ``--strict`` are given."""
    if fallback and strict:
        raise UsageError(
            "E637",
            "--strict and --fallback are given together",
            fix="leave one of them out",
            why="--strict refuses nodes that --fallback would compile for another target",
        )


def _print_facts(
    artifact: Artifact,
    files: list[Path],
    verified: Report | None,
    more_facts: Mapping[str, Any],
) -> None:
    """Print the document of ``--json``: the report, the verification, and ``more_facts``."""
    evidence = {"verification": verified.to_json()} if verified else {}
    facts = {**artifact.report, **evidence, **more_facts}
    print_json({"schema": "smelt.compile/2", "files": [str(path) for path in files], **facts})


def _show(artifact: Artifact, files: list[Path], output: str | None) -> None:
    """Print one line for each file, the facts of the memory plan, and notes on standard error."""
    if files and output is not None:
        rows = [(path.stat().st_size, str(path.relative_to(output))) for path in files]
        print(table(rows, ("bytes", "file")))
    else:
        print(f"{len(artifact.model.graph)} nodes; {_run(artifact)}")
    for name, fact in artifact.plan.facts.items():
        if not isinstance(fact, list):  # lists are printed by --json and in reports
            print(f"{name.replace('_', ' ')}: {fact}")
    for line in layers(artifact.report.get("kernels", ())):
        print(line)
    tuned = artifact.report.get("tune")
    if tuned is not None:
        note(_tuned(tuned))
    for miss in artifact.report.get("select", {}).get("near_misses", ()):
        if miss["rule"].startswith("weights:int"):  # requested by --weights, but not applied
            left = f"{miss['count']} left as they were, such as {miss['node']!r}"
            note(f"{miss['rule']}: {left}: {miss['reason']}")


def _note_checks(artifact: Artifact, read_by: Readers, verified: Report | None) -> None:
    """Print on standard error which consumers read the model, and the errors that were measured."""
    half_lines = artifact.report.get("half", {}).get("text", ())
    verified_line = [] if verified is None else [f"verified {verified.summary()}"]
    for line in (*read_by.lines(), *half_lines, *verified_line):
        note(line)


def _tuned(report: Mapping[str, Any]) -> str:
    """Return one line about ``--tune``: the changes kept, and the time relative to the source.

    ``report`` is the part ``tune`` of report.json; ``tried`` lists the variants that were timed.
    """
    from smelt.tuning.search import COMPILED, NO_TIME

    tried = report["tried"]
    kept_changes = [one["what"] for one in tried if one["taken"] and one["what"] != COMPILED]
    comparison = report["against the source"]
    gain = f"; {comparison['ratio']:.3f} of the source's time" if comparison is not None else ""
    graph = "the graph of the source" if report["source taken"] else "the compiled graph"
    missed = sum(one.get("why") == NO_TIME for one in tried)
    unmeasured = f"; {NO_TIME} for {missed} more" if missed else ""
    changes = ", ".join([graph, *kept_changes])
    return f"tuned: {changes}, of {len(tried) - missed} tried{gain}{unmeasured}"


def _phase_observers(printed: str | None, verified: bool, limit: int) -> list[PhaseObserver]:
    """Return the observers that the options request; raises UsageError E601 for a bad phase."""
    from smelt.check.print_phases import PrintPhases, wanted_phases
    from smelt.targets.phase_observer import verify_phase

    observers: list[PhaseObserver] = []
    if printed is not None:
        observers.append(PrintPhases(note, wanted_phases(printed), limit))
    if verified:
        observers.append(verify_phase)
    return observers


def _saved(artifact: Artifact, output: str | None) -> list[Path]:
    """Write the files of ``artifact`` and return their paths.

    Raises UsageError E637 if the target makes files and no output folder is given.
    """
    from smelt.targets.registry import find_target

    if output is not None and artifact.files:
        return artifact.save(output)
    if artifact.files and not find_target(artifact.target).in_process:
        names = ", ".join(artifact.files)
        raise UsageError(
            "E637",
            f"no folder is given for {names}",
            fix="-o FOLDER",
            why="the target writes files",
        )
    return []


def _run(artifact: Artifact) -> str:
    """Run ``artifact`` twice on random inputs, and return a line with the time of the second run.

    Symbolic dims have the size 1. The first run is not timed, because it may still compile.
    """
    from time import perf_counter

    from smelt.runtime.inputs import random_inputs
    from smelt.runtime.interface import interface_of

    symbols = interface_of(artifact.model).symbols()
    inputs = random_inputs(artifact.model, dict.fromkeys(symbols, 1))
    artifact(*inputs)
    begin = perf_counter()
    artifact(*inputs)
    sizes = f" at {', '.join(f'{name}=1' for name in symbols)}" if symbols else ""
    return f"one run took {1e3 * (perf_counter() - begin):.3f} ms{sizes}"
