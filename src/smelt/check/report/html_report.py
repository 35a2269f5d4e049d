"""What a run of smelt did, collected as it goes, for one page of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from smelt.check.report.history import History
from smelt.check.report.memory import memory_of
from smelt.check.report.page import page_of
from smelt.check.report.passes import interface_of, near_misses_of, operators_of, passes_of
from smelt.check.report.shown import shown
from smelt.errors import SmeltError
from smelt.ir.files import write_atomically
from smelt.passes.pipeline import Step
from smelt.passes.run import PassReport
from smelt.targets.base import Artifact

if TYPE_CHECKING:
    from smelt.check.evidence import Evidence

SCHEMA = "smelt.report/1"


class HtmlReport:
    """One page that shows the model before and after, side by side, and what made the difference.

    It is an observer of pipelines::

        report = smelt.HtmlReport("bert")
        smelt.optimize("bert.onnx", observers=[report])
        report.save("bert.html")

    The page is one file that reads nothing else. ``document`` gives its data. A report watches one
    run; what it is given beside that is shown too: ``artifact``, ``evidence`` and ``error``.
    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.history = History()
        self.artifact: Artifact | None = None
        self.evidence: Evidence | None = None
        self.error: SmeltError | None = None

    def before_pass(self, step: Step, model: ir.Model) -> None:
        """Keep the model as the first pass finds it."""
        self.history.before_pass(step, model)

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """Note what a pass did."""
        self.history.after_pass(step, model, report)

    def document(self) -> dict[str, Any]:
        """The data of the page: plain, finite, and without any text that is very long."""
        written: dict[str, Any] = {
            "schema": SCHEMA,
            "version": version("smelt"),
            "title": shown(self.title, 120),
            "passes": passes_of(self.history.runs),
            "near_misses": near_misses_of(self.history.runs),
        }
        model = self.artifact.model if self.artifact is not None else self.history.model
        if model is not None:
            before, after = self.history.graphs(model)
            written |= {"before": before, "after": after}
            written["operators"] = operators_of(before, after)
            written["interface"] = interface_of(before, after, self.history.runs)
        if self.artifact is not None:
            written["memory"] = memory_of(self.artifact)
        if self.evidence is not None:
            written["evidence"] = self.evidence.to_json()
        if self.error is not None:
            written["error"] = _shown(self.error.to_json())
        return written

    def to_html(self) -> str:
        """The page."""
        return page_of(self.document())

    def save(self, path: str | Path) -> Path:
        """Write the page to ``path``, in one step."""
        return write_atomically(path, self.to_html().encode())


def _shown(item: Any) -> Any:
    if isinstance(item, str):
        return shown(item, 2000)
    if isinstance(item, Mapping):
        return {shown(str(key), 120): _shown(value) for key, value in item.items()}
    return [_shown(value) for value in item] if isinstance(item, list | tuple) else item
