"""onnx_ir logs what it finds wrong with a model; smelt says the same in errors of its own.

Without a handler Python prints such lines to stderr, where they stand before our error or beside
the result of a model that we take.
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
    """Drop what onnx_ir logs while it reads or writes a model within the block, in this thread;
    what others have it do is logged as ever."""
    _install_filter()
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


@cache
def _install_filter() -> None:
    logging.getLogger("onnx_ir.serde").addFilter(lambda record: not _silent.get())
