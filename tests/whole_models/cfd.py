"""A step of incompressible flow in float64: a loop over time steps, in each one that converges."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from whole_models.whole import WholeModel

Field = jax.Array


def ddx(f: Field, h: float) -> Field:
    """The derivative along the last axis of a periodic field."""
    return (jnp.roll(f, -1, -1) - jnp.roll(f, 1, -1)) / (2 * h)


def ddy(f: Field, h: float) -> Field:
    """The derivative along the axis before it."""
    return (jnp.roll(f, -1, -2) - jnp.roll(f, 1, -2)) / (2 * h)


def neighbours(f: Field) -> Field:
    """The sum of the four values around each value."""
    return sum(jnp.roll(f, shift, axis) for axis in (-1, -2) for shift in (1, -1))


def pressure(source: Field, guess: Field, h: float, tolerance: float, most: int) -> Field:
    """The solution of the Poisson equation by Jacobi iterations, until they change little."""

    def going_on(state: tuple[Field, Field, Field]) -> Field:
        step, _, change = state
        return (step < most) & (change > tolerance)

    def improved(state: tuple[Field, Field, Field]) -> tuple[Field, Field, Field]:
        step, p, _ = state
        better = (neighbours(p) - h * h * source) / 4
        better = better - better.mean()
        return step + 1, better, jnp.abs(better - p).max()

    start = (jnp.int32(0), guess, jnp.asarray(jnp.inf, guess.dtype))
    return lax.while_loop(going_on, improved, start)[1]


def advanced(
    u: Field, v: Field, p: Field, *, steps: int, h: float, dt: float, viscosity: float
) -> tuple[Field, Field, Field]:
    """Velocity and pressure after ``steps`` steps: advection, diffusion, projection."""

    def step(_: int, state: tuple[Field, Field, Field]) -> tuple[Field, Field, Field]:
        u, v, p = state

        def moved(f: Field) -> Field:
            diffusion = viscosity * (neighbours(f) - 4 * f) / (h * h)
            return f + dt * (diffusion - u * ddx(f, h) - v * ddy(f, h))

        u, v = moved(u), moved(v)
        p = pressure((ddx(u, h) + ddy(v, h)) / dt, p, h, 1e-6, 50)
        return u - dt * ddx(p, h), v - dt * ddy(p, h), p

    return lax.fori_loop(0, steps, step, (u, v, p))


def build(side: int = 16, steps: int = 3) -> WholeModel:
    """Two fields of velocity and one of pressure, each of symbolic height."""

    def model(u: Field, v: Field, p: Field) -> tuple[Field, Field, Field]:
        return advanced(u, v, p, steps=steps, h=1 / side, dt=1e-3, viscosity=1e-3)

    spec = f"f64[B,{side}]"
    return WholeModel(model, (spec,) * 3, ({"B": side}, {"B": 5}), x64=True)
