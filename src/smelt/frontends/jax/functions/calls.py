"""Trace a marked call as a jitted function of its array arguments, with the mark as its name.

Only arrays that JAX traces become arguments and results. All other objects pass through unchanged,
so a marked call runs the same Python code as the plain call.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax

from smelt.frontends.jax import frames
from smelt.frontends.jax.functions import objects
from smelt.frontends.jax.functions.marks import Mark

frames.hide_frames(__file__)


def call_marked(
    mark: Mark, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Return ``fn(*args, **kwargs)``, traced as one call.

    Traced arrays among the arguments become operands; other arrays that ``fn`` reads are captured.
    """
    names, arrays = _traced(fn, args, kwargs)
    returned: list[tuple[list[Any], Any]] = []

    def body(*tracers: Any) -> list[Any]:
        """Call ``fn`` with ``tracers`` for the traced arguments; return the traced results."""
        inner = dict(zip(names, tracers, strict=True))
        result = fn(
            *(inner.get(str(i), value) for i, value in enumerate(args)),
            **{key: inner.get(key, value) for key, value in kwargs.items()},
        )
        leaves, tree = jax.tree.flatten(result, is_leaf=objects.is_variable)
        returned.append((leaves, tree))
        return [leaf for leaf in leaves if objects.is_traced(leaf)]

    body.__name__ = str(replace(mark, arguments=_names(fn, names)))
    results = iter(jax.jit(body)(*arrays))
    leaves, tree = returned[0]
    filled = [next(results) if objects.is_traced(leaf) else leaf for leaf in leaves]
    return jax.tree.unflatten(tree, filled)


def _traced(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[str], list[Any]]:
    """Return the names (position or keyword) and values of the arguments that are traced arrays.

    Arrays inside of containers and modules are not among them; the jitted function captures those.
    """
    named = [*((str(i), value) for i, value in enumerate(args)), *kwargs.items()]
    traced_arguments = [(name, value) for name, value in named if objects.is_traced(value)]
    return [name for name, _ in traced_arguments], [value for _, value in traced_arguments]


def _names(fn: Callable[..., Any], keys: Sequence[str]) -> tuple[str, ...]:
    """Return names for the inputs of the function: the parameter names of ``fn``."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    single = [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_POSITIONAL]
    names = []
    for key in keys:
        position = int(key) if key.isdecimal() else None
        if position is None:
            name = key
        else:
            name = single[position] if position < len(single) else f"x{position}"
        names.append(re.sub(r"\W", "_", name))
    return tuple(names)
