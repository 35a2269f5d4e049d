"""The cache key of a job: a hash of everything that its result depends on."""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from smelt.distribution import VERSION
from smelt.extensions import package_of

_LOCATION = re.compile(rb"\x0a\x08location\x12([\x80-\xff]?[\x00-\x7f])", re.DOTALL)
"""The protobuf bytes before the name of a weight file: the key, then the length of the name."""


def key_of(models: Sequence[str | Path], action: str, options: Sequence[str]) -> str:
    """Return a hash of everything that a result depends on.

    These are the bytes of ``models`` with their weights, of files that options name, the options,
    and smelt's version. Raises OSError if a model cannot be read.
    """
    total = hashlib.sha256()
    for part in (*_software(), action, *options):
        total.update(_digest(part.encode(errors="surrogateescape")))
    option_files = [name for option in options for name in _named_files(option)]
    for path in (*(file for model in models for file in files_of(model)), *option_files):
        with path.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def files_of(model: str | Path) -> list[Path]:
    """Return ``model`` and the existing weight files that it names, in its folder or below.

    The bytes are searched for names, which needs less memory than parsing and cannot fail on a
    damaged model; a false match only adds one file to the hash.
    """
    path = Path(model)
    names = sorted(set(_locations(path)))
    candidates = [Path(os.path.normpath(path.parent / name)) for name in names]
    inside = [file for file in candidates if file.is_relative_to(path.parent)]
    return [path, *(file for file in dict.fromkeys(inside) if file.is_file())]


def size_of(model: str | Path) -> int:
    """Return the bytes of the file ``model`` and its external weights; 0 without a file."""
    try:
        return sum(file.stat().st_size for file in files_of(model))
    except OSError:
        return 0


def _locations(model: Path) -> Iterator[str]:
    """Yield the names of weight files in the bytes of ``model``.

    A protobuf text has its length before it, in one or two bytes of seven bits each.
    """
    if not model.stat().st_size:
        return
    with model.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for match in _LOCATION.finditer(data):
            length_bytes = match[1]
            length = (
                length_bytes[0]
                if len(length_bytes) == 1
                else (length_bytes[0] & 0x7F) | length_bytes[1] << 7
            )
            name = data[match.end() : match.end() + length]
            if b"\0" not in name:
                yield os.fsdecode(name)


def _named_files(option: str) -> list[Path]:
    """Return the file that an option names: ``file``, ``@file``, ``--option=file`` or
    ``x=@file``."""
    candidates = {option, option.removeprefix("@"), option.rpartition("=")[2].removeprefix("@")}
    return [Path(name) for name in sorted(candidates) if Path(name).is_file()]


def _software() -> list[str]:
    """Return the versions of smelt and of the packages that extend it."""
    groups = [name for name in metadata.entry_points().groups if name.startswith("smelt.")]
    points = (point for name in groups for point in metadata.entry_points(group=name))
    packages = {package_of(point) for point in points}
    return [VERSION, *sorted(packages)]


def _digest(part: bytes) -> bytes:
    """Return the SHA-256 digest of ``part``."""
    return hashlib.sha256(part).digest()
