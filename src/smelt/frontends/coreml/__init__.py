"""The Core ML frontend: read the ML Program of a package, operator by operator."""

from __future__ import annotations

from smelt.frontends.coreml.detect import is_core_ml

__all__ = ["is_core_ml"]
