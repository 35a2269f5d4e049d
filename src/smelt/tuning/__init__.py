"""Tune one model for this machine: time variants interleaved with the source, keep the fastest."""

from __future__ import annotations

from smelt.tuning.search import tune_model

__all__ = ["tune_model"]
