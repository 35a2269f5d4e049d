"""Tune one model in place: what may make it faster is timed by turns with its source."""

from __future__ import annotations

from smelt.tuning.search import tune_model

__all__ = ["tune_model"]
