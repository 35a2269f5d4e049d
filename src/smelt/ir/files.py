"""Write files so that a reader never sees half of one.

The bytes go to a temporary file in the folder of the destination, are flushed to disk, and the file
is renamed to the destination in one step. On any failure the old files stay, and no temporary file
is left.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, TypeAlias

from smelt.errors import ResourceLimit, SmeltError, UsageError

Content: TypeAlias = "bytes | bytearray | memoryview | Callable[[BinaryIO], None]"
"""The bytes of a file, or a function that writes them into a stream piece by piece."""

FULL = (errno.ENOSPC, errno.EDQUOT)


def destination(path: str | Path) -> Path:
    """Return ``path`` as a Path; raises UsageError E614 if it is not a path."""
    try:
        return Path(path)
    except TypeError as error:
        raise UsageError(
            "E614",
            f"cannot write to {path!r}",
            why=f"it is of type {type(path).__name__}, and a path is a string or a pathlib.Path",
            fix="give the path of a file as a string",
        ) from error


def write_atomically(path: str | Path, content: Content) -> Path:
    """Replace the file at ``path`` by ``content`` and return the path.

    Keeps the permissions of the old file and writes through a symbolic link to the file behind it.
    A device or a pipe, which cannot be replaced, is written to directly. Raises UsageError E630 if
    the destination is a directory or cannot be written, ResourceLimit E505 if the disk is full.
    """
    return write_together({Path(path): content})[0]


def write_together(contents: Mapping[Path, Content]) -> list[Path]:
    """Replace several files as one step: all are written completely before the first is renamed.

    If a rename fails, the earlier renames are undone. Raises as ``write_atomically`` does.
    """
    files = [_File(path, content) for path, content in contents.items()]
    try:
        for file in files:
            file.guarded(file.write)
        for file in files:
            file.keeps_old = file is not files[-1]
            file.guarded(file.take_name)
    except BaseException:
        for file in files:
            file.undo()
        raise
    for file in files:
        file.finish()
    return list(contents)


class _File:
    """One file being written: a temporary file, then renamed, undone on failure."""

    def __init__(self, path: Path, content: Content) -> None:
        """Plan to write ``content`` to ``path``; links are followed to the ``destination``.

        ``old`` is the former file, moved aside until all files are written.
        """
        self.path = path
        self.content = content
        self.destination = Path(os.path.realpath(path))
        self.temporary: Path | None = None
        self.old: Path | None = None
        self.is_in_place = False
        self.keeps_old = False

    def guarded(self, step: Callable[[], None]) -> None:
        """Run ``step`` and turn an OSError into an error of smelt about this file."""
        try:
            step()
        except OSError as error:
            raise _refusal(self.path, error) from error

    def write(self) -> None:
        """Write the temporary file, with the permissions of the old file; write to a device
        directly."""
        status = self.destination.stat() if self.destination.exists() else None
        if status is not None and not stat.S_ISREG(status.st_mode):
            with self.destination.open("wb") as stream:  # a directory raises IsADirectoryError
                _write_content(self.content, stream)
            return
        self.temporary = self._new_sibling()
        # os.open applies the user's umask, as for any new file; a mkstemp file would be private.
        descriptor = os.open(self.temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as stream:
            if status is not None:
                os.fchmod(stream.fileno(), stat.S_IMODE(status.st_mode))
            _write_content(self.content, stream)
            stream.flush()
            os.fsync(stream.fileno())

    def take_name(self) -> None:
        """Rename the temporary file to the destination; with ``keeps_old``, rename the old file
        first."""
        if self.temporary is None:
            return
        if self.keeps_old and self.destination.exists():
            old = self._new_sibling()
            self.destination.rename(old)
            self.old = old
        self.temporary.replace(self.destination)
        self.temporary, self.is_in_place = None, True

    def undo(self) -> None:
        """Delete the temporary file and restore the old file."""
        with contextlib.suppress(OSError):
            if self.temporary is not None:
                self.temporary.unlink()
        with contextlib.suppress(OSError):
            if self.old is not None:
                self.old.replace(self.destination)
            elif self.is_in_place:
                self.destination.unlink()

    def finish(self) -> None:
        """Delete the old file and sync the folder."""
        with contextlib.suppress(OSError):
            if self.old is not None:
                self.old.unlink()
        if self.is_in_place:
            _sync_folder(self.destination.parent)

    def _new_sibling(self) -> Path:
        """Return an unused path for a temporary file in the folder of the destination."""
        return self.destination.parent / f".smelt-{secrets.token_hex(8)}.tmp"


def _write_content(content: Content, stream: BinaryIO) -> None:
    """Write ``content`` into ``stream``."""
    if callable(content):
        content(stream)
    else:
        stream.write(content)


def _refusal(path: Path, error: OSError) -> SmeltError:
    """Return the error for an OSError: E505 if the disk is full, else E630."""
    what = f"cannot write {os.fspath(path)!r}"
    if error.errno in FULL:
        return ResourceLimit(
            "E505",
            f"{what}: the disk is full",
            why=error.strerror or str(error),
            fix="free some space, or write to another disk; an existing file is unchanged",
        )
    fix = "choose a destination in an existing folder that you may write to"
    if error.errno == errno.EFBIG:
        fix = "raise the limit on the size of files (`ulimit -f`), or write to a disk that has none"
    return UsageError("E630", what, why=error.strerror or str(error), fix=fix)


def _sync_folder(folder: Path) -> None:
    """Make the rename durable where the file system lets a folder be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
