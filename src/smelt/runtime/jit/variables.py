"""Variables of the environment that who runs programs may set, besides ``CC``."""

from __future__ import annotations

CACHE = "SMELT_CACHE"
"""The folder of compiled libraries."""

ENGINE = "SMELT_HOST_ENGINE"
"""The engine of the target ``host`` where none is asked for."""
