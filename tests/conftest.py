"""What holds for every test."""

from __future__ import annotations

import gc

import pytest


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the collector forget the tests themselves: eleven thousand are there to the end."""
    gc.collect()
    gc.freeze()
