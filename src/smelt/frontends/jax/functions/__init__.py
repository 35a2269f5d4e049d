"""Calls that become calls of ONNX functions instead of being inlined.

``declare`` and ``selection`` choose the calls, ``calls`` marks them in the jaxpr while a trace
runs, and ``bodies`` writes one function for all calls that compute the same.
"""

from __future__ import annotations

from smelt.frontends.jax.functions.declare import function

__all__ = ["function"]
