"""``smelt verify A B``: compare what two models, folders or functions compute."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from smelt.cli.arguments import STANDARD, find_function, is_function, parse_dims, read_model
from smelt.cli.command import X64, Dims, Json, Seed, command, print_json
from smelt.cli.comparing import called
from smelt.cli.given import Samples, read_samples
from smelt.cli.progress import progress
from smelt.cli.reporting import Report, reporting
from smelt.cli.timing import Timing, Trace, timed
from smelt.cli.tracing import Input, Static, parse_inputs, parse_static
from smelt.errors import ExitStatus, UsageError


@command
def verify(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A", help="A model, a folder of `smelt compile`, or a function as pkg.mod:fn."
        ),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="What should compute the same.")],
    dim: Dims = None,
    samples: Samples = None,
    seed: Seed = 0,
    rtol: Annotated[float | None, typer.Option(help="Relative error allowed.")] = None,
    atol: Annotated[float | None, typer.Option(help="Absolute error allowed.")] = None,
    ulp: Annotated[float | None, typer.Option(help="Units in the last place allowed.")] = None,
    specs: Input = None,
    static: Static = None,
    x64: X64 = False,
    edges: Annotated[
        bool, typer.Option("--edges", help="Also NaN, infinities, denormals.")
    ] = False,
    timing: Timing = False,
    trace: Trace = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Run two models, compiled folders or functions on the same inputs and compare them.

    Without a tolerance, the error that rounding explains is allowed, as measured on A. --input,
    --static and --x64 say how a function is called, as for `smelt convert`. The exit status is 1 if
    they differ.
    """
    from smelt.check.compare import Tolerance
    from smelt.check.verify import MODES
    from smelt.check.verify import verify as run

    if a == b == STANDARD:
        raise UsageError("E637", "only one model can come from standard input")
    bounds = (ulp, rtol, atol)
    if any(bound is not None and not bound >= 0 for bound in bounds):
        raise UsageError("E637", "a tolerance cannot be negative")
    if samples and dim:
        raise UsageError("E637", "--inputs says the sizes, so --dim cannot")
    if (specs or static or x64) and not (is_function(a) or is_function(b)):
        what = "--input, --static and --x64 say how a function is called, and both sides are models"
        raise UsageError("E637", what, fix="name the function: smelt verify pkg.mod:fn model.onnx")
    given = any(bound is not None for bound in bounds)
    with (
        timed(timing, trace, as_json, a, b, report) as clock,
        reporting(report, f"{b} against {a}", STANDARD, reads=[a, b]) as page,
        progress(f"comparing {b} with {a}"),
    ):
        how = Calling(specs, static, x64)
        sides = how.side(a), how.side(b)
        found = run(
            *sides,
            dims=parse_dims(dim),
            samples=read_samples(samples),
            seed=seed,
            tolerance=Tolerance(ulp or 0.0, rtol or 0.0, atol or 0.0) if given else None,
            modes=(*MODES, "edges") if edges else MODES,
            names=(a, b),
        )
        page.report.verification = found
        page.report.compare(*sides, (a, b))
    if as_json:
        print_json({**found.to_json(), **clock.facts()})
    else:
        print(found)
        same = found.accuracy() if found.approximation else "same"
        print(same if found.ok else "DIFFERENT", f"(allowed: {found.tolerance})")
    if not found.ok:
        raise typer.Exit(int(ExitStatus.MISMATCH))


@dataclass(frozen=True)
class Calling:
    """How functions are called: specs of the inputs, static arguments, 64-bit types."""

    specs: list[str] | None
    static: list[str] | None
    x64: bool

    def side(self, source: str) -> Any:
        """Return what ``source`` names: a function of arrays, the path of a folder, or a model."""
        if not is_function(source):
            return source if Path(source).is_dir() else read_model(source, as_is=True)
        function = find_function(source)
        if not (self.specs or self.static or self.x64):
            return function
        positional, keyword = parse_inputs(self.specs)
        return called(function, positional, keyword, parse_static(self.static), self.x64 or None)
