"""Silences the log of onnx_ir, because smelt reports the same problems as errors of its own.

Without a handler Python prints log lines to stderr, above smelt's error or beside the result of a
model that smelt accepts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def silent_onnx_ir() -> Iterator[None]:
    """Drop the log records of onnx_ir in this thread within the block; other threads log as
    usual."""
    _install_filter()
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


@cache
def _install_filter() -> None:
    """Drop log records of onnx_ir in threads that silenced it; the filter is installed once."""
    logging.getLogger("onnx_ir.serde").addFilter(lambda record: not _silent.get())
