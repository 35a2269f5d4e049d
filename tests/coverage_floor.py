"""How much of src/ the tests have to run: ``--coverage-floor``, where slipcover counts the lines."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

OPTION = "--coverage-floor"
DIRECTORY = "SLIPCOVER_COVERAGE_DIR"
"""Where slipcover's plugin leaves ``merged.json``, what the workers of xdist have run."""


def covered(session: pytest.Session) -> float | None:
    """Percent of the lines that were run; None where no floor was asked for, or in a worker."""
    if session.config.getoption(OPTION) is None or hasattr(session.config, "workerinput"):
        return None
    merged = Path(os.environ.get(DIRECTORY, ""), "merged.json")
    if not merged.is_file():
        raise pytest.UsageError(f"{OPTION} needs `python -m slipcover -m pytest -n 2`")
    return float(json.loads(merged.read_text(encoding="utf-8"))["summary"]["percent_covered"])
