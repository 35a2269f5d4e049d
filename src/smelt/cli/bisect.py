"""``smelt bisect MODEL``: which rewrite changes a result?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smelt.cli.arguments import STANDARD, parse_dims, read_model
from smelt.cli.command import Dims, Json, Pipeline, command, print_json
from smelt.cli.progress import progress
from smelt.cli.reporting import Report, reporting
from smelt.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    import onnx_ir as ir

    from smelt.passes.run import Observer, PassReport


@command
def bisect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file, or - for stdin.")],
    pipeline: Pipeline = "default",
    dim: Dims = None,
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Find the first pass and rewrite of a pipeline after which the model computes another result.

    The exit status is 1 if there is one.
    """
    from smelt.check.bisect import bisect as search
    from smelt.compiler import optimize_model

    def optimize(
        work: ir.Model, limit: int | None, watching: Iterable[Observer]
    ) -> list[PassReport]:
        also = page.observers if limit is None else []
        return optimize_model(work, pipeline=pipeline, rewrites=limit, observers=[*watching, *also])

    with reporting(report, model, STANDARD) as page, progress(f"bisecting {model}"):
        culprit = search(
            read_model(model, keep_opset=True), optimize, parse_dims(dim) or None, seed
        )
        page.report.culprit = culprit
    if as_json:
        found = culprit.to_json() if culprit is not None else None
        print_json({"schema": "smelt.bisect/1", "culprit": found})
    else:
        print(culprit if culprit is not None else "the pipeline keeps every result")
    if culprit is not None:
        raise typer.Exit(int(ExitStatus.MISMATCH))
