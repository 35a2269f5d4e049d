"""smelt on a Ray cluster: models for Ray Data, and batches of models on many machines.

``Predictor`` imports ray only when Ray calls it.
"""

from __future__ import annotations

from smelt.ray.predictor import Predictor

__all__ = ["Predictor"]
