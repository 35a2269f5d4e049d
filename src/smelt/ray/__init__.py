"""smelt on a Ray cluster: models for Ray Data, and batches of models on many machines.

``Predictor`` needs ray only where Ray calls it.
"""

from __future__ import annotations

from smelt.ray.predictor import Predictor

__all__ = ["Predictor"]
