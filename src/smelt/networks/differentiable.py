"""Artifacts that are functions of JAX and PyTorch, too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from smelt.networks.array_kinds import is_traced, needs_gradient
from smelt.networks.expansion import Expansion
from smelt.runtime.interface import Value
from smelt.targets.base import Artifact


class Differentiable(Artifact):
    """An artifact whose results are sums of contractions.

    In a function that JAX traces, a call is a primitive with rules for ``jit``, ``vmap``, ``jvp``
    and ``grad``. PyTorch records a call if a tensor needs a gradient, and gets tensors.
    """

    @cached_property
    def expansion(self) -> Expansion:
        """The results as sums of contractions."""
        raise NotImplementedError

    def __call__(self, *inputs: Value) -> tuple[Value, ...]:
        """Run as ``Artifact`` does; traced or recorded inputs give such results."""
        for value in inputs:
            if type(value) is not np.ndarray:
                return self._called(inputs)
        return super().__call__(*inputs)

    def _called(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the results for inputs that are not all arrays of NumPy."""
        if is_traced(inputs):
            from smelt.networks.jax_artifact import traced_call

            return traced_call(self, inputs)
        if needs_gradient(inputs):
            from smelt.networks.torch_function import recorded_call

            return recorded_call(self, inputs)
        return super().__call__(*inputs)

    def options_of_einsum(self, path: Any, limit: int | None) -> dict[str, Any]:
        """Return the options of ``smelt.einsum`` for derivatives: those of the artifact."""
        options = self.plan.options if self.target == "host" else None
        own = {} if options is None else {"engine": options.engine, "threads": options.threads}
        return {"optimize": path, "memory_limit": limit, "views": False, **own}

    def in_jax(self, shapes: Sequence[tuple[int, ...]] | None = None) -> str:
        """Return how compiled JAX programs call the artifact, for inputs of ``shapes``.

        ``ffi``: on the CPU, XLA calls the compiled library. Otherwise ``callback`` with the reason:
        JAX calls Python, which calls the artifact. Compiles the artifact if it is not compiled yet.
        Only an artifact of symbolic sizes needs ``shapes``.
        """
        from smelt.networks.jax_artifact import route_of

        return route_of(self, shapes)
