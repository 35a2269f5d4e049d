"""The measured figures that pages show: one file of numbers, and the text that pages make of them.

    python -m bench.figures        write the blocks of README.md and docs/ again

``bench/figures.json`` holds the numbers; ``python -m bench.exports --save``,
``python -m bench.runtimes FOLDER --save`` and ``python -m bench.users FOLDER --save`` write their
parts of it. A page shows a block between
``<!-- figures: NAME -->`` and ``<!-- end of figures -->``. A test fails if a page is out of date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import geometric_mean
from typing import Any

ROOT = Path(__file__).parent.parent
FILE = Path(__file__).with_name("figures.json")
BLOCK = re.compile(r"(<!-- figures: (?P<name>[\w-]+) -->\n).*?(?=<!-- end of figures -->)", re.S)

Figures = Mapping[str, Any]


def optimizers(figures: Figures) -> str:
    """Return the table of optimizers: nodes left, CPU seconds, latency and wrong results."""
    head = f"{figures['models']} exported models, {figures['date']}"
    lines = [
        f"| {head} | version | nodes left | CPU seconds | latency | wrong or failed |",
        "|---|---|---|---|---|---|",
    ]
    for row in figures["rows"]:
        is_source, is_ours = row["tool"] == "source", row["tool"] == "smelt"
        tool = "the sources" if is_source else _bold(row["tool"], is_ours)
        nodes, latency = _bold(row["nodes"], is_ours), _bold(f"{row['latency']:.2f}", is_ours)
        seconds = "" if is_source else f"{row['seconds']:.2f}"
        wrong = "" if is_source else row["wrong"]
        cells = (tool, row["version"], nodes, seconds, latency, wrong)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += [
        "",
        f'"Latency" is the time in ONNX Runtime {figures["onnxruntime"]} with its own optimizations'
        " on one thread, divided by",
        "the time of the source; the table has the geometric mean over the models of"
        " `tests/models`. `make bench` prints this",
        "table, and another one of the speed of each tool at up to 100,000 nodes.",
    ]
    return "\n".join(lines)


def runtimes(figures: Figures) -> str:
    """Return the table of runtimes: time of a run over that of ONNX Runtime on the source."""
    names = list(figures["versions"])
    head = f"{len(figures['ratios'])} exports of PyTorch, one thread, {figures['date']}"
    lines = [f"| {head} | mean | best | worst |", "|---|---|---|---|"]
    for name in names:
        mean, *ends = figures["means"][name]
        cells = (_bold(f"{mean:.2f}", "smelt" in name), *(f"{end:.2f}" for end in ends))
        label = _bold(f"{name} {figures['versions'][name]}", "smelt" in name)
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def ort(figures: Figures) -> str:
    """Return the sentences on the gain of target ``ort`` for small and for large networks."""
    small, large = figures["small"], figures["large"]
    return (
        f"On one thread, `ort` took {small['latency']:.2f} of the latency of the source across "
        f"{small['models']} exports of PyTorch,\n"
        f"measured with ONNX Runtime {small['onnxruntime']}: {small['what']}.\n"
        f"It took {large['latency']:.2f} across {large['models']} larger exports: {large['what']}."
    )


def users(figures: Figures) -> str:
    """Return the table of exports at published widths: nodes left and latency after each tool."""
    tools = list(figures["tools"])
    head = f"ONNX Runtime {figures['onnxruntime']}, one thread"
    lines = [f"| {head} | source | " + " | ".join(tools) + " |", "|---" * (len(tools) + 2) + "|"]
    for name, (source, *cells) in figures["rows"].items():
        shown = [cell if isinstance(cell, str) else f"{cell[0]}, {cell[1]:.2f}" for cell in cells]
        lines.append(f"| {name} | {source} | " + " | ".join(shown) + " |")
    means = []
    for place in range(1, len(tools) + 1):
        cells = [row[place] for row in figures["rows"].values()]
        ratios = [1.0 if isinstance(cell, str) else cell[1] for cell in cells]
        means.append(f"{geometric_mean(ratios):.2f}, at most {max(ratios):.2f}")
    return "\n".join([*lines, "| all | | " + " | ".join(means) + " |"])


BLOCKS: dict[str, Callable[[Figures], str]] = {
    "users": users,
    "optimizers": optimizers,
    "runtimes": runtimes,
    "ort": ort,
}


def _bold(cell: object, on: bool) -> str:
    return f"**{cell}**" if on else str(cell)


def load() -> dict[str, Figures]:
    """Return all figures, by the name of their block."""
    figures: dict[str, Figures] = json.loads(FILE.read_text(encoding="utf-8"))
    return figures


def save(name: str, figures: Figures) -> None:
    """Replace the figures of one block in ``bench/figures.json``."""
    text = json.dumps(load() | {name: figures}, indent=1, sort_keys=True)
    FILE.write_text(text + "\n", encoding="utf-8")


def filled(page: str, figures: Mapping[str, Figures]) -> str:
    """Return the text of ``page`` with each block written from ``figures``."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        return match[1] + BLOCKS[name](figures[name]) + "\n"

    return BLOCK.sub(block, page)


def pages() -> list[Path]:
    """Return README.md and the pages of docs/ that hold a block."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [path for path in every if BLOCK.search(path.read_text(encoding="utf-8"))]


def main() -> None:
    """Write the blocks of all pages."""
    for path in pages():
        path.write_text(filled(path.read_text(encoding="utf-8"), load()), encoding="utf-8")


if __name__ == "__main__":
    main()
