"""``smelt optimize IN -o OUT``: run passes over an ONNX model and write the result."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.arguments import one_document, read_model, split_dims, write_model
from smelt.cli.command import Model, OptimizedDims, Output, Verify, command, note, print_json
from smelt.cli.dry_run import show_dry_run
from smelt.cli.half_types import HalfTypes
from smelt.cli.input_values import Samples, check_samples, read_samples
from smelt.cli.layout import table
from smelt.cli.progress import size_of
from smelt.cli.rewriting import Rewriting
from smelt.cli.watching import Watching

if TYPE_CHECKING:
    from smelt.check.pass_reports import Reports
    from smelt.passes.pipeline import Steps
    from smelt.passes.run import PassReport

MISSES_SHOWN = 12
"""How many near misses ``--stats`` shows, the most frequent first; ``--json`` has all."""


Stats = Annotated[
    bool, typer.Option("--stats", help="Print a table: what each pass changed, and its time.")
]
Provenance = Annotated[
    bool,
    typer.Option(
        "--provenance", help="Record in the metadata of each node which nodes it was made from."
    ),
]


@command
def optimize(
    model: Model,
    output: Output,
    verify: Verify = "off",
    dim: OptimizedDims = None,
    samples: Samples = None,
    stats: Stats = False,
    provenance: Provenance = False,
    *,
    rewriting: Rewriting,
    half_types: HalfTypes,
    watching: Watching,
) -> None:
    """Make an ONNX model faster and smaller.

    The file is replaced in one step at the end. If the command fails, an existing file stays.

    Example: smelt optimize model.onnx -o out.onnx --verify final
    """
    from smelt.cli.runtime_notes import runtime_notes
    from smelt.cli.summary import snapshot, summary
    from smelt.compiler import optimize_model
    from smelt.consumers.readers import readers
    from smelt.ir import scope
    from smelt.ir.provenance import write_to_metadata

    bound, dims = split_dims(dim)
    steps = _bound_first(bound, rewriting.stages())
    if watching.dry_run:
        show_dry_run(steps, watching.as_json)
        return
    one_document(watching.as_json, output)
    half = half_types.keyword(native=rewriting.keep_bf16)
    check_samples(samples, verify, measures=bool(half))
    doing = f"reading {model}{size_of(model)}"
    with watching.watched(doing, model, output, reads=[model]) as seen:
        sample_arrays = read_samples(samples)
        work = read_model(model, opset=rewriting.opset, keep_opset=True)
        seen.shown.say("inferring shapes")
        before = snapshot(work)
        reports = optimize_model(
            work,
            pipeline=steps,
            verify=verify,
            dims=dims,
            samples=sample_arrays,
            observers=seen.observers,
            **half,
            **rewriting.limits(),
        )
        seen.report.evidence = reports.evidence
        if provenance:
            write_to_metadata(scope.nodes(work))
        seen.shown.say(f"writing {output}")
        write_model(work, output, functions=rewriting.functions)
    after = snapshot(work)
    notes = list(runtime_notes(work))
    read_by = readers(work, rewriting.consumers)
    if watching.as_json:
        nodes = (before.nodes, after.nodes)
        facts = {"output": output, "nodes": nodes, "verified": verify, **_facts(reports)}
        facts |= {"notes": notes, **read_by.to_json()}
        print_json({"schema": "smelt.optimize/2", **facts, **seen.clock.facts()})
        return
    if stats:
        _note_stats(reports)
    note(f"{output}: {before.nodes:,} nodes became {after.nodes:,}")
    note(summary(before, after, model, output))
    _note_interface(reports, [*read_by.lines(), *notes])


def _note_stats(reports: list[PassReport]) -> None:
    """Print the table of ``--stats`` on standard error."""
    header = ("pass", "ms", "nodes", "rewrites", "rules")
    note(table(_rows(reports), header, stream=sys.stderr))


def _note_interface(reports: Reports, lines: Sequence[str]) -> None:
    """Print the interface changes, then ``lines``, then the verification on standard error."""
    changes = [str(change) for report in reports for change in report.stats.interface]
    if not changes:
        changes = ["opset, inputs and outputs: unchanged"]
    note("\n".join([*changes, *lines]))
    if reports.half is not None:
        note("\n".join(reports.half.lines()))
    if reports.evidence is not None:
        note(str(reports.evidence))


def _facts(reports: Reports) -> dict[str, Any]:
    """Return the verification, the passes that changed the model, and near misses as plain data."""
    return {
        "evidence": reports.evidence.to_json() if reports.evidence else None,
        **({"half": reports.half.to_json()} if reports.half else {}),
        "passes": [report.to_json() for report in reports if report.changed],
        "near_misses": _near_misses(reports),
    }


def _near_misses(reports: list[PassReport]) -> dict[str, Any]:
    """Return the near misses of the last run of each pass, by the text of the pass.

    Earlier runs are left out: a later run may have fulfilled the conditions that failed then.
    """
    last = {report.text: report.to_json()["near_misses"] for report in reports}
    return {text: misses for text, misses in last.items() if misses}


def _rows(reports: list[PassReport]) -> list[tuple[Any, ...]]:
    """Return the rows of ``--stats``.

    Each run that changed the model has a row; all other runs share one. Rows for near misses
    follow, of the last run of each pass, the most frequent first.
    """
    rows: list[tuple[Any, ...]] = []
    for report in (report for report in reports if report.changed):
        fired = ", ".join(f"{rule} x{count}" for rule, count in report.stats.fired.items())
        millis = f"{report.seconds * 1000:.1f}"
        rows.append((report.text, millis, report.nodes_after, report.stats.rewrites, fired))
    idle = [report for report in reports if not report.changed]
    if idle:
        millis = f"{sum(report.seconds for report in idle) * 1000:.1f}"
        rows.append((f"{len(idle)} runs without a change", millis, "", 0, ""))
    last = {report.text: report for report in reports}.values()
    missed = [
        (count, rule, why, report.stats.example[rule, why])
        for report in last
        for (rule, why), count in report.stats.missed.items()
    ]
    missed.sort(key=lambda miss: -miss[0])
    for count, rule, why, node in missed[:MISSES_SHOWN]:
        rows.append((f"near miss {rule}", "", "", count, f"{why}, as at {node}"))
    if len(missed) > MISSES_SHOWN:
        rows.append((f"{len(missed) - MISSES_SHOWN} other near misses (--json)", "", "", "", ""))
    return rows


def _bound_first(sizes: Mapping[str, int], pipeline: str) -> Steps:
    """Return the steps of ``pipeline``, after a step that binds dims to ``sizes`` if there are any.

    The passes then see a model without these symbolic dims.
    """
    from smelt.passes.interface.materialize_symbolic_dims import Sizes, materialize_symbolic_dims
    from smelt.passes.pipeline import Step, parse

    steps = parse(pipeline)
    if not sizes:
        return steps
    dims = tuple(f"{name}={size}" for name, size in sizes.items())
    return (Step(materialize_symbolic_dims, Sizes(dims)), *steps)
