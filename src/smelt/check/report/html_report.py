"""Collect what a run of smelt does and write it as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from smelt.check.report import numbers
from smelt.check.report.history import History
from smelt.check.report.memory import memory_of
from smelt.check.report.page import page_of
from smelt.check.report.pair import pair_of
from smelt.check.report.passes import (
    interface_of,
    keep_known_types,
    near_misses_of,
    operators_of,
    passes_of,
)
from smelt.check.report.picture import picture_of
from smelt.check.report.shown import shown
from smelt.check.report.spans import spans_of
from smelt.distribution import VERSION
from smelt.errors import SmeltError, UsageError
from smelt.ir.files import write_atomically
from smelt.passes.pipeline import Step
from smelt.passes.run import PassReport
from smelt.spans import Recorder
from smelt.targets.base import Artifact

if TYPE_CHECKING:
    from smelt.check.bisect import Culprit
    from smelt.check.verification import Report
    from smelt.check.verification_record import VerificationRecord

SCHEMA = "smelt.report/1"


class HtmlReport:
    """One page that shows the model before and after side by side, and what changed it.

    It is an observer of pipelines::

        report = smelt.HtmlReport("bert")
        smelt.optimize("bert.onnx", observers=[report])
        report.save("bert.html")

    The page is one file that loads nothing else. ``document`` returns its data. A report observes
    one run. It also shows what its attributes hold: the ``artifact`` of a target with its memory
    plan, the ``evidence`` of a verified pipeline, the ``verification`` of two models, the
    ``culprit`` of a bisection, the ``recorder`` of ``smelt.spans.recording()``, an ``error``, and
    in ``batch`` the document of a ``smelt.batch.Summary``.
    """

    def __init__(self, title: str = "") -> None:
        """Start an empty report with a ``title``."""
        self.title = title
        self.history = History()
        self.artifact: Artifact | None = None
        self.evidence: VerificationRecord | None = None
        self.verification: Report | None = None
        self.culprit: Culprit | None = None
        self.recorder: Recorder | None = None
        self.batch: Mapping[str, Any] | None = None
        self.error: SmeltError | None = None
        self._compared: tuple[ir.Model, ir.Model] | None = None
        self._sides = ("Before", "After")

    def before_pass(self, step: Step, model: ir.Model) -> None:
        """Record the model before the first pass."""
        self.history.before_pass(step, model)

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """Record the report of a pass."""
        self.history.after_pass(step, model, report)

    def compare(
        self, before: object, after: object, sides: tuple[str, str] = ("Before", "After")
    ) -> None:
        """Show two models side by side that no pipeline connects; ``sides`` are their titles.

        Does nothing unless both are ``ir.Model`` objects.
        """
        if isinstance(before, ir.Model) and isinstance(after, ir.Model):
            self._compared, self._sides = (before, after), sides

    def document(self) -> dict[str, Any]:
        """Return the data of the page as JSON types; long texts are cut."""
        written: dict[str, Any] = {
            "schema": SCHEMA,
            "version": VERSION,
            "title": shown(self.title, 120),
            "sides": [shown(name, 60) for name in self._sides],
            "passes": passes_of(self.history.runs),
            "near_misses": near_misses_of(self.history.runs),
        }
        graphs = self._graphs()
        if graphs is not None:
            before, after = graphs
            written |= {"before": before, "after": after, "operators": operators_of(*graphs)}
            written["interface"] = interface_of(before, after)
        written["memory"] = memory_of(self.artifact) if self.artifact is not None else None
        written["spans"] = spans_of(self.recorder) if self.recorder is not None else None
        written["numbers"] = self._numbers()
        written["batch"] = _shown_texts(self.batch)
        for key in ("culprit", "error"):
            record = getattr(self, key)
            written[key] = _shown_texts(record.to_json()) if record is not None else None
        return written

    def _graphs(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return both graphs to show: of the culprit, of the compared models, or of the
        pipeline.
        """
        if self.culprit is not None:
            return pair_of(*self.culprit.models)
        if self._compared is not None:
            return pair_of(*self._compared)
        model = self.history.model
        if self.artifact is not None:
            model = self.artifact.model
            self.history.selection = f"the selection of target {self.artifact.target}"
        if model is None:
            return None
        before, after = self.history.graphs(model)
        keep_known_types(before, after, self.history.runs)
        return before, after

    def _numbers(self) -> dict[str, Any] | None:
        """Return the compared outputs of two models or of a verified pipeline, None if nothing was
        verified.
        """
        if self.verification is not None:
            return numbers.of_report(self.verification)
        return numbers.of_evidence(self.evidence) if self.evidence is not None else None

    def to_html(self) -> str:
        """Return the page as HTML."""
        return page_of(self.document())

    def to_svg(self) -> str:
        """Return a picture of one layer before and after, as SVG that loads nothing else.

        The layer is a member of the repeated modules in which most nodes changed, else the whole
        model or its part that changed most. Raises UsageError E637 if the report has no model.
        """
        document = self.document()
        if "before" not in document:
            raise UsageError(
                "E637",
                "there is no model to draw",
                fix="run passes first",
                why="a picture shows a model before and after passes",
            )
        return picture_of(document)

    def _repr_html_(self) -> str:
        """Return the page in an iframe, for notebooks."""
        frame = 'style="width:100%;height:720px;border:1px solid #8884" sandbox="allow-scripts"'
        return f'<iframe {frame} srcdoc="{escape(self.to_html())}"></iframe>'

    def save(self, path: str | Path) -> Path:
        """Write the page to ``path`` atomically."""
        return write_atomically(path, self.to_html().encode())


def _shown_texts(item: Any) -> Any:
    """Return ``item`` with ``shown`` applied to all texts in it, at any depth."""
    if isinstance(item, str):
        return shown(item, 2000)
    if isinstance(item, Mapping):
        return {shown(str(key), 120): _shown_texts(value) for key, value in item.items()}
    return [_shown_texts(value) for value in item] if isinstance(item, list | tuple) else item
