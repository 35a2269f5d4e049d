"""Merge models into one file, and store weights of several models once."""

from __future__ import annotations
