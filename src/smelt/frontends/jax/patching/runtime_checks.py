"""Leave the run-time checks of ``equinox.error_if`` out of models.

A model cannot raise. As with debug prints, the values are the same without a check, and a warning
names each check that is left out. A check that fails while tracing raises as usual. A strict trace
keeps the checks, and so refuses them as Python callbacks.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import jax

from smelt.frontends.jax.patching.library_functions import EQUINOX_ERROR_IF, EQUINOX_ERROR_IF_JIT
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function


def _unchecked(original: Function) -> Function:
    """Return an ``error_if`` that warns and returns ``x`` if the condition is traced."""

    def error_if(x: Any, pred: Any, index: Any, msgs: Sequence[str], *, on_error: str) -> Any:
        """Return ``x``; warn of the left-out check, or make the check now if ``pred`` is known."""
        if not isinstance(pred, jax.core.Tracer):
            return original(x, pred, index, msgs, on_error=on_error)
        for text in dict.fromkeys(str(message).strip().partition("\n")[0] for message in msgs):
            warnings.warn(f"a check is left out of the model: {text}", stacklevel=4)
        return x

    return error_if


for _function in (EQUINOX_ERROR_IF, EQUINOX_ERROR_IF_JIT):
    register(
        Patch(
            _function.target,
            _unchecked,
            optional=True,
            parameters=_function.parameters,
            leaves_out=True,
        ),
    )
