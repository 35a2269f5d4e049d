"""A folder of compiled libraries that processes, and runs of them, share.

An entry is a folder that is named by all that its content depends on. It is written elsewhere and
renamed, so it is there as a whole or not at all, and of two processes that build the same, the
second takes what the first made. What is opened is code: an entry is taken only if it belongs to
this user, nobody else may write it, and its bytes are those that were written.
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
"""Bytes that the folder may hold; entries unused the longest go first."""

LIBRARY, DIGEST = "library.so", "sha256"
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_PARTIAL, _NOTE = ".partial-", ".note"
NOTES_STAY = 90 * 86400.0
"""Seconds after which a note is dropped."""


def default_root() -> Path:
    """``$SMELT_CACHE``, or the folder ``smelt`` where this user's programs keep what is cached."""
    given = os.environ.get(CACHE)
    if given:
        return Path(given).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "smelt"


class Cache:
    """The libraries below ``root``, of at most ``limit`` bytes in all.

    Methods raise OSError where the folder cannot be used: it is read-only, full, or could be
    written by somebody else.
    """

    def __init__(self, root: Path | None = None, limit: int = LIMIT) -> None:
        self.root = (default_root() if root is None else root).absolute()
        self.limit = limit

    def find(self, key: str) -> Path | None:
        """The library of ``key``; one that is damaged is removed, and None given."""
        entry = self.root / key
        if not entry.is_dir():
            return None
        _check_private(self.root)
        _check_private(entry)
        library = entry / LIBRARY
        try:
            wanted = (entry / DIGEST).read_text("ascii").strip()
            whole = _digest(library) == wanted
        except (OSError, UnicodeDecodeError):
            whole = False
        if not whole:
            _remove(entry)
            return None
        _check_private(library)
        with contextlib.suppress(OSError):  # in a folder that is only read, nothing is dropped
            os.utime(entry)
        return library

    def add(self, key: str, make: Callable[[Path], Path]) -> Path:
        """The library of ``key`` that ``make`` writes to an empty folder and returns the path of.

        What ``make`` raises is raised, and nothing stays.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(self.root)
        partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=self.root))
        try:
            made = make(partial)
            if made.name != LIBRARY:
                made.rename(partial / LIBRARY)
            (partial / DIGEST).write_text(_digest(partial / LIBRARY) + "\n", "ascii")
            for file in partial.iterdir():
                file.chmod(0o600)
            with contextlib.suppress(OSError):  # somebody else was first
                partial.rename(self.root / key)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        found = self.find(key)
        if found is None:
            raise OSError(f"what was written to {self.root} cannot be read")
        self._drop_old(key)
        return found

    def note(self, key: str, text: str = "") -> None:
        """Keep in mind that something was kept for ``key``, and ``text`` about it; see ``noted``.

        A reader finds the whole text, or that of an earlier note.
        """
        file, name = tempfile.mkstemp(prefix=_PARTIAL, dir=self.root)
        with os.fdopen(file, "w", encoding="ascii") as written:
            written.write(text)
        Path(name).replace(self.root / f"{key}{_NOTE}")

    def told(self, key: str) -> str:
        """The text of the note for ``key``; raises OSError if there is none."""
        _check_private(self.root)
        return (self.root / f"{key}{_NOTE}").read_text("ascii")

    def noted(self, key: str) -> bool:
        """Whether ``note`` was told so, in this process or another, and it is not long ago."""
        return (self.root / f"{key}{_NOTE}").is_file()

    def _drop_old(self, newest: str) -> None:
        self._drop_stale()
        used = []
        for entry in self.root.iterdir():
            with contextlib.suppress(OSError):  # another process may drop it at this moment
                size = sum(file.stat().st_size for file in entry.iterdir())
                used.append((entry.stat().st_mtime, size, entry))
        total = sum(size for _, size, _ in used)
        for _, size, entry in sorted(used):
            if total <= self.limit:
                break
            if entry.name != newest and not entry.name.startswith(_PARTIAL):
                _remove(entry)
                total -= size

    def _drop_stale(self) -> None:
        """Remove what a killed process had begun, and old notes."""
        for pattern, seconds in ((f"{_PARTIAL}*", 3600.0), (f"*{_NOTE}", NOTES_STAY)):
            for entry in self.root.glob(pattern):
                with contextlib.suppress(OSError):  # another process may drop it at this moment
                    if entry.lstat().st_mtime < time.time() - seconds:
                        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _check_private(path: Path) -> None:
    """Raise OSError unless ``path`` is this user's own, and nobody else may write it."""
    if not hasattr(os, "getuid"):  # Windows: the folder lies in what is the user's own
        return
    found = path.lstat()
    if found.st_uid == os.getuid() and stat.S_ISLNK(found.st_mode):
        found = path.stat()
    if found.st_uid != os.getuid() or found.st_mode & _WRITABLE_BY_OTHERS:
        raise PermissionError(f"{path} could be written by another user")


def _remove(entry: Path) -> None:
    """Take ``entry`` away at once, then delete it: nobody finds half of it."""
    doomed = entry.with_name(f"{_PARTIAL}{entry.name}-{os.getpid()}")
    with contextlib.suppress(OSError):
        entry.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)
