"""Calls that become calls of ONNX functions instead of being inlined.

``declare`` and ``selection`` choose the calls, ``calls`` marks them in the jaxpr during a trace,
and ``bodies`` writes one function for all calls that have equal bodies.
"""

from __future__ import annotations

from smelt.frontends.jax.functions.declare import function

__all__ = ["function"]
