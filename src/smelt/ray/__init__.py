"""smelt on a Ray cluster: models for Ray Data, batches of models, and contractions in slices.

``Predictor`` imports ray only when Ray calls it.
"""

from __future__ import annotations

from smelt.ray.contraction import contract
from smelt.ray.estimate import Cluster, Estimate, estimate
from smelt.ray.predictor import Predictor

__all__ = ["Cluster", "Estimate", "Predictor", "contract", "estimate"]
