"""Training steps, solvers and decoding as people write them with libraries of JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from wild.agreement import Case, agrees


def _evidence(numpyro):
    import numpyro.distributions as dist
    from numpyro import infer

    def model(x):
        w = numpyro.sample("w", dist.Normal(jnp.zeros(3), 1).to_event(1))
        s = numpyro.sample("s", dist.HalfCauchy(1.0))
        with numpyro.plate("rows", x.shape[0]):
            numpyro.sample("y", dist.Normal(x[:, :3] @ w, s), obs=x[:, 3])

    guide = infer.autoguide.AutoMultivariateNormal(model)
    elbo = infer.Trace_ELBO(2)
    svi = infer.SVI(model, guide, numpyro.optim.Adam(1e-2), elbo)
    start = svi.get_params(svi.init(jax.random.key(0), jnp.ones((4, 4))))

    def step(x):
        loss = lambda p: elbo.loss(jax.random.key(1), p, model, guide, x)  # noqa: E731
        return jax.value_and_grad(loss)(start)

    return step


def _damped(jaxopt):
    """It takes a step or not by products with a boolean, of which one side is infinite."""

    def residuals(p, x):
        return p[0] * jnp.exp(-p[1] * jnp.abs(x[:, 0])) + p[2] - x[:, 1]

    def fit(x):
        solver = jaxopt.LevenbergMarquardt(residuals, maxiter=3)
        return solver.run(jnp.array([1.0, 0.5, 0.0]), x=x).state.damping_factor

    return fit


def _optimizers(optax):
    chosen = [optax.contrib.muon(1e-2), optax.adafactor(1e-2), optax.contrib.prodigy(1e-1)]

    def train(x):
        def loss(p):
            return optax.losses.huber_loss(x @ p["w"] + p["b"], x[:, :2]).mean()

        def run(optimizer):
            def step(carry, _):
                p, state = carry
                value, gradient = jax.value_and_grad(loss)(p)
                updates, state = optimizer.update(gradient, state, p)
                return (optax.apply_updates(p, updates), state), value

            p = {"w": jnp.ones((4, 2)) * 0.1, "b": jnp.zeros(2)}
            (p, _), losses = lax.scan(step, (p, optimizer.init(p)), None, length=3)
            return p, losses

        return [run(optimizer) for optimizer in chosen]

    return train


def _quasi_newton(optax):
    def minimize(x):
        def cost(w):
            return jnp.mean((jnp.tanh(x @ w) - 0.5) ** 2) + 0.01 * (w**2).sum()

        optimizer, values = optax.lbfgs(memory_size=3), optax.value_and_grad_from_state(cost)

        def step(_, carry):
            w, state = carry
            value, gradient = values(w, state=state)
            updates, state = optimizer.update(
                gradient, state, w, value=value, grad=gradient, value_fn=cost
            )
            return optax.apply_updates(w, updates), state

        w = jnp.zeros(4)
        return lax.fori_loop(0, 4, step, (w, optimizer.init(w)))[0]

    return minimize


def _assigned(optax):
    return lambda x: optax.assignment.hungarian_algorithm(x.T @ x)


def _reset(hk):
    def forward(x):
        core = hk.ResetCore(hk.GRU(6))
        return hk.dynamic_unroll(core, (x, x[..., 0] > 1), core.initial_state(3))

    model = hk.without_apply_rng(hk.transform(forward))
    params = model.init(jax.random.key(0), jnp.ones((2, 3, 4)))
    return lambda x: model.apply(params, x)


def _tempered(blackjax):
    def step(x):
        sampler = blackjax.tempered_smc(
            lambda q: -0.5 * (q**2).sum(),
            lambda q: -((q - 1.5) ** 2).sum(),
            blackjax.hmc.build_kernel(),
            blackjax.hmc.init,
            {
                "step_size": jnp.array([0.1]),
                "inverse_mass_matrix": jnp.ones((1, 4)),
                "num_integration_steps": jnp.array([3]),
            },
            blackjax.smc.resampling.systematic,
            num_mcmc_steps=2,
        )
        state, info = sampler.step(jax.random.key(0), sampler.init(x), 0.3)
        return state.particles, info.log_likelihood_increment

    return step


def _poses(jaxlie):
    def correction(x):
        poses = jax.vmap(jaxlie.SE3.exp)(0.3 * x)

        def residuals(moved):
            ahead = jax.vmap(jaxlie.manifold.rplus)(poses, moved)
            first, then = (jaxlie.SE3(ahead.wxyz_xyz[part]) for part in (slice(-1), slice(1, None)))
            return jax.vmap(lambda a, b: (a.inverse() @ b).log())(first, then).ravel()

        still = jnp.zeros_like(x)
        return residuals(still), jax.jacfwd(residuals)(still)

    return correction


def _speculative(flax):
    """A draft proposes three tokens, of which the model takes those that it would choose."""
    table = jax.random.normal(jax.random.key(0), (2, 11, 11))

    def decode(x):
        prompt = jnp.argmax(jnp.pad(x, ((0, 0), (0, 7))), -1)
        length = prompt.shape[0]
        out = jnp.zeros(length + 12, jnp.int32).at[:length].set(prompt)
        out = out.at[length].set(table[0, out[length - 1]].argmax().astype(jnp.int32))

        def step(state):
            n, out, taken = state
            draft = lax.scan(lambda t, _: (table[1, t].argmax(),) * 2, out[n - 1], None, length=3)[
                1
            ]
            checked = table[0, jnp.append(out[n - 1], draft)].argmax(-1).astype(jnp.int32)
            agreed = jnp.cumprod(checked[:3] == draft).sum()
            kept = jnp.where(jnp.arange(4) <= agreed, checked, 0)
            return n + agreed + 1, lax.dynamic_update_slice(out, kept, (n,)), taken + agreed

        start = jnp.int32(length + 1), out, jnp.int32(0)
        return lax.while_loop(lambda state: state[0] < length + 7, step, start)

    return decode


def _heat(flax):
    """Neighbours of each place, at sizes that have none, too; a source in the middle."""

    def simulate(x):
        def step(_, u):
            u = u.at[1:-1].add(0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))
            return u.at[u.shape[0] // 2].add(1.0)

        return lax.fori_loop(0, 3, step, x)

    return simulate


QUICK = {
    "speculative decoding": Case("flax", _speculative),
    "heat": Case("flax", _heat),
}
CASES = {
    "evidence": Case("numpyro", _evidence, tolerance=1e-3),
    "damped least squares": Case("jaxopt", _damped, tolerance=1e-2),
    "optimizers": Case("optax", _optimizers, tolerance=1e-3),
    "quasi-newton": Case("optax", _quasi_newton, tolerance=1e-2),
    "assignment": Case("optax", _assigned),
    "reset core": Case("haiku", _reset, (("N", 3, 4),)),
    "tempered": Case("blackjax", _tempered, tolerance=1e-3),
    "poses": Case("jaxlie", _poses, (("N", 6),), tolerance=1e-3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_steps_of_libraries_are_right_at_two_sizes(name: str) -> None:
    agrees(CASES[name])


@pytest.mark.parametrize("name", QUICK)
def test_steps_without_libraries_are_right_at_two_sizes(name: str) -> None:
    agrees(QUICK[name])
