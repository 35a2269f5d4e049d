"""``smelt verify A B``: do two computations agree?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from smelt.cli.arguments import STANDARD, find_function, is_function, parse_dims, read_model
from smelt.cli.command import Dims, Json, Seed, command, print_json
from smelt.cli.given import Samples, read_samples
from smelt.cli.progress import progress
from smelt.cli.reporting import Report, reporting
from smelt.cli.timing import Timing, Trace, timed
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
    edges: Annotated[
        bool, typer.Option("--edges", help="Also NaN, infinities, denormals.")
    ] = False,
    timing: Timing = False,
    trace: Trace = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Run two models, compiled folders or functions on the same inputs and compare them.

    Without a tolerance, what rounding explains is allowed, as measured on A. The exit status is
    1 if they differ.
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
    given = any(bound is not None for bound in bounds)
    with (
        timed(timing, trace, as_json, a, b, report) as clock,
        reporting(report, f"{b} against {a}", STANDARD, reads=[a, b]) as page,
        progress(f"comparing {b} with {a}"),
    ):
        sides = _side(a), _side(b)
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


def _side(source: str) -> Any:
    if is_function(source):
        return find_function(source)
    return source if Path(source).is_dir() else read_model(source, as_is=True)
