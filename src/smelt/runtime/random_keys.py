"""Convert JAX's random keys to the integers that models read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from smelt.runtime.interface import Interface, Value


def key_data(value: Any) -> Any:
    """Return ``jax.random.key_data`` of an array of keys, which NumPy cannot read; others
    unchanged.
    """
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(value, jax.Array):
        return value
    is_keys = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(value) if is_keys else value


def on_key_data(
    interface: Interface, run: Callable[..., Sequence[Value]]
) -> Callable[..., Sequence[Value]]:
    """Wrap ``run``, which takes the integers of keys, so that it also takes keys.

    Returns ``run`` itself if no input has the type of these integers.
    """
    if all(port.dtype != ir.DataType.UINT32 for port in interface.inputs):
        return run
    return lambda *inputs: run(*map(key_data, inputs))
