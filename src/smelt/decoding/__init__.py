"""Generate text by a decoder: the caches of keys and values stay in place from token to token."""

from __future__ import annotations
