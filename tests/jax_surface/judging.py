"""What JAX computes, what smelt says of it, and how the two are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax_surface.arguments import Arguments, function_of
from jax_surface.compare import SPECIFIED, differs
from jax_surface.patience import jax_computes
from jax_surface.surface import Entry
from jax_surface.trials import Trial

from smelt.errors import ErrorList, SmeltError

Cases = list[tuple[Trial, list[np.ndarray]]]


@dataclass(frozen=True)
class Verdict:
    """``kind``: right, wrong, refused or failed, which is an error that is none of ours."""

    entry: Entry
    case: str
    kind: str
    why: str = ""


def on_arrays(entry: Entry, arguments: Arguments) -> Callable[..., Any]:
    """The callable of its arrays, with results that an ONNX interface can carry."""
    called = function_of(entry, arguments)
    return lambda *arrays: [
        _parts(leaf) for leaf in jax.tree.leaves(called(*arrays)) if isinstance(leaf, jax.Array)
    ]


def computed(function: Callable[..., Any], inputs: list[np.ndarray]) -> list[np.ndarray]:
    """What JAX gives."""
    with jax_computes():
        return [np.asarray(leaf) for leaf in function(*map(jax.device_put, inputs))]


def with_results(function: Callable[..., Any], tried: Iterable[Trial]) -> Cases:
    """Each trial with what JAX computes; where JAX refuses there is nothing to compare."""
    answered = []
    for trial in tried:
        try:
            results = computed(function, trial.inputs)
        except Exception:  # noqa: BLE001 - a callable may refuse a size in any way it likes
            continue
        answered.append((trial, results))
    return answered


def refusal(error: SmeltError | ErrorList) -> str:
    errors = error.errors if isinstance(error, ErrorList) else [error]
    return "; ".join(f"{e.code} {e.what}: {e.why}" for e in errors)


def compared(entry: Entry, wanted: list[np.ndarray], actual: list[np.ndarray], loose: bool) -> str:
    """What is wrong with the outputs, empty if nothing."""
    specified = SPECIFIED.get(entry.name)
    if specified is not None and len(wanted) == len(actual):
        wanted, actual = specified(wanted), specified(actual)
    for index, (want, got) in enumerate(zip(wanted, actual, strict=True)):
        problem = differs(want, got, loose)
        if problem:
            return f"output {index}: {problem}"
    return ""


def _parts(leaf: Any) -> Any:
    """Keys as their bits, complex numbers as pairs: what an ONNX interface can carry."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    if jnp.iscomplexobj(leaf):
        return jnp.stack([leaf.real, leaf.imag], -1)
    return leaf
