"""Fit the table of instructions per kernel of ``smelt.targets.c`` from counts under QEMU.

    python -m bench.cpu_costs [--cpus cortex-m3,cortex-m4,cortex-m7] [--write]

It prints the estimated over the counted instructions of each model. Fits minimize relative errors,
so small kernels count as much as large ones.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from scipy.optimize import nnls

import smelt
from bench.cortex_m import BOARDS
from bench.microcontrollers import MODELS, code_bytes, measure, models_of
from smelt.native.work import KernelWork, kernel_report
from smelt.targets.c.cpu_costs import FILE, OTHER, Cost, CpuCosts, kinds_of

TABLE = Path(__file__).parent.parent / "src/smelt/targets/c" / FILE
REDUCING = ("Pool", "Mean", "Sum", "ReduceM", "ArgM")
"""Parts of the names of operators whose work grows with the bytes that they read."""

LEAST = 1000
"""The fewest instructions of a kernel that is fitted; ticks stand for 40 instructions."""

Row = tuple[KernelWork, int]


def features(kind: str, work: KernelWork) -> list[float]:
    """Return what the instructions of a kind are linear in; unused features are 0."""
    if work["macs"]:
        return [work["macs"], 0, work["bytes_written"]]
    if any(part in kind for part in REDUCING):
        return [0, work["bytes_read"], 0]
    return [0, 0, work["bytes_written"]]


def fitted(kind: str, rows: list[Row]) -> Cost:
    """Return the cost with the least squares of relative errors, no coefficient negative."""
    matrix = np.array([features(kind, work) for work, _ in rows], float)
    counts = np.array([count for _, count in rows], float)
    found, _ = nnls(matrix / counts[:, None], np.ones(len(rows)))
    return Cost(*(float(f"{each:.3g}") for each in found))


def typical(table: Mapping[str, Cost], width: str) -> Cost:
    """Return the medians of kinds of a ``width``: per multiplication, and per byte written."""
    rows = [cost for kind, cost in table.items() if kind.endswith(width)]
    macs = [cost.macs for cost in rows if cost.macs]
    written = [cost.written for cost in rows if cost.written and not cost.macs]
    return Cost(float(np.median(macs)), 0.0, float(np.median(written)))


def code_ratio(model: onnx.ModelProto, cpu: str) -> float:
    """Return the bytes of code by ``-O2`` over the bytes of C text."""
    with tempfile.TemporaryDirectory() as folder:
        artifact = smelt.compile(model, target="c", cpu=cpu)
        artifact.save(folder)
        code = code_bytes(BOARDS[cpu], Path(folder), "-O2")
        return code / len(artifact.files["model.c"])


def costs(cpu: str) -> tuple[CpuCosts, list[str]]:
    """Count the models on ``cpu``; return the fitted costs and one line per model."""
    rows: dict[str, list[Row]] = defaultdict(list)
    per_model = []
    ratios = []
    for name in MODELS.split(","):
        for width, model in models_of(name, ["float", "int8"]).items():
            program = smelt.compile(model, target="c", cpu=cpu, profile=True).plan.steps
            found = measure(model, cpu, "-O2", {})
            ratios.append(code_ratio(model, cpu))
            works = kernel_report(program)
            counts = [count for _, count, _ in found.kernels]
            steps = list(zip(kinds_of(program), works, counts, strict=True))
            for kind, work, count in steps:
                if count >= LEAST:
                    rows[kind].append((work, count))
            per_model.append((f"{name} {width}", steps, sum(counts)))
    table = {kind: fitted(kind, each) for kind, each in sorted(rows.items())}
    table |= {kind: typical(table, kind.split()[1]) for kind in OTHER.values()}
    lines = []
    for name, steps, total in per_model:
        guess = sum(
            table[kind].instructions(work) for kind, work, count in steps if kind in table and count
        )
        lines.append(f"{cpu} {name}: {guess / total:.2f} of {total:,} instructions")
    ratio = math.exp(np.mean(np.log(ratios)))
    lines.append(
        f"{cpu}: code over the estimate {min(ratios) / ratio:.2f} to {max(ratios) / ratio:.2f}"
    )
    return CpuCosts(table, float(f"{ratio:.3g}")), lines


def main() -> None:
    parser = argparse.ArgumentParser(description=re.sub(r"\s+", " ", __doc__ or ""))
    parser.add_argument("--cpus", default="cortex-m3,cortex-m4,cortex-m7")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    tables = {}
    for cpu in given.cpus.split(","):
        found, lines = costs(cpu)
        print(*lines, sep="\n")
        tables[cpu] = {"kinds": found.kinds, "text_ratio": found.text_ratio}
    if given.write:
        text = json.dumps(tables, indent=1)
        rows = re.sub(r"\[\s+([^][]*?)\s+\]", lambda row: f"[{' '.join(row[1].split())}]", text)
        TABLE.write_text(rows + "\n")


if __name__ == "__main__":
    main()
