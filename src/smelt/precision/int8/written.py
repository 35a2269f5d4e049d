"""Write the chosen forms into a copy of the model, and measure its error in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import onnx_ir as ir

from smelt.ir.cloning import clone_model
from smelt.precision.data import Data
from smelt.precision.error import Metric
from smelt.precision.int8.bias import Means
from smelt.precision.int8.candidates import Candidate
from smelt.precision.int8.measure import outputs_of
from smelt.precision.int8.opened import Opened
from smelt.precision.int8.plan import make_plan
from smelt.precision.int8.qoperator import use_integer_operators
from smelt.precision.int8.settings import Settings
from smelt.precision.int8.write import write_plan
from smelt.precision.outputs import Outputs
from smelt.runtime.onnxruntime import OnnxRuntime


class Metrics(NamedTuple):
    """The metric by which a search chooses, and that of the last measurement.

    They differ by their labels only.
    """

    choosing: Metric
    last: Metric


@dataclass(frozen=True)
class Writing:
    """Writes the chosen forms of ``opened``.

    ``reference`` are the outputs of the source on ``data.held_out``, on which the reported error is
    measured.
    """

    opened: Opened
    settings: Settings
    data: Data
    metrics: Metrics
    reference: Outputs

    @classmethod
    def of(
        cls, model: ir.Model, opened: Opened, settings: Settings, data: Data, metrics: Metrics
    ) -> Writing:
        """Run the source ``model`` on the held-out samples if the search chose by other samples."""
        reference = opened.measure.reference
        if data.chosen_on:
            run = OnnxRuntime(clone_model(model), consume=True, optimized=True, threads=0)
            reference = outputs_of(run, data.held_out)
        return cls(opened, settings, data, metrics, reference)

    def write(self, chosen: Mapping[Candidate, str]) -> tuple[ir.Model, float]:
        """Return a copy of the model with the ``chosen`` forms, and its error in ONNX Runtime.

        Biases are corrected if that lowers the error on the samples by which the search chose. The
        error may be larger than that of the switched model: ONNX Runtime fuses what is written.
        """
        measure = self.opened.measure
        measure.say(f"checking {len(chosen):,} products in integers")
        written, run = self._made(chosen, {})
        corrected = {
            name for each, form in chosen.items() if form != "dynamic" for name in each.nodes
        } & self.opened.means.keys()
        if corrected:
            other, second = self._made(chosen, self.opened.means)
            errors = [
                measure.metric(measure.reference, outputs_of(each, measure.samples))
                for each in (run, second)
            ]
            if errors[1] < errors[0]:
                written, run = other, second
        outputs = outputs_of(run, self.data.held_out)
        return written, self.metrics.last(self.reference, outputs)

    def _made(self, chosen: Mapping[Candidate, str], means: Means) -> tuple[ir.Model, OnnxRuntime]:
        """Return a copy of the model with the ``chosen`` forms, and a session of it."""
        opened, settings = self.opened, self.settings
        written = clone_model(opened.variant.model)
        plan = make_plan(written, chosen, opened.measure.measured, links=settings.links)
        codes = opened.variant.codes
        write_plan(written, plan, opened.parameters, settings.format, codes, means)
        if settings.quant_format == "qoperator":
            use_integer_operators(written)
        return written, OnnxRuntime(clone_model(written), consume=True, optimized=True, threads=0)
