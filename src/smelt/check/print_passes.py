"""What each pass changes, as text: LLVM's ``-print-changed`` and ``-print-after``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from smelt.ir.listing import Listing, listing, told_apart
from smelt.ir.unified_diff import unified_diff
from smelt.passes.pipeline import Step, parse, passes_of
from smelt.passes.pipelines import STAGES
from smelt.passes.registry import find_pass
from smelt.passes.run import PassReport

ALL = "all"
"""Stands for every pass."""


def wanted_passes(text: str | None) -> frozenset[str] | None:
    """The passes that ``all`` or ``fuse-swish,cleanup`` names; None for all of them.

    A stage stands for its passes. Raises UsageError E601 for a name that no pass or stage has.
    """
    if text is None:
        return frozenset()
    names = [name.strip() for name in text.split(",")]
    if ALL in names:
        return None
    stages = [name for name in names if name in STAGES]
    passes = [find_pass(name) for name in names if name not in STAGES]
    passes += [pass_ for stage in stages for pass_ in passes_of(parse(stage))]
    return frozenset(pass_.spelling for pass_ in passes)


NAMED = 4
"""Passes without an effect that are named; a stage holds many."""


@dataclass
class PrintPasses:
    """An observer that hands text to ``write`` for each run of a pass.

    For passes among ``changed`` that changed something it is a unified diff of listings, for those
    among ``after`` the whole listing. Either is a set of spellings, or None for all passes.
    ``limit`` is how many lines of one print are shown; 0 shows all.
    """

    write: Callable[[str], None]
    changed: frozenset[str] | None = frozenset()
    after: frozenset[str] | None = frozenset()
    limit: int = 0
    _known: Listing | None = None
    _ran: set[str] = field(default_factory=set)
    _told: set[str] = field(default_factory=set)

    def before_pass(self, step: Step, model: ir.Model) -> None:
        """Keep the listing that a difference begins with; nothing before has changed it since."""
        if self._known is None and _is_among(step, self.changed):
            self._known = listing(model)

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """Print what the pass did."""
        self._ran.add(step.pass_.spelling)
        before = self._known
        if report.changed:
            self._known = None
        if report.changed and before is not None and _is_among(step, self.changed):
            self._known = listing(model)
            difference = unified_diff(*told_apart(before, self._known))
            self._print(step, report, difference or ["nothing of this changes the text"])
        if _is_among(step, self.after):
            self._print(step, report, (self._known or listing(model)).lines)

    def finish(self) -> None:
        """Say of passes that were asked for by name why nothing was printed."""
        asked = (self.changed or frozenset()) | (self.after or frozenset())
        for word, names in (
            ("not in the pipeline", asked - self._ran),
            ("changed nothing", (asked & self._ran) - self._told),
        ):
            if names:
                self.write(f"*** {word}: {_listed(sorted(names))} ***")

    def _print(self, step: Step, report: PassReport, lines: Sequence[str]) -> None:
        self._told.add(step.pass_.spelling)
        count = report.stats.rewrites
        self.write(f"*** after {step} ({count} rewrite{'s' * (count != 1)}) ***")
        self.write("\n".join(cut(lines, self.limit)))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} others" if more > 0 else "")


def cut(lines: Sequence[str], limit: int) -> Sequence[str]:
    """The first ``limit`` of ``lines``, and how many more there are; all of them if it is 0."""
    hidden = len(lines) - limit
    if not limit or hidden <= 0:
        return lines
    return [*lines[:limit], f"... {hidden:,} more lines (--print-limit 0 shows all)"]


def _is_among(step: Step, names: frozenset[str] | None) -> bool:
    return names is None or step.pass_.spelling in names
