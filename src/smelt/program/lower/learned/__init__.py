"""Operators of ai.onnx.ml on numbers: trees, linear models, support vectors, and their features.

Scores are those of ONNX Runtime where the specification leaves them open.
"""

from __future__ import annotations

from smelt.program.lower.learned import (
    ensembles,
    features,
    linear,
    older_ensembles,
    support_vectors,
)

__all__ = ["ensembles", "features", "linear", "older_ensembles", "support_vectors"]
