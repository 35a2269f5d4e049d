"""Integrators, integrals, flows and signatures, as libraries of their own have them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from wild.agreement import Case, agrees


def _thermostat(jax_md):
    from jax_md import energy, quantity, simulate, space

    displacement, shift = space.periodic(4.0)

    def run(x):
        potential = energy.lennard_jones_pair(displacement, sigma=0.4)
        init, apply = simulate.nvt_nose_hoover(potential, shift, 1e-3, 0.3)
        state = init(jax.random.key(0), x[:, :2] % 4.0, mass=1.0)
        state = lax.fori_loop(0, 3, lambda _, s: apply(s), state)
        return state.position, quantity.temperature(momentum=state.momentum)

    return run


def _integrals(quadax):
    """Simpson's rule, whose slices hang on whether the size is even."""
    return lambda x: (quadax.simpson(x[:, 0], dx=0.1), quadax.cumulative_trapezoid(x[:, 1]))


def _autoregressive(flowjax):
    from flowjax.bijections import RationalQuadraticSpline
    from flowjax.distributions import Normal
    from flowjax.flows import masked_autoregressive_flow

    spline = RationalQuadraticSpline(knots=5, interval=3)
    base, key = Normal(jnp.zeros(4)), jax.random.key(0)
    flow = masked_autoregressive_flow(
        key, base_dist=base, transformer=spline, flow_layers=2, nn_width=8
    )
    return lambda x: (flow.log_prob(x), flow.sample(key, (3,)))


CASES = {
    "thermostat": Case("jax_md", _thermostat, tolerance=1e-3),
    "integrals": Case("quadax", _integrals),
    "autoregressive flow": Case("flowjax", _autoregressive, tolerance=1e-3),
    "signatures": Case("signax", lambda signax: lambda x: signax.signature(x, 3), tolerance=1e-3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:the model (holds|is not)")
def test_functions_of_libraries_are_right_at_two_sizes(name: str) -> None:
    agrees(CASES[name])
