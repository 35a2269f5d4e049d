"""The reports of an optimization: one for each pass run, and the verification record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt.passes.run import PassReport

if TYPE_CHECKING:
    from smelt.check.half_report import HalfReport
    from smelt.check.verification_record import VerificationRecord


class Reports(list[PassReport]):
    """The reports of the pass runs in order, and the verification record if one was requested.

    ``half`` says what became float16 or bfloat16, if that was requested.
    """

    evidence: VerificationRecord | None = None
    half: HalfReport | None = None

    def facts(self) -> dict[str, Any]:
        """Return the verification and the conversion to a half type as plain data, if any."""
        found = {"evidence": self.evidence, "half": self.half}
        return {name: each.to_json() for name, each in found.items() if each is not None}

    def __repr__(self) -> str:
        changed = sum(report.changed for report in self)
        nodes = f", {self[0].nodes_before} -> {self[-1].nodes_after} nodes" if self else ""
        proof = f", {self.evidence}" if self.evidence else ""
        return f"<Reports: {changed} of {len(self)} pass runs changed something{nodes}{proof}>"

    def _repr_html_(self) -> str:
        """Return a table of the passes that changed the model, for notebooks."""
        from smelt.ir.html.markup import table, titled

        rows = []
        for report in self:
            if report.changed:
                rules = ", ".join(f"{rule} x{n}" for rule, n in report.stats.fired.items())
                nodes = (report.nodes_before, report.nodes_after)
                ms = 1e3 * report.seconds
                rows.append((report.text, *nodes, report.stats.rewrites, ms, rules))
        header = ("pass", "nodes before", "after", "rewrites", "ms", "rules")
        return titled(repr(self)[1:-1], table(rows, header))
