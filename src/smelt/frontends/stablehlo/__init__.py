"""The StableHLO frontend: turn a program of ``jax.export`` back into a JAX function.

Each operator binds the equivalent JAX primitive under the trace of the JAX frontend, so both share
one set of lowerings.
"""
