"""The SHA-256 of files, remembered in the cache as long as the files do not change."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

from smelt.runtime.jit.cache import Cache

SETTLED = 2.0
"""The least age in seconds of a file whose digest is remembered. A file system with coarse times
may give a younger one the same times again after a change."""


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and digests of all files in a folder.

    It is remembered by size, times and inode of the file. Raises OSError if there is no such file.
    """
    if path.is_dir():
        hashed = hashlib.sha256()
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                file = Path(folder, name)
                hashed.update(f"{file.relative_to(path)}\n{digest_of(file)}\n".encode())
        return hashed.hexdigest()
    status = path.stat()
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return Cache().note_text(_note(status))
    began = time.time()
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    is_settled = max(status.st_mtime, status.st_ctime) < began - SETTLED
    if is_settled and _note(path.stat()) == _note(status):
        remember(path, digest)
    return digest


def remember(path: Path, digest: str) -> None:
    """Remember the ``digest`` of a file that this process has just written."""
    with contextlib.suppress(OSError):  # without a note, it is computed again
        Cache().note(_note(path.stat()), digest)


def _note(status: os.stat_result) -> str:
    """Return the name of the note on a file; it changes when the file is written or replaced.

    No program can set the ctime of a file. So a file that was replaced by one with the same size
    and mtime has another note.
    """
    times = (status.st_mtime_ns, status.st_ctime_ns)
    identity = (status.st_dev, status.st_ino, status.st_size, *times)
    return hashlib.sha256(f"digest {identity}".encode()).hexdigest()
