"""Replay buffers, policies, matrices and samplers, as people write them in JAX and its libraries."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from wild.agreement import Case, agrees


def _priorities(flax):
    """A tree of sums: places are powers of two of the depth, twice in one loop."""

    def place(depth, index):
        return jnp.power(2, depth) - 1 + index

    def tree(x):
        leaves = jnp.abs(x[:, 0])

        def add(nodes, given):
            index, value = given

            def level(depth, carried):
                nodes, at = carried
                nodes = nodes.at[place(depth, at)].add(value)
                return nodes, at // 2

            up = lambda i, carried: level(3 - i, carried)  # noqa: E731
            return lax.fori_loop(0, 4, up, (nodes, index))[0], place(3, index)

        rows = jnp.arange(x.shape[0]) % 8
        return lax.scan(add, jnp.zeros(15), (rows, leaves))

    return tree


def _policy(flax):
    """Steps but the last of every player, in one row, in an order that is drawn."""

    def update(x):
        gains = lax.scan(lambda c, r: (r + 0.9 * c,) * 2, jnp.zeros(4), x[:-1], reverse=True)[1]
        flat, order = gains.reshape(-1), jax.random.permutation(jax.random.key(0), gains.size)
        chosen = flat[order]
        return (chosen - chosen.mean()) / (chosen.std() + 1e-8)

    return update


def _matrices(flax):
    """Sizes of which one makes a difference, beside matrices made of shifted rows."""

    def analyse(x):
        gram = x @ x.T + jnp.eye(x.shape[0])
        shifted = jax.scipy.linalg.toeplitz(x[:, 0])
        return shifted, jnp.linalg.slogdet(gram)[1], jnp.linalg.matrix_rank(gram)

    return analyse


def _mixture(numpyro):
    import numpyro.distributions as dist
    from numpyro.infer.util import log_density

    def model(x):
        w = numpyro.sample("w", dist.Dirichlet(jnp.ones(3)))
        m = numpyro.sample("m", dist.Normal(0, 3).expand([3]).to_event(1))
        with numpyro.plate("rows", x.shape[0]):
            parts = dist.MixtureSameFamily(dist.Categorical(w), dist.Normal(m, 1.0))
            numpyro.sample("x", parts, obs=x[:, 0])

    def curvature(x):
        known = {"w": jnp.array([0.2, 0.3, 0.5])}
        density = lambda m: log_density(model, (x,), {}, {**known, "m": m})[0]  # noqa: E731
        return jax.value_and_grad(density)(x[0, :3]), jax.hessian(density)(x[0, :3])

    return curvature


def _slices(blackjax):
    def run(x):
        density = lambda w: -0.5 * jnp.sum((x @ w - 1.0) ** 2)  # noqa: E731
        sampler = blackjax.elliptical_slice(density, mean=jnp.zeros(4), cov=jnp.eye(4))

        def step(state, key):
            state, _ = sampler.step(key, state)
            return state, state.position

        keys = jax.random.split(jax.random.key(0), 4)
        return lax.scan(step, sampler.init(jnp.ones(4)), keys)[1]

    return run


def _searches(mctx):
    w = jax.random.normal(jax.random.key(0), (4, 4))

    def recurrent(_, key, action, state):
        state = jnp.tanh(state @ w + jax.nn.one_hot(action, 3) @ w[:3])
        out = mctx.RecurrentFnOutput(
            reward=state[:, 0],
            discount=jnp.full(state.shape[:1], 0.9),
            prior_logits=state[:, :3],
            value=state[:, 3],
        )
        return out, state

    def plan(x):
        root = mctx.RootFnOutput(prior_logits=x[:, :3], value=x[:, 3], embedding=x)
        found = mctx.muzero_policy(None, jax.random.key(1), root, recurrent, num_simulations=6)
        return found.action_weights, found.search_tree.node_visits

    return plan


def _named(penzai):
    """Axes by name, whose sizes the library wants to be ints."""
    from penzai import pz

    def scaled(x):
        rows = pz.nx.wrap(x).tag("batch", "features")
        means = rows.untag("features").sum() / 4.0
        return ((rows - means) * 2.0).unwrap("features", "batch")

    return scaled


def _tails(numpyro):
    """Distribution functions that TensorFlow Probability computes, for which shapes hold ints."""
    import numpyro.distributions as dist

    return lambda x: (
        dist.StudentT(3.0, 0.5, 2.0).cdf(x),
        dist.Beta(2.0, 3.0).cdf(jax.nn.sigmoid(x)),
        dist.Gamma(2.0, 1.5).cdf(jnp.abs(x)),
    )


def _drawn(distrax):
    """As many draws of a flow as there are rows, and how likely the rows are."""
    moved = distrax.Chain([distrax.Block(distrax.ScalarAffine(0.5, 2.0), 1)])
    flow = distrax.Transformed(distrax.MultivariateNormalDiag(jnp.zeros(4), jnp.ones(4)), moved)

    def run(x):
        drawn = flow.sample(seed=jax.random.key(0), sample_shape=(x.shape[0],))
        return drawn, flow.log_prob(x)

    return run


QUICK = {
    "priorities": Case("flax", _priorities),
    "policy": Case("flax", _policy),
    "matrices": Case("flax", _matrices, tolerance=1e-3),
}
CASES = {
    "named axes": Case("penzai", _named),
    "mixture": Case("numpyro", _mixture, tolerance=1e-3),
    "tails": Case("numpyro", _tails),
    "drawn flow": Case("distrax", _drawn),
    "elliptical slices": Case("blackjax", _slices, tolerance=1e-3),
    "planning": Case("mctx", _searches, tolerance=1e-3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_functions_of_libraries_are_right_at_two_sizes(name: str) -> None:
    agrees(CASES[name])


@pytest.mark.parametrize("name", QUICK)
def test_functions_without_libraries_are_right_at_two_sizes(name: str) -> None:
    agrees(QUICK[name])
