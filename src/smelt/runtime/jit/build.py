"""A library for a C text: from the cache, or built and kept there."""

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
    """The library of ``text``, there to be loaded; ``depends`` is what else it hangs on.

    Raises what ``Toolchain.compile`` does, and UsageError E661 without a compiler.
    """
    tools = this_toolchain()
    kept = Cache()
    key = tools.key(text, *flags, depends)
    folder = None
    try:
        path = kept.find(key) or kept.add(key, lambda to: tools.compile(text, to, flags))
    except OSError as error:
        say_once(f"compiled programs are not kept: {error}; {CACHE} can name another folder")
        folder = Path(tempfile.mkdtemp(prefix="smelt-"))
    try:
        yield path if folder is None else tools.compile(text, folder, flags)
    finally:
        if folder is not None:  # what is loaded needs its file no more
            shutil.rmtree(folder, ignore_errors=True)


def library_key(text: str) -> str:
    """What the cache calls the library of ``text``; raises UsageError E661 without a compiler."""
    return this_toolchain().key(text, "")


def is_kept(text: str) -> bool:
    """Whether ``built`` would find the library of ``text``; raises UsageError E661, OSError."""
    return Cache().find(library_key(text)) is not None


@cache
def say_once(message: str) -> None:
    """Warn of what makes a program slow, not wrong, the first time that it happens."""
    warnings.warn(message, RuntimeWarning, stacklevel=2)
