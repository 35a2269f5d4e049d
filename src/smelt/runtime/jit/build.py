"""Return the library of a C text from the cache, or build and cache it."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from smelt.runtime.jit.cache import Cache
from smelt.runtime.jit.toolchain import this_toolchain
from smelt.runtime.jit.variables import CACHE


@contextmanager
def built(text: str, flags: Sequence[str] = (), depends: str = "") -> Iterator[Path]:
    """Yield the path of the library that the C program ``text`` compiles to; load it inside the
    block.

    Libraries are cached. ``depends`` is a text that names other dependences of the library, such as
    the version of Python; it is part of the cache key. Raises the errors of ``Toolchain.compile``,
    and UsageError E661 without a compiler.
    """
    tools = this_toolchain()
    cache = Cache()
    key = tools.key(text, *flags, depends)
    folder = None
    try:
        path = cache.find(key) or cache.add(key, lambda to: tools.compile(text, to, flags))
    except OSError as error:
        warn_once(f"compiled programs are not cached: {error}; {CACHE} can name another folder")
        folder = Path(tempfile.mkdtemp(prefix="smelt-"))
    try:
        yield path if folder is None else tools.compile(text, folder, flags)
    finally:
        if folder is not None:  # a loaded library does not need its file
            shutil.rmtree(folder, ignore_errors=True)


def library_key(text: str) -> str:
    """Return the cache key of the library of ``text``; UsageError E661 without a compiler."""
    return this_toolchain().key(text, "")


def is_cached(text: str) -> bool:
    """True if the library of ``text`` is in the cache; raises UsageError E661 or OSError."""
    return Cache().find(library_key(text)) is not None


@cache
def warn_once(message: str) -> None:
    """Warn once of a problem that makes programs slower but not wrong."""
    warnings.warn(message, RuntimeWarning, stacklevel=2)
