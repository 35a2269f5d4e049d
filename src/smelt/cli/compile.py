"""``smelt compile MODEL --target T -o DIR``: what a target makes of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from smelt.cli.arguments import (
    STANDARD,
    bind_dims,
    find_function,
    is_function,
    parse_options,
)
from smelt.cli.command import Dims, Json, Pipeline, Target, command, note, print_json
from smelt.cli.comparing import called, compared
from smelt.cli.dry_run import DryRun, show_dry_run
from smelt.cli.given import Samples
from smelt.cli.layout import table
from smelt.cli.printing import LINES, PrintAfter, PrintChanged, PrintLimit, printed
from smelt.cli.progress import progress, size_of
from smelt.cli.reporting import Report, reporting
from smelt.cli.timing import Timing, Trace, timed
from smelt.cli.tracing import Input, Static, parse_inputs, parse_static
from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.targets.base import Artifact

OWN_OPTIONS = frozenset(
    {
        "source",
        "target",
        "pipeline",
        "dims",
        "opset",
        "x64",
        "tracing",
        "observers",
        "fallback",
        "strict",
    }
)


@command
def compile_(
    source: Annotated[str, typer.Argument(metavar="MODEL|PKG.MOD:FN", help="What to compile.")],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="The folder of the files; for targets that make some."),
    ] = None,
    target: Target = "onnx",
    specs: Input = None,
    static: Static = None,
    dim: Dims = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An option of the target; repeatable."),
    ] = None,
    fallback: Annotated[
        str | None,
        typer.Option(metavar="TARGET", help="The target of what the first one cannot take."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse the model if one operator cannot be taken.")
    ] = False,
    pipeline: Pipeline = "default",
    verify: Annotated[
        Literal["off", "final"],
        typer.Option(help="Run the result here and compare it with the source; then write it."),
    ] = "off",
    samples: Samples = None,
    opset: Annotated[int | None, typer.Option(help="Raise the ONNX opset to this first.")] = None,
    x64: Annotated[bool, typer.Option("--x64", help="Trace with 64-bit types.")] = False,
    dry_run: DryRun = False,
    print_changed: PrintChanged = None,
    print_after: PrintAfter = None,
    print_limit: PrintLimit = LINES,
    timing: Timing = False,
    trace: Trace = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Compile an ONNX model or a JAX function for a target.

    --dim binds a symbolic dim to a size, which targets with planned memory need.
    """
    import sys

    from smelt.compiler import compile_model

    if samples and verify == "off":
        raise UsageError("E637", "--inputs are for a comparison", fix="add --verify final")
    if fallback and strict:
        raise UsageError("E637", "--strict forbids a --fallback", fix="leave one of them out")
    options = parse_options(option)
    clash = sorted(OWN_OPTIONS & options.keys())
    if clash:
        raise UsageError("E636", f"{clash[0]!r} is no option of a target", fix=f"--{clash[0]}")
    if dry_run:
        show_dry_run(pipeline, as_json, target, options)
        return
    positional, keyword = parse_inputs(specs)
    values = parse_static(static)
    given: Any = source
    if is_function(source):
        given = find_function(source)
    elif source == STANDARD:
        given = sys.stdin.buffer.read()
    with (
        printed(print_changed, print_after, print_limit) as printers,
        timed(timing, trace, as_json, source, report) as clock,
        reporting(report, source, STANDARD, reads=[source]) as page,
        progress(f"reading {source}{size_of(source)}") as shown,
    ):
        artifact = compile_model(
            given,
            *positional,
            target=target,
            pipeline=pipeline,
            dims=bind_dims(dim) or None,
            opset=opset,
            x64=x64,
            tracing={"kwargs": keyword, "static": values} if keyword or values else None,
            observers=[shown, *printers, *page.observers],
            fallback=fallback,
            strict=strict,
            **options,
        )
        page.report.artifact = artifact
        verified = None
        if verify != "off":
            shown.say("comparing")
            own = called(given, positional, keyword, values, x64) if callable(given) else given
            verified = compared(own, artifact, bind_dims(dim), samples)
            page.report.verification = verified
            verified.check()
        shown.say(f"writing {output}")
        files = _saved(artifact, output)
    if as_json:
        paths = [str(path) for path in files]
        evidence = {"verification": verified.to_json()} if verified else {}
        facts = {**artifact.report, **evidence, **clock.facts()}
        print_json({"schema": "smelt.compile/1", "files": paths, **facts})
        return
    if files and output is not None:
        rows = [(path.stat().st_size, str(path.relative_to(output))) for path in files]
        print(table(rows, ("bytes", "file")))
    else:
        print(f"{len(artifact.model.graph)} nodes; {_run(artifact)}")
    for name, fact in artifact.plan.facts.items():
        print(f"{name.replace('_', ' ')}: {fact}")
    if verified is not None:
        note(f"verified: {verified.summary()}")


def _saved(artifact: Artifact, output: str | None) -> list[Path]:
    """The files of ``artifact``, written; raises UsageError E637 if there is no folder for them."""
    from smelt.targets.registry import find_target

    if output is not None and artifact.files:
        return artifact.save(output)
    if artifact.files and not find_target(artifact.target).in_process:
        names = ", ".join(artifact.files)
        raise UsageError("E637", f"there is no folder for {names}", fix="-o FOLDER")
    return []


def _run(artifact: Artifact) -> str:
    """What one run on random inputs took, symbolic dims at 1, after a first one to warm up."""
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
