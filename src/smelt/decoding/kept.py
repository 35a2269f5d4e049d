"""Compiled decoders in the cache, so that the next process starts at once."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Collection
from pathlib import Path

from smelt.decoding.saved import DOCUMENT, SavedDecoder, read_decoder
from smelt.errors import SmeltError
from smelt.runtime.jit.cache import DECODERS, PARTIAL, check_private, default_root

LIMIT = 1 << 33
"""The most bytes of all decoders in the cache; the least recently used ones are deleted first."""

ABANDONED = 3600.0
"""The age in seconds at which an unfinished folder is deleted: its process has ended."""


def folder_of(key: str) -> Path:
    """Return the folder of the decoder with the ``key``."""
    return default_root().absolute() / DECODERS / key


def kept_decoder(key: str, given: Collection[str]) -> SavedDecoder | None:
    """Return the decoder with the ``key`` from the cache; None if there is none that can be run."""
    folder = folder_of(key)
    try:
        for each in (folder.parent, folder, folder / DOCUMENT):
            check_private(each)
        decoder = read_decoder(folder, given)
    except (SmeltError, OSError):
        return None
    with contextlib.suppress(OSError):  # a read-only folder needs no times
        os.utime(folder)
    return decoder


def drop_old(newest: str) -> None:
    """Delete the least recently used decoders until all are within the limit; keep ``newest``."""
    used, now = [], time.time()
    for folder in folder_of(newest).parent.iterdir():
        with contextlib.suppress(OSError):  # another process may delete it at this moment
            last_use = folder.stat().st_mtime
            if folder.name.startswith(PARTIAL):
                if last_use < now - ABANDONED:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            size = sum(file.stat().st_size for file in folder.iterdir())
            used.append((folder.name == newest, last_use, size, folder))
    total = sum(size for _, _, size, _ in used)
    for is_newest, _, size, folder in sorted(used):
        if total <= LIMIT or is_newest:
            break
        shutil.rmtree(folder, ignore_errors=True)
        total -= size
