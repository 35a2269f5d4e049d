"""Write files so that a reader never sees half of one.

The bytes go to a temporary file in the folder of the destination, are flushed to disk, and take
the name of the destination in one step. Whatever fails, the file that stood there survives.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from smelt.errors import UsageError


def write_atomically(path: str | Path, data: bytes | bytearray | memoryview) -> Path:
    """Replace the file at ``path`` by ``data`` and return the path.

    Keeps the permissions of the file it replaces and writes through a symbolic link to the file
    behind it. A device or a pipe, which cannot be replaced, is written to directly.

    Raises UsageError E630 if the destination is a directory or cannot be written.
    """
    destination = Path(os.path.realpath(path))
    try:
        _write(destination, data)
    except OSError as error:
        raise UsageError(
            "E630",
            f"cannot write {os.fspath(path)!r}: {error.strerror or error}",
            fix="choose a destination in an existing folder that you may write to",
        ) from error
    return Path(path)


def _write(destination: Path, data: bytes | bytearray | memoryview) -> None:
    old = destination.stat() if destination.exists() else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with destination.open("wb") as stream:  # a directory raises IsADirectoryError
            stream.write(data)
        return
    temporary = destination.parent / f".smelt-{secrets.token_hex(8)}.tmp"
    # os.open applies the umask of the user, as for any new file; a mkstemp file would be private.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if old is not None:
                os.fchmod(stream.fileno(), stat.S_IMODE(old.st_mode))
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(destination)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(destination.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the file system lets a folder be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
