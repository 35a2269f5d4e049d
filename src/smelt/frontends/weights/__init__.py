"""Checkpoints: the numbers of weights that a model was traced without."""

from __future__ import annotations

from smelt.frontends.weights.fill import fill_weights

__all__ = ["fill_weights"]
