"""A folder of compiled libraries, shared by processes and kept between runs.

An entry is a folder named by a hash of everything on which its content depends. It is written under
a temporary name and then renamed, so readers see only complete entries. If two processes build the
same entry, the second one uses that of the first. Entries are code, so an entry is used only if
this user owns it, nobody else may write it, and its bytes match the stored digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from smelt.runtime.jit.variables import CACHE

LIMIT = 1 << 29
"""The most bytes of the folder; least recently used entries are deleted first."""

DECODERS = "decoders"
"""The folder in the cache that holds decoders; it has a limit of its own."""

LIBRARY, DIGEST = "library.so", "sha256"
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
PARTIAL, _NOTE = ".partial-", ".note"
NOTES_STAY = 90 * 86400.0
"""Seconds after which a note is deleted."""


def default_root() -> Path:
    """Return ``$SMELT_CACHE``, or the folder ``smelt`` in this user's cache folder."""
    folder = os.environ.get(CACHE)
    if folder:
        return Path(folder).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "smelt"


class Cache:
    """The libraries below ``root``, of at most ``limit`` bytes in total.

    Methods raise OSError if the folder is read-only, full, or writable by another user.
    """

    def __init__(self, root: Path | None = None, limit: int = LIMIT) -> None:
        self.root = (default_root() if root is None else root).absolute()
        self.limit = limit

    def find(self, key: str) -> Path | None:
        """Return the library of ``key``, or None; a damaged entry is removed."""
        entry = self.root / key
        if not entry.is_dir():
            return None
        check_private(self.root)
        check_private(entry)
        library = entry / LIBRARY
        try:
            digest = (entry / DIGEST).read_text("ascii").strip()
            is_complete = _digest(library) == digest
        except (OSError, UnicodeDecodeError):
            is_complete = False
        if not is_complete:
            _remove(entry)
            return None
        check_private(library)
        with contextlib.suppress(OSError):  # a read-only folder needs no access times
            os.utime(entry)
        return library

    def add(self, key: str, make: Callable[[Path], Path]) -> Path:
        """Call ``make`` on an empty folder, store the library whose path it returns; return its new
        path.

        Exceptions of ``make`` pass through and leave nothing behind.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private(self.root)
        partial = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=self.root))
        try:
            library = make(partial)
            if library.name != LIBRARY:
                library.rename(partial / LIBRARY)
            (partial / DIGEST).write_text(_digest(partial / LIBRARY) + "\n", "ascii")
            for file in partial.iterdir():
                file.chmod(0o600)
            with contextlib.suppress(OSError):  # another process stored the entry first
                partial.rename(self.root / key)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        stored = self.find(key)
        if stored is None:
            raise OSError(f"a library that was written to {self.root} cannot be read")
        self._drop_old(key)
        return stored

    def note(self, key: str, text: str = "") -> None:
        """Store a note for ``key`` with ``text``, atomically."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        file, name = tempfile.mkstemp(prefix=PARTIAL, dir=self.root)
        with os.fdopen(file, "w", encoding="ascii") as written:
            written.write(text)
        Path(name).replace(self.root / f"{key}{_NOTE}")

    def note_text(self, key: str) -> str:
        """Return the text of the note for ``key``; raises OSError if there is none."""
        check_private(self.root)
        return (self.root / f"{key}{_NOTE}").read_text("ascii")

    def has_note(self, key: str) -> bool:
        """True if a recent note for ``key`` exists, from this or another process."""
        return (self.root / f"{key}{_NOTE}").is_file()

    def _drop_old(self, newest: str) -> None:
        """Delete stale files, then the least recently used entries until the folder is within its
        limit.
        """
        self._drop_stale()
        used = []
        for entry in self.root.iterdir():
            if entry.name == DECODERS:
                continue
            with contextlib.suppress(OSError):  # another process may delete it at this moment
                size = sum(file.stat().st_size for file in entry.iterdir())
                used.append((entry.stat().st_mtime, size, entry))
        total = sum(size for _, size, _ in used)
        for _, size, entry in sorted(used):
            if total <= self.limit:
                break
            if entry.name != newest and not entry.name.startswith(PARTIAL):
                _remove(entry)
                total -= size

    def _drop_stale(self) -> None:
        """Delete partial entries of killed processes, and old notes."""
        for pattern, seconds in ((f"{PARTIAL}*", 3600.0), (f"*{_NOTE}", NOTES_STAY)):
            for entry in self.root.glob(pattern):
                with contextlib.suppress(OSError):  # another process may delete it at this moment
                    if entry.lstat().st_mtime < time.time() - seconds:
                        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_private(path: Path) -> None:
    """Raise OSError unless this user owns ``path`` and nobody else may write it."""
    if not hasattr(os, "getuid"):  # Windows: the folder is inside the user's profile
        return
    status = path.lstat()
    if status.st_uid == os.getuid() and stat.S_ISLNK(status.st_mode):
        status = path.stat()
    if status.st_uid != os.getuid() or status.st_mode & _WRITABLE_BY_OTHERS:
        raise PermissionError(f"{path} could be written by another user")


def _remove(entry: Path) -> None:
    """Rename ``entry`` and then delete it, so that no process sees half of it."""
    renamed = entry.with_name(f"{PARTIAL}{entry.name}-{os.getpid()}")
    with contextlib.suppress(OSError):
        entry.rename(renamed)
    shutil.rmtree(renamed, ignore_errors=True)
