"""What each consumer takes, and what its choice makes of a pipeline, stands in ``known.txt``.

The file shows each limit as users read it. Running this file writes it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from smelt.consumers.describe import describe_consumer
from smelt.consumers.find import consumers, find_consumers
from smelt.ir import text
from smelt.passes.pipeline import parse, to_text

SHOWN = Path(__file__).with_name("known.txt")
NAMES = [
    *consumers(),
    "any",
    *(f"onnxruntime>={version}" for version in ("1", "1.15.9", "1.16", "1.17", "1.18", "1.20.1")),
    *(f"onnxruntime>={version}" for version in ("1.21", "1.22", "1.23", "1.24", "1.25", "2")),
    "onnxruntime>=1.18,ncnn,openvino",
]


def shown(name: str) -> Iterator[str]:
    """Yield the lines of one consumer, or of several together."""
    yield name
    if name in (*consumers(), "any"):
        for key, value in describe_consumer(name).items():
            if key == "operators" and value:
                yield f"    {' '.join(op for op, words in value.items() if not words)}"
                yield from (f"    {op}: {words}" for op, words in value.items() if words)
            else:
                yield f"  {key}: {value}"
    chosen = find_consumers(name)
    yield f"  versions: {[written(chosen, *each) for each in ((7, 3), (17, 8), (30, 99))]}"
    kernels = hashlib.sha256(" ".join(sorted(chosen.kernels)).encode()).hexdigest()[:8]
    yield f"  {len(chosen.kernels)} kernels {kernels}"
    yield f"  steps: {to_text(chosen.steps(parse('cleanup')))}"


def written(chosen, opset: int, ir_version: int) -> tuple[int | None, int | None]:
    """Return the versions that are written of a model of ``opset`` and ``ir_version``."""
    model = text.parse("g (float[2] x) => (float[2] y) { y = Relu(x) }", opset)
    model.ir_version = ir_version
    return chosen.versions(model, None, None)


def lines() -> str:
    return "\n".join(line for name in NAMES for line in shown(name)) + "\n"


def test_the_consumers_take_what_the_file_shows() -> None:
    assert lines() == SHOWN.read_text(encoding="utf-8")


if __name__ == "__main__":
    SHOWN.write_text(lines(), encoding="utf-8")
