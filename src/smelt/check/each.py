"""Verify while compiling: after each pass, or once at the end.

Both are observers of a pipeline. A pass is held to what it declares: exact ones to what rounding
in other kernels explains, the others to the ulp they name beyond that.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.reproducer import write_reproducer
from smelt.check.witness import Witness, margin_of
from smelt.errors import Mismatch, SmeltError
from smelt.ir.interface_change import DimBound, InterfaceChange
from smelt.passes.base import Pass
from smelt.passes.pipeline import Fixpoint, Step, Steps, to_text
from smelt.passes.run import PassReport


class VerifyFinal:
    """Compares the result of a whole pipeline with its source; raises Mismatch E702."""

    def __init__(
        self, source: ir.Model, steps: Steps, dims: Dims | None = None, seed: int = 0
    ) -> None:
        self.source = source
        self.steps = steps
        self.dims = dims
        self.seed = seed
        self.witness = Witness(source, dims, seed)
        self.changes: list[InterfaceChange] = []

    def before_pass(self, step: Step, model: ir.Model) -> None:
        """Nothing to do before a pass."""

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """Note what was done to the interface, as asked for."""
        self.changes += report.stats.interface

    def finish(self, model: ir.Model) -> None:
        """Compare ``model`` with the source."""
        margin = margin_of(pass_.exactness for pass_ in passes_of(self.steps))
        bound = _bound(self.changes)
        if bound:
            self.witness = Witness(self.source, {**(self.dims or {}), **bound}, self.seed)
        self.witness.adapt(self.changes, margin)
        problems, _ = self.witness.judge(model, margin)
        if problems:
            what, text = "the pipeline changed the result", to_text(self.steps)
            raise _mismatch(
                "E702", what, problems, source=self.source, pipeline=text, seed=self.seed
            )


class VerifyEach:
    """Compares the model after each pass with the model before it.

    Raises Mismatch E701, which names the first pass that changes a result and a reproducer.
    """

    def __init__(
        self, source: ir.Model, steps: Steps, dims: Dims | None = None, seed: int = 0
    ) -> None:
        self.dims = dims
        self.seed = seed
        self.witness = Witness(source, dims, seed)
        self._before = source

    def before_pass(self, step: Step, model: ir.Model) -> None:
        """Keep the model as it is, for the reproducer; tensors are shared."""
        self._before = model.clone()

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """Compare, if the pass changed anything."""
        if not report.changed:
            return
        changes, margin = report.stats.interface, margin_of([step.pass_.exactness])
        bound = _bound(changes)
        if bound:
            self.dims = {k: v for k, v in (self.dims or {}).items() if k not in bound}
            self.witness = Witness(self._before, {**self.dims, **bound}, self.seed)
        self.witness.adapt(changes, margin)
        problems, outputs = self.witness.judge(model, margin)
        if problems:
            rules = ", ".join(f"{rule} x{n}" for rule, n in sorted(report.stats.fired.items()))
            places = [f"rules that fired: {rules}"] if rules else []
            what = f"pass {step.pass_.spelling} changed the result"
            error = _mismatch(
                "E701",
                what,
                places + problems,
                source=self._before,
                pipeline=str(step),
                seed=self.seed,
            )
            error.why = f"it declares itself {step.pass_.exactness}"
            raise error
        self.witness.follow(outputs)

    def finish(self, model: ir.Model) -> None:
        """Nothing is left to compare: every pass that changed the model has been."""


def _bound(changes: Iterable[InterfaceChange]) -> dict[str, int]:
    return {change.name: change.size for change in changes if isinstance(change, DimBound)}


def passes_of(steps: Steps) -> Iterator[Pass]:
    for step in steps:
        if isinstance(step, Fixpoint):
            yield from passes_of(step.steps)
        else:
            yield step.pass_


def _mismatch(
    code: str, what: str, places: list[str], *, source: ir.Model, pipeline: str, seed: int
) -> SmeltError:
    error = Mismatch(code, what, at=places[:8])
    folder = Path(tempfile.mkdtemp(prefix="smelt-reproducer-"))
    command = ("bisect", "model.onnx", "--pipeline", "@pipeline.txt", "--seed", str(seed))
    write_reproducer(folder, command, model=source, pipeline=pipeline, error=error)
    error.fix = f"`sh {folder}/repro.sh` replays it and names the rewrite at fault"
    return error
