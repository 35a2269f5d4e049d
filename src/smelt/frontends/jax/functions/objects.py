"""Classify objects: traced arrays, and modules of libraries that may not be installed."""

from __future__ import annotations

import sys
from typing import Any

import jax


def is_traced(value: Any) -> bool:
    """True for a JAX tracer."""
    return isinstance(value, jax.core.Tracer)


def bases() -> tuple[type, ...]:
    """Return the base classes of modules in those of flax.nnx and equinox that are loaded."""
    homes = (sys.modules.get(name) for name in ("flax.nnx", "equinox"))
    return tuple(home.Module for home in homes if home is not None)


def is_wrapper(cls: type) -> bool:
    """True for equinox's wrappers of methods and functions: modules in form, not in meaning."""
    return cls.__module__.startswith("equinox.") and not cls.__module__.startswith("equinox.nn.")


def is_variable(value: Any) -> bool:
    """True for objects that flax compares by identity: its modules and variables."""
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(value, (nnx.Module, nnx.Variable))


def holds_modules(module: Any) -> bool:
    """True if an attribute of ``module`` is a module, or a container with a module."""
    modules = bases()
    content = list(vars(module).values())
    leaves = jax.tree.leaves(content, is_leaf=lambda value: isinstance(value, modules))
    return any(isinstance(leaf, modules) for leaf in leaves)
