"""The JAX frontend: trace a function to its jaxpr, then lower the jaxpr primitive by primitive."""

from __future__ import annotations

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.open_sizes import (  # noqa: F401 - imports register
    scan_length,
    symbolic_arrays,
    symbolic_axes,
    symbolic_loops,
    symbolic_numbers,
    symbolic_pads_and_splits,
    symbolic_sizes,
    symbolic_tensor_shapes,
    symbolic_transforms,
)
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.patching import runtime_checks, shortcuts  # noqa: F401 - the same
from smelt.frontends.jax.patching.bindings import Binding, binds
from smelt.frontends.jax.registry import lowers
from smelt.frontends.jax.trace import trace

__all__ = ["Binding", "Lowering", "Operand", "binds", "lowers", "trace"]
