"""Measure the error of any choice of forms, in one session.

The session runs a model with a bool input for each candidate and form, which turns the form on; see
``switches.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from smelt.precision.batches import Sample
from smelt.precision.error import Metric
from smelt.precision.int8.candidates import Candidate
from smelt.precision.int8.plan import Plan, make_plan
from smelt.precision.int8.resume import Record
from smelt.precision.int8.switches import Switched
from smelt.precision.outputs import Outputs
from smelt.runtime.onnxruntime import OnnxRuntime

SEED = 0
"""The seed that chooses the samples on which single candidates are measured."""

Chosen = Mapping[Candidate, str]
"""The form of each candidate that is quantized."""


def outputs_of(run: OnnxRuntime, samples: Sequence[Sample]) -> Outputs:
    """Return the tensors among the outputs of ``run`` on each of ``samples``, by name."""
    names = [port.name for port in run.interface.outputs]
    return [
        {
            name: value
            for name, value in zip(names, run(*sample), strict=True)
            if isinstance(value, np.ndarray)
        }
        for sample in samples
    ]


@dataclass
class Measure:
    """Measures the errors of choices of forms against ``reference``, each at most once.

    ``reference`` has the outputs of ``model`` on ``samples``. ``run`` is a session of the model in
    ``switched``. ``measured`` are the values with a range, ``links`` is explained at ``make_plan``,
    ``say`` shows progress, ``runs`` counts the runs. ``record`` keeps the errors; ``label`` names
    this measure there. ``corrects``: products have corrected biases.
    """

    model: ir.Model
    switched: Switched
    run: OnnxRuntime
    samples: Sequence[Sample]
    reference: Outputs
    metric: Metric
    measured: frozenset[str]
    links: bool
    say: Callable[[str], None]
    record: Record = field(default_factory=Record)
    label: str = ""
    corrects: bool = False
    runs: int = 0

    def plan(self, chosen: Chosen) -> Plan:
        """Return the plan of the ``chosen`` forms."""
        return make_plan(self.model, chosen, self.measured, links=self.links)

    def error(self, chosen: Chosen, count: int | None = None) -> float:
        """Return the error with the ``chosen`` forms, on ``count`` of the samples or on all.

        A metric with ``needs_all``, such as one with labels, always gets all samples.
        """
        places = self._places(None if self.metric.needs_all else count)
        key = self._key(chosen, len(places))
        error = self.record.get(key)
        if error is None:
            error = self._measure(chosen, places)
            self.record.put(key, error)
        return error

    def _key(self, chosen: Chosen, count: int) -> str:
        """Return the name of the error of ``chosen`` on ``count`` samples."""
        forms = sorted((name, form) for each, form in chosen.items() for name in each.nodes)
        digest = hashlib.sha256(repr(forms).encode()).hexdigest()[:24]
        corrected = " corrected" if self.corrects else ""
        return f"{self.label}{corrected} {count} {digest}"

    def _places(self, count: int | None) -> Sequence[int]:
        """Return the indices of ``count`` random samples, the same each time; of all for None."""
        total = len(self.samples)
        if count is None or count >= total:
            return range(total)
        drawn = np.random.default_rng(SEED).permutation(total)[:count]
        return sorted(int(place) for place in drawn)

    def _measure(self, chosen: Chosen, places: Sequence[int]) -> float:
        """Return the error of the ``chosen`` forms on the samples at ``places``."""
        settings = self.switched.settings(chosen, self.plan(chosen), corrects=self.corrects)
        names = [port.name for port in self.run.interface.inputs]
        flags = [settings[name] for name in names if name in settings]
        results: list[Mapping[str, np.ndarray]] = []
        for place in places:
            values = self.run(*self.samples[place], *flags)
            self.runs += 1
            # The switched model has the outputs in the same order, but may rename them.
            outputs = zip(self.model.graph.outputs, values, strict=True)
            results.append({str(o.name): v for o, v in outputs if isinstance(v, np.ndarray)})
        return self.metric([self.reference[place] for place in places], results)
