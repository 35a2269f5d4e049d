"""The constants of one trace: equal small constants are shared, large ones are never copied."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import jax
import numpy as np
import onnx_ir as ir

from smelt.errors import Unsupported, UsageError
from smelt.frontends.jax import compat
from smelt.frontends.jax.compat import Aval
from smelt.frontends.jax.element_types import has_onnx_type
from smelt.ir.build import Builder
from smelt.ir.constants import Constants

INTERNED = 1024
"""Constants up to this many bytes are compared by content, larger ones by identity."""


class ConstantPool:
    """Adds initializers to the main graph, which every subgraph may read.

    ``names`` maps the identity of an array to its name; ``known`` holds the elements of small ones.
    """

    def __init__(self, builder: Builder, names: Mapping[Hashable, str]) -> None:
        """Begin without constants; ``names`` are names for arrays, by identity.

        Small constants are shared by (dtype, shape, bytes), large ones by identity; an entry keeps
        its array alive, because ids of freed arrays are used again.
        """
        self._builder = builder
        self._by_bytes: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = {}
        self._by_identity: dict[Hashable, tuple[object, ir.Value]] = {}
        self.names = names
        self.known = Constants()

    def constant(self, array: np.ndarray) -> ir.Value:
        """Return ``array`` as a constant; equal small arrays give the same value."""
        if array.nbytes > INTERNED:
            return self._builder.constant(array.view())
        key = (str(array.dtype), array.shape, array.tobytes())
        cached = self._by_bytes.get(key)
        if cached is None:
            cached = self._by_bytes[key] = self._builder.constant(array.copy())
        return cached

    def captured(self, constant: object, aval: Aval) -> ir.Value:
        """Return a constant of a jaxpr in the dtype of ``aval``; one initializer per object.

        Raises UsageError E113 if ``constant`` is a tracer of another trace, and Unsupported E105 if
        ONNX lacks its element type.
        """
        if isinstance(constant, jax.core.Tracer):
            raise UsageError(
                "E113",
                f"your function uses an array of another trace, {aval.str_short()}",
                why="it was computed and stored while another function was traced, for instance by"
                " an import inside of that function",
                fix="compute such arrays, and import the modules that compute them, before you"
                " trace; start a new process if a module already holds such an array",
            )
        if not has_onnx_type(aval):
            raise Unsupported(
                "E105",
                f"your function uses an array of type {aval.str_short()}",
                why="ONNX has no such element type",
                fix="convert it to a type that ONNX has, outside of the function",
            )
        identity = compat.identity(constant)
        cached = self._by_identity.get((identity, aval.dtype))
        if cached is not None:
            return cached[1]
        array = compat.host_array(constant)
        if array.dtype != aval.dtype:
            array = array.astype(aval.dtype)
        name = self.names.get(identity)
        value = self._builder.constant(array.view(), name) if name else self.constant(array)
        if array.nbytes > INTERNED or name:
            # Keep the array alive, so that no other array gets its identity.
            self._by_identity[identity, aval.dtype] = (constant, value)
        return value
