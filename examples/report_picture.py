"""The pictures of a report and of a layer in the documentation: ``make picture``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from browser import CHROMIUM, opened

import smelt
from examples.cnn import model
from smelt.compiler import optimize_model
from smelt.spans import recording

PICTURE = Path("docs/report.png")

LAYER = Path("docs/layer.svg")
DRAWN = Path("tests/models/torchscript_bert.onnx")
"""The model of which ``LAYER`` shows a layer."""


def draw_layer() -> None:
    """Optimize ``DRAWN`` and draw one of its layers before and after."""
    report = smelt.HtmlReport(DRAWN.name)
    smelt.optimize(DRAWN, observers=[report])
    LAYER.write_text(report.to_svg(), encoding="utf-8")
    print(f"{LAYER}: {LAYER.stat().st_size:,} bytes")


def main() -> None:
    """Convert the CNN, open its report, select a fused Conv, and save what is seen."""
    if CHROMIUM is None:
        sys.exit("no Chromium here: apt-get install chromium")
    draw_layer()
    report = smelt.HtmlReport("examples.cnn:model")
    with recording() as report.recorder:
        work = smelt.trace(model, "f32[B,28,28,1]")
        report.evidence = optimize_model(work, verify="final", observers=[report]).evidence
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        opened(Path(folder) / "profile") as browser,
    ):
        browser.size(1280, 800, scale=1.5)
        browser.open(report.save(Path(folder) / "report.html"))
        browser.click(".pane:nth-child(2) .node.is-new", 1)
        browser.screenshot(PICTURE)
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
