"""``smelt verify A B``: compare what two models, folders or functions compute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.arguments import STANDARD, find_function, is_function, parse_dims, read_model
from smelt.cli.command import Json, Seed, TrialDims, command, print_json
from smelt.cli.input_values import Samples, read_samples
from smelt.cli.progress import progress
from smelt.cli.reporting import Report, reporting
from smelt.cli.timing import Timing, Trace, timed
from smelt.cli.tracing import Calling, Input
from smelt.errors import ExitStatus, UsageError
from smelt.frontends.coreml.detect import is_core_ml

if TYPE_CHECKING:
    from smelt.check.compare import Tolerance
    from smelt.check.user_function import Call
    from smelt.check.verification import Report as VerificationReport


Reference = Annotated[
    str,
    typer.Argument(
        metavar="A",
        help="The reference: a model, a folder that `smelt compile` wrote, or a function as"
        " package.module:function.",
    ),
]
Compared = Annotated[
    str, typer.Argument(metavar="B", help="The model, folder or function to compare with A.")
]
Rtol = Annotated[float | None, typer.Option(metavar="NUMBER", help="The relative error to allow.")]
Atol = Annotated[float | None, typer.Option(metavar="NUMBER", help="The absolute error to allow.")]
Ulp = Annotated[
    float | None,
    typer.Option(metavar="NUMBER", help="The error to allow in units in the last place (ulp)."),
]
Edges = Annotated[
    bool,
    typer.Option(
        "--edges", help="Also compare on inputs with NaN, infinities and denormal numbers."
    ),
]


@command
def verify(
    a: Reference,
    b: Compared,
    dim: TrialDims = None,
    samples: Samples = None,
    seed: Seed = 0,
    rtol: Rtol = None,
    atol: Atol = None,
    ulp: Ulp = None,
    specs: Input = None,
    edges: Edges = False,
    timing: Timing = False,
    trace: Trace = None,
    report: Report = None,
    as_json: Json = False,
    *,
    calling: Calling,
) -> None:
    """Compare what two models, folders or functions compute.

    Both run on the same inputs. Without a tolerance, an error is allowed that rounding explains:
    it is measured on A, by moving its inputs by one ulp. The exit status is 1 if they differ.

    Example: smelt verify model.onnx out.onnx --dim B=1,8
    """
    from smelt.check.verify import MODES
    from smelt.check.verify import verify as run

    is_called = bool(specs) or calling != Calling()
    _check_sides(a, b, is_called, bool(samples and dim))
    tolerance = _tolerance(ulp, rtol, atol)
    with (
        timed(timing, trace, as_json, a, b, report) as clock,
        reporting(report, f"{b} against {a}", STANDARD, reads=[a, b]) as page,
        progress(f"comparing {b} with {a}"),
    ):
        call = calling.typed(specs)
        sides = _side(a, call), _side(b, call)
        verification = run(
            *sides,
            dims=parse_dims(dim),
            samples=read_samples(samples),
            seed=seed,
            tolerance=tolerance,
            modes=(*MODES, "edges") if edges else MODES,
            names=(a, b),
        )
        page.report.verification = verification
        page.report.compare(*sides, (a, b))
    if as_json:
        print_json({**verification.to_json(), **clock.facts()})
    else:
        _show(verification)
    if not verification.ok:
        raise typer.Exit(int(ExitStatus.MISMATCH))


def _show(verification: VerificationReport) -> None:
    """Print the errors of each output, then ``same`` or ``DIFFERENT`` with the tolerance.

    A model of lower precision is not the same; its accuracy is printed instead.
    """
    print(verification)
    same = verification.accuracy() if verification.approximation else "same"
    print(same if verification.ok else "DIFFERENT", f"(allowed: {verification.tolerance})")


def _check_sides(a: str, b: str, is_called: bool, has_samples_and_sizes: bool) -> None:
    """Raise UsageError E637 for options that contradict each other or the sides.

    ``is_called`` is True if options say how a function is called.
    """
    if a == b == STANDARD:
        raise UsageError(
            "E637",
            "both sides are read from standard input",
            why="standard input holds one model",
            fix="give a path for one of them",
        )
    if has_samples_and_sizes:
        raise UsageError(
            "E637",
            "--inputs and --dim are given together",
            why="the arrays of --inputs have sizes already",
            fix="leave out --dim",
        )
    if is_called and not (is_function(a) or is_function(b)):
        raise UsageError(
            "E637",
            "--input, --static or --x64 is given for two models",
            fix="name the function: smelt verify pkg.mod:fn model.onnx",
            why="these options say how a function is called",
        )


def _tolerance(ulp: float | None, rtol: float | None, atol: float | None) -> Tolerance | None:
    """Return the tolerance that the options give; None if no option is given.

    Raises UsageError E637 for a negative number or NaN.
    """
    from smelt.check.compare import Tolerance

    given = [number for number in (ulp, rtol, atol) if number is not None]
    if not given:
        return None
    if not all(number >= 0 for number in given):
        raise UsageError(
            "E637",
            "a tolerance is negative, or NaN",
            why="an error is never below zero, so every result would differ",
            fix="--rtol 1e-5",
        )
    return Tolerance(ulp or 0.0, rtol or 0.0, atol or 0.0)


def _side(source: str, call: Call) -> Any:
    """Return what ``source`` names: a function of arrays, the path of a folder, or a model."""
    from smelt.check.user_function import AS_IS

    if not is_function(source):
        is_saved = Path(source).is_dir() and not is_core_ml(source)
        return source if is_saved else read_model(source, as_is=True)
    function = find_function(source)
    return function if call == AS_IS else call.bound(function)
