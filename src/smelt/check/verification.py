"""The report of a verification, as text, table and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smelt.check.agreement import sizes_in_words, sizes_together
from smelt.check.compare import Comparison, error_in_words, worst
from smelt.errors import Mismatch

SCHEMA = "smelt.verify/2"


@dataclass
class Trial:
    """One run of both sides; ``skipped`` is the reason why the source could not run."""

    sizes: Mapping[str, int]
    inputs: str
    seed: int
    outputs: list[Comparison] = field(default_factory=list)
    failure: str = ""
    skipped: str = ""

    @property
    def ok(self) -> bool:
        """True if no output differs and the other side did not fail."""
        return not self.failure and all(output.ok for output in self.outputs)

    @property
    def in_words(self) -> str:
        """The sizes, inputs and seed of the trial, in words."""
        return f"{sizes_in_words(self.sizes)}, {self.inputs} inputs, seed {self.seed}"

    def to_json(self) -> dict[str, Any]:
        """Return the trial as JSON data, with the comparison of each output."""
        return {
            "ok": self.ok,
            "sizes": dict(self.sizes),
            "inputs": self.inputs,
            "seed": self.seed,
            "failure": self.failure,
            "skipped": self.skipped,
            "outputs": [output.to_json() for output in self.outputs],
        }


@dataclass
class Report:
    """The result of ``verify``: differences of the interfaces, and the trials in order.

    ``approximation`` is the name of an intended approximation, such as 4-bit weights, for which any
    error is allowed; else "". ``in_half``: the second side computes in float16 or bfloat16.
    """

    names: tuple[str, str]
    interface: list[str] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    tolerance: str = ""
    approximation: str = ""
    in_half: bool = False

    @property
    def ok(self) -> bool:
        """True if the interfaces agree and every trial that could be run agrees."""
        return not self.interface and all(trial.ok for trial in self.trials)

    @property
    def worst(self) -> Comparison:
        """The comparison with the largest error over all trials."""
        return worst(item for trial in self.trials for item in trial.outputs)

    @property
    def mean_rel(self) -> float:
        """The largest mean error of an output relative to its mean magnitude."""
        return max((c.mean_rel for trial in self.trials for c in trial.outputs), default=0.0)

    @property
    def peak_rel(self) -> float:
        """The largest error of an output relative to its largest magnitude."""
        return max((c.peak_rel for trial in self.trials for c in trial.outputs), default=0.0)

    def problems(self) -> list[str]:
        """Return every difference as a sentence."""
        sentences = list(self.interface)
        for trial in self.trials:
            if trial.failure:
                sentences.append(f"{trial.in_words}: {trial.failure}")
            sentences += [f"{trial.in_words}: {item}" for item in trial.outputs if not item.ok]
        return sentences

    def summary(self) -> str:
        """Return one line with the sizes of the trials and the largest error."""
        sizes = sizes_together(trial.sizes for trial in self.trials if not trial.skipped)
        error = self.accuracy() if self.approximation else error_in_words(self.worst)
        return f"at {sizes}: {error}"

    def accuracy(self) -> str:
        """Return one line with the relative errors, for sides that approximate by intention."""
        return (
            f"largest error {self.peak_rel:.2%} of the largest number; mean error"
            f" {self.mean_rel:.2%} of the mean magnitude ({self.approximation})"
        )

    def check(self) -> None:
        """Raise Mismatch if the sides disagree: E700 in interface, E702 in results."""
        if self.ok:
            return
        code, what = "E702", "{1} computes other results than {0}"
        if self.interface:
            code, what = "E700", "{1} does not have the interface of {0}"
        raise Mismatch(
            code,
            what.format(*self.names),
            at=self.problems()[:8],
            why=f"allowed: {self.tolerance}"
            if code == "E702"
            else "names, types, order and ranks of inputs and outputs must be equal",
            fix=self._fix_of_results()
            if code == "E702"
            else "compare models of one interface; `smelt diff` shows the difference",
        )

    def _fix_of_results(self) -> str:
        """Return what to do about different results: overflow in 16 bits is no fault of a rewrite.

        A sum beyond 65504 is infinite in float16, and NaN after a Softmax or a difference.
        """
        failed = [item for trial in self.trials for item in trial.outputs if not item.ok]
        if self.in_half and failed and all(map(_overflowed, failed)):
            return (
                "numbers overflow in 16 bits (beyond 65504 in float16): compare on inputs of yours"
                " (--inputs data.npz), or compute in float32 (for coreml: --option precision=fp32)"
            )
        return "`smelt bisect` finds the rewrite at fault"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON data, with all trials and problems."""
        return {
            "schema": SCHEMA,
            "ok": self.ok,
            "names": list(self.names),
            "tolerance": self.tolerance,
            "worst": self.worst.to_json(),
            "peak_rel": self.peak_rel,
            "mean_rel": self.mean_rel,
            "approximation": self.approximation,
            "interface": self.interface,
            "problems": self.problems(),
            "trials": [trial.to_json() for trial in self.trials],
        }

    def __repr__(self) -> str:
        return f"<Report: {self._verdict()}>"

    def _verdict(self) -> str:
        """Return the result in one line."""
        if not self.ok:
            return f"DIFFERENT, {self.problems()[0]}"
        run = sum(not trial.skipped for trial in self.trials)
        if self.approximation:
            return f"{self.accuracy()} in {run} trials"
        return f"same in {run} trials, {error_in_words(self.worst)}"

    def _repr_html_(self) -> str:
        """Return the trials as a table, for notebooks."""
        from smelt.ir.html.markup import table, titled

        rows: list[tuple[object, ...]] = [
            ("", "", "", "", "", f"interface: {item}") for item in self.interface
        ]
        for trial in self.trials:
            place = (sizes_in_words(trial.sizes), trial.inputs)
            if trial.failure or trial.skipped:
                words = f"fails: {trial.failure}" if trial.failure else f"skipped: {trial.skipped}"
                rows.append(("", *place, "", "", words))
            rows += [
                (item.name, *place, item.error, item.ulp, _result(item)) for item in trial.outputs
            ]
        header = ("output", "sizes", "inputs", "error", "ulp", "result")
        what = f"{self.names[1]} against {self.names[0]}: {self._verdict()}"
        return titled(what, table(rows, header))

    def __str__(self) -> str:
        """Return the interface problems, and a table of the outputs of all trials."""
        lines = [f"interface: {item}" for item in self.interface]
        header = f"{'output':<24} {'sizes':<14} {'inputs':<8} {'error':>10} {'ulp':>10}  result"
        lines.append(header)
        for trial in self.trials:
            sizes = ",".join(f"{name}={size}" for name, size in trial.sizes.items()) or "-"
            if trial.failure or trial.skipped:
                words = f"FAILS: {trial.failure}" if trial.failure else f"skipped: {trial.skipped}"
                lines.append(f"{'*':<24} {sizes:<14} {trial.inputs:<8} {words}")
            lines += [_row(item, sizes, trial.inputs) for item in trial.outputs]
        return "\n".join(lines)


def _result(item: Comparison) -> str:
    """Return the result of one output in words."""
    result = "same" if item.ok else (item.problem or f"DIFFERS in {item.failed}/{item.elements}")
    return f"{result} ({item.unstable} undetermined)" if item.unstable else result


def _row(item: Comparison, sizes: str, inputs: str) -> str:
    """Return one line of the table."""
    row = f"{item.name:<24} {sizes:<14} {inputs:<8} {item.error:>10.2g} {item.ulp:>10.2g}"
    return f"{row}  {_result(item)}"


def _overflowed(comparison: Comparison) -> bool:
    """True if the described element is infinite or NaN, and the expected one is a number."""
    beyond = ("inf", "-inf", "nan")
    return comparison.actual in beyond and comparison.expected not in beyond
