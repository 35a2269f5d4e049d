"""Open a folder that the target ``c`` wrote: build its library and call it in this process."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from smelt.errors import InternalError, UsageError
from smelt.native.emit.names import check_identifier
from smelt.native.interface_file import InterfaceFile, digest, from_json
from smelt.runtime.c_library import CLibrary, load_library, nbytes
from smelt.targets.c.contract import INTERFACE_VERSION, SCHEMA
from smelt.targets.c.emit import BLOBS
from smelt.targets.c.report_file import clock_file
from smelt.targets.c.session_files import library_name
from smelt.targets.runner import Runner
from smelt.targets.saved_folder import Saved

_MACRO = re.compile(r"^#define ([A-Z0-9_]+) (\d{1,18})\b", re.MULTILINE)


def open_folder(folder: Path) -> Saved | None:
    """Return the library in ``folder``; None if the folder has no interface file ``NAME.json``.

    Raises UsageError E616 if a file is missing or damaged, or if the header is that of another
    model or version.
    """
    for path in sorted(folder.glob("*.json")):
        read = from_json(SCHEMA, path.read_bytes(), path.name)
        if read is not None:
            return _library(folder, read)
    for header in sorted(folder.glob("*.h")):
        if f"{header.stem.upper()}_INTERFACE_VERSION ".encode() in header.read_bytes():
            raise _damaged_error(
                f"{header.stem}.json",
                folder,
                f"{header.name!r} is the header of a library, whose interface is in this file",
            )
    return None


def _damaged_error(file: str, folder: Path, why: str) -> UsageError:
    """Return UsageError E616 for a missing or damaged file."""
    what = "damaged" if (folder / file).is_file() else "missing"
    return UsageError(
        "E616",
        f"{file!r} is {what} in {str(folder)!r}",
        why=why,
        fix="compile the model again, or copy the whole folder as smelt wrote it",
    )


def _library(folder: Path, contents: InterfaceFile) -> Saved:
    """Check the files of a library and return it as Saved; ``load`` builds it."""
    name, interface = check_identifier(contents.name), contents.interface
    files = _files(folder, name, contents)
    changed = [
        file
        for file, data in files.items()
        if contents.digests.get(file, digest(data)) != digest(data)
    ]
    for file in (f"{name}{end}" for end in BLOBS.values()):
        if file in changed:
            raise _damaged_error(
                file, folder, f"its {len(files[file])} bytes are not those written"
            )
    sizes = sizes_of(name, files[f"{name}.h"])
    _check_agreement(folder, contents, sizes)
    if "STEPS_COUNT" in sizes:
        files[f"{name}_clock.c"] = clock_file(name)

    def load() -> Runner:
        """Load the library of the folder, or build it; a failure names a changed file, if there is
        one.
        """
        if _has_library(folder, name, contents):
            return CLibrary(
                folder.absolute() / library_name(name),
                f"{name}_run",
                interface,
                sizes["ARENA_BYTES"],
                sizes["ARENA_ALIGN"],
                sizes=contents.sizes,
                lengths=contents.lengths,
            )
        try:
            return load_library(
                files,
                name,
                interface,
                arena_bytes=sizes["ARENA_BYTES"],
                alignment=sizes["ARENA_ALIGN"],
                weights=files.get(f"{name}{BLOBS['bin']}"),
                sizes=contents.sizes,
                lengths=contents.lengths,
            )
        except InternalError as error:
            if not changed:
                raise
            raise _damaged_error(changed[0], folder, error.why or error.what) from error

    return Saved("c", interface, load, ranges=contents.ranges)


def _has_library(folder: Path, name: str, contents: InterfaceFile) -> bool:
    """True if the folder has the shared library of sessions, as it was written, and this machine
    loads libraries of its kind.
    """
    path = folder / library_name(name)
    written = contents.digests.get(path.name)
    if written is None or not path.is_file() or digest(path.read_bytes()) != written:
        return False
    try:
        ctypes.CDLL(str(path.absolute()))
    except OSError:
        return False
    return True


def _files(folder: Path, name: str, contents: InterfaceFile) -> dict[str, bytes]:
    """Return the contents of the files to build.

    Only files of fixed names are read, whatever the interface file lists.
    """
    always = [f"{name}{end}" for end in (".h", ".c", "_weights.h")]
    weights = [f"{name}{end}" for end in ("_weights.c", *BLOBS.values())]
    listed_weights = [file for file in weights if file in contents.digests]
    existing = listed_weights or [file for file in weights if (folder / file).is_file()]
    names = [*always, *(existing or weights[:1])]
    for file in names:
        if not (folder / file).is_file():
            raise _damaged_error(file, folder, "the library is built from this file")
    return {file: (folder / file).read_bytes() for file in names}


def sizes_of(name: str, header: bytes) -> dict[str, int]:
    """Return the numbers that the header defines, without the library's prefix."""
    prefix = f"{name.upper()}_"
    pairs = _MACRO.findall(header.decode("ascii", "replace"))
    return {macro.removeprefix(prefix): int(number) for macro, number in pairs}


def _check_agreement(folder: Path, contents: InterfaceFile, sizes: Mapping[str, int]) -> None:
    """Raise UsageError E616 unless header and interface file agree on all sizes.

    Buffers are allocated with the sizes of the interface file, and the compiled code writes as many
    bytes as the header says.
    """
    version = sizes.get("INTERFACE_VERSION", INTERFACE_VERSION)
    if version != INTERFACE_VERSION:
        raise UsageError(
            "E616",
            f"the library in {str(folder)!r} is of another version",
            why=f"its header has the interface version {version}, this smelt {INTERFACE_VERSION}",
            fix="compile the model again",
        )
    required = dict(_expected_macros(contents))
    if any(sizes.get(macro) != size for macro, size in required.items()) or not (
        {"ARENA_BYTES", "ARENA_ALIGN"} <= sizes.keys()
    ):
        raise UsageError(
            "E616",
            f"the header in {str(folder)!r} does not match the interface file",
            why="the files come from different runs, or were changed",
            fix="compile the model again",
        )


def _expected_macros(contents: InterfaceFile) -> Iterator[tuple[str, int]]:
    """Yield the macros and values that the header must have."""
    most = {name: high for name, (_, high) in (*contents.sizes.items(), *contents.lengths.items())}
    for number, high in enumerate(high for _, high in contents.sizes.values()):
        yield f"SIZE{number}_MAX", high
    for number, high in enumerate(high for _, high in contents.lengths.values()):
        yield f"LENGTH{number}_MAX", high
    for word, ports in (
        ("INPUT", contents.interface.inputs),
        ("OUTPUT", contents.interface.outputs),
    ):
        yield f"{word}S", len(ports)
        for number, port in enumerate(ports):
            yield f"{word}{number}_BYTES", nbytes(port, most)
