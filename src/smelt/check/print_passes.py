"""Print what each pass changes, as LLVM's ``-print-changed`` and ``-print-after`` do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from smelt.ir.listing import Listing, listing, with_checksums
from smelt.ir.unified_diff import unified_diff
from smelt.passes.pipeline import Step, parse, passes_of
from smelt.passes.pipelines import STAGES
from smelt.passes.registry import find_pass
from smelt.passes.run import PassReport

ALL = "all"
"""The word for every pass."""


def wanted_passes(text: str | None) -> frozenset[str] | None:
    """Return the passes that ``fuse-swish,cleanup`` names; None for ``all``, empty for None.

    A stage stands for its passes. Raises UsageError E601 for an unknown name.
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


MOST_NAMED = 4
"""How many passes without effect are listed by name; a stage has many."""


@dataclass
class PrintPasses:
    """An observer that passes text to ``write`` for each pass run.

    It prints a unified diff for passes in ``changed`` that changed the model, and the whole listing
    for passes in ``after``. Each is a set of spellings, or None for all passes. ``limit`` is the
    largest number of lines of one print; 0 means no limit.
    """

    write: Callable[[str], None]
    changed: frozenset[str] | None = frozenset()
    after: frozenset[str] | None = frozenset()
    limit: int = 0
    _known: Listing | None = None
    _ran: set[str] = field(default_factory=set)
    _printed: set[str] = field(default_factory=set)

    def before_pass(self, step: Step, model: ir.Model) -> None:
        """Store the listing before the first pass to be printed as a diff."""
        if self._known is None and _is_among(step, self.changed):
            self._known = listing(model)

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """Print the diff or the listing of the pass."""
        self._ran.add(step.pass_.spelling)
        before = self._known
        if report.changed:
            self._known = None
        if report.changed and before is not None and _is_among(step, self.changed):
            self._known = listing(model)
            difference = unified_diff(*with_checksums(before, self._known))
            self._print(step, report, difference or ["the listing stays the same"])
        if _is_among(step, self.after):
            self._print(step, report, (self._known or listing(model)).lines)

    def finish(self) -> None:
        """Print which passes requested by name did not run, or changed nothing."""
        requested = (self.changed or frozenset()) | (self.after or frozenset())
        for word, names in (
            ("not in the pipeline", requested - self._ran),
            ("changed nothing", (requested & self._ran) - self._printed),
        ):
            if names:
                self.write(f"*** {word}: {_first_names(sorted(names))} ***")

    def _print(self, step: Step, report: PassReport, lines: Sequence[str]) -> None:
        """Print ``lines`` under a heading with the pass and its rewrites."""
        self._printed.add(step.pass_.spelling)
        count = report.stats.rewrites
        self.write(f"*** after {step} ({count} rewrite{'' if count == 1 else 's'}) ***")
        self.write("\n".join(first_lines(lines, self.limit)))


def _first_names(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    hidden_count = len(names) - MOST_NAMED
    listed = ", ".join(names[:MOST_NAMED])
    return f"{listed} and {hidden_count} others" if hidden_count > 0 else listed


def first_lines(lines: Sequence[str], limit: int) -> Sequence[str]:
    """Return the first ``limit`` lines, and a line that counts the others; 0 means no limit."""
    hidden = len(lines) - limit
    if not limit or hidden <= 0:
        return lines
    return [*lines[:limit], f"... {hidden:,} more lines (--print-limit 0 shows all)"]


def _is_among(step: Step, names: frozenset[str] | None) -> bool:
    """True if ``names`` contains the pass; None stands for all."""
    return names is None or step.pass_.spelling in names
