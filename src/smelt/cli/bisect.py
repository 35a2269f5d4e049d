"""``smelt bisect MODEL``: find the rewrite that changes a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smelt.cli.arguments import STANDARD, one_document, parse_dims, read_model, write_model
from smelt.cli.command import INTERRUPTED, Json, Model, Seed, TrialDims, command, note, print_json
from smelt.cli.progress import progress
from smelt.cli.reporting import Report, reporting
from smelt.cli.rewriting import Rewriting
from smelt.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import onnx_ir as ir

    from smelt.check.bisect import Culprit, Optimize
    from smelt.check.reduce import Reduction
    from smelt.passes.run import Observer, PassReport


ReducedFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Also write the smallest model on which the pass is wrong."),
]


@command
def bisect(
    model: Model,
    dim: TrialDims = None,
    seed: Seed = 0,
    reduce: ReducedFile = None,
    report: Report = None,
    as_json: Json = False,
    *,
    rewriting: Rewriting,
) -> None:
    """Find the rewrite that makes a model compute wrong numbers.

    The exit status is 1 if there is such a rewrite.

    Example: smelt bisect model.onnx --dim B=2 --reduce small.onnx
    """
    from smelt.check.bisect import bisect as search
    from smelt.check.bisect import still_wrong
    from smelt.check.reduce import reduce as shrink

    one_document(as_json, reduce)
    dims, reduction = parse_dims(dim) or None, None
    with (
        reporting(report, model, STANDARD, reduce, reads=[model]) as page,
        progress(f"bisecting {model}") as shown,
    ):
        source = read_model(model, opset=rewriting.opset, keep_opset=True)
        culprit = search(source, _optimizer(rewriting, page.observers), dims, seed)
        page.report.culprit = culprit
        if culprit is not None and reduce is not None:
            check = still_wrong(culprit, _optimizer(rewriting, []), dims, seed)
            reduction = shrink(source, check, say=shown.say)
            write_model(reduction.model, reduce, keep_bare=True)
    _show(culprit, reduction, reduce, as_json)
    if reduction is not None:
        note(f"{reduce}: {reduction}")
        if reduction.interrupted:
            raise typer.Exit(INTERRUPTED)
    if culprit is not None:
        raise typer.Exit(int(ExitStatus.MISMATCH))


def _show(
    culprit: Culprit | None, reduction: Reduction | None, reduced_file: str | None, as_json: bool
) -> None:
    """Print the wrong rewrite, if there is one, and with ``--json`` also the reduction."""
    if as_json:
        culprit_facts = culprit.to_json() if culprit is not None else None
        reduced = {"reduced": {"output": reduced_file, **reduction.to_json()}} if reduction else {}
        print_json({"schema": "smelt.bisect/1", "culprit": culprit_facts, **reduced})
        return
    show_text = note if reduced_file == STANDARD else print
    show_text(str(culprit) if culprit is not None else "the pipeline keeps every result")


def _optimizer(rewriting: Rewriting, page_observers: Sequence[Observer]) -> Optimize:
    """Return the function that runs the pipeline of the command line on a model.

    The search runs the pipeline many times, each time with another limit of rewrites. Only the run
    without a limit is the one that a user knows, so only that one is shown to ``page_observers``,
    which fill the page of ``--report``.
    """
    from smelt.compiler import optimize_model

    def optimize(
        work: ir.Model, limit: int | None, observers: Iterable[Observer]
    ) -> list[PassReport]:
        """Optimize ``work`` by at most ``limit`` rewrites; return the reports of all passes."""
        return optimize_model(
            work,
            pipeline=rewriting.stages(),
            rewrites=limit,
            observers=[*observers, *(page_observers if limit is None else ())],
            **rewriting.limits(),
        )

    return optimize
