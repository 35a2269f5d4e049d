"""The StableHLO frontend: what ``jax.export`` gave becomes a function of JAX again.

Each operator binds the primitive of JAX that means the same, under the trace of the JAX frontend,
so there is one lowering for both.
"""
