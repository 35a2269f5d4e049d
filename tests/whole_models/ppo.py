"""The policy and value of PPO: an action is drawn with a key, its log probability told."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from whole_models.whole import WholeModel, nnx_module


class ActorCritic(nnx.Module):
    """Observations to the logits of actions and to the value of the state."""

    def __init__(self, observed: int, actions: int, width: int, rngs: nnx.Rngs) -> None:
        self.actor = nnx.Sequential(*_mlp(observed, width, actions, rngs))
        self.critic = nnx.Sequential(*_mlp(observed, width, 1, rngs))

    def __call__(
        self, observation: jax.Array, seed: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        logits = self.actor(observation)
        key = jax.random.wrap_key_data(seed)
        action = jax.random.categorical(key, logits)
        log_all = jax.nn.log_softmax(logits)
        log_prob = jnp.take_along_axis(log_all, action[:, None], axis=-1)[:, 0]
        entropy = -(jnp.exp(log_all) * log_all).sum(-1)
        return action, log_prob, entropy, self.critic(observation)[:, 0]


def _mlp(inputs: int, width: int, outputs: int, rngs: nnx.Rngs) -> list[nnx.Linear]:
    return [
        nnx.Linear(inputs, width, rngs=rngs),
        nnx.tanh,
        nnx.Linear(width, width, rngs=rngs),
        nnx.tanh,
        nnx.Linear(width, outputs, rngs=rngs),
    ]


def build(observed: int = 8, actions: int = 4, width: int = 64) -> WholeModel:
    """The model, its batch symbolic and its key the two words of a seed."""
    model = nnx_module(lambda rngs: ActorCritic(observed, actions, width, rngs))
    return WholeModel(model, (f"f32[B,{observed}]", "u32[2]"))
