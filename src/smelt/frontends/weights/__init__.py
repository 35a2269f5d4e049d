"""Checkpoints: read the numbers of weights for a model that was traced without them."""

from __future__ import annotations

from smelt.frontends.weights.fill import fill_weights

__all__ = ["fill_weights"]
