"""A bidirectional LSTM, by flax linen and by flax nnx."""

from __future__ import annotations

import flax.linen as nn
from flax import nnx
from whole_models.whole import WholeModel, linen_variables


def build(features: int = 3, width: int = 8) -> WholeModel:
    """By linen, on a symbolic batch of sequences of symbolic length."""
    model = nn.Bidirectional(nn.RNN(nn.LSTMCell(width)), nn.RNN(nn.LSTMCell(width)))
    variables = linen_variables(model, 1, 2, features)
    return WholeModel(
        lambda x: model.apply(variables, x),
        (f"f32[B,S,{features}]",),
        ({"B": 1, "S": 6}, {"B": 3, "S": 1}),
    )


def build_nnx(features: int = 3, width: int = 8) -> WholeModel:
    """By nnx."""
    rngs = nnx.Rngs(0)
    forward = nnx.RNN(nnx.OptimizedLSTMCell(features, width, rngs=rngs))
    backward = nnx.RNN(nnx.OptimizedLSTMCell(features, width, rngs=rngs))
    model = nnx.Bidirectional(forward, backward, rngs=rngs)
    return WholeModel(model, (f"f32[B,7,{features}]",), compiled=False)
