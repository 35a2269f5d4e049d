"""Open a folder of a C library that was written before: build it, and call it here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from smelt.errors import UsageError
from smelt.native.names import check_identifier
from smelt.runtime.c_library import load_library, nbytes
from smelt.targets.base import Runner, Saved
from smelt.targets.c.emit import BLOBS
from smelt.targets.c.interface_file import Told, from_json
from smelt.targets.c.report_file import clock_file

_MACRO = re.compile(r"^#define ([A-Z0-9_]+) (\d{1,18})\b", re.MULTILINE)


def open_folder(folder: Path) -> Saved | None:
    """The library in ``folder``, whose interface is in a ``NAME.json``; None if there is none.

    Raises UsageError E616 if a file is missing, or if its header is that of another model.
    """
    for path in sorted(folder.glob("*.json")):
        read = from_json(path.read_bytes(), path.name)
        if read is not None:
            return _library(folder, read)
    return None


def _library(folder: Path, told: Told) -> Saved:
    name, interface = told.name, told.interface
    files = _files(folder, check_identifier(name))
    sizes = sizes_of(name, files[f"{name}.h"])
    if "STEPS_COUNT" in sizes:
        files[f"{name}_clock.c"] = clock_file(name)
    _check_agreement(folder, told, sizes)
    arena, alignment = sizes["ARENA_BYTES"], sizes["ARENA_ALIGN"]

    def load() -> Runner:
        return load_library(
            files,
            name,
            interface,
            arena_bytes=arena,
            alignment=alignment,
            weights=files.get(f"{name}{BLOBS['bin']}"),
            sizes=told.sizes,
            lengths=told.lengths,
        )

    return Saved("c", interface, load, ranges=told.ranges)


def _files(folder: Path, name: str) -> dict[str, bytes]:
    names = [f"{name}{end}" for end in (".h", ".c", "_weights.h")]
    ends = ("_weights.c", *BLOBS.values())
    found = [f"{name}{end}" for end in ends if (folder / f"{name}{end}").is_file()]
    names += found or [f"{name}_weights.c"]
    missing = [file for file in names if not (folder / file).is_file()]
    if missing:
        raise UsageError(
            "E616",
            f"{missing[0]!r} is missing in {str(folder)!r}",
            fix="compile the model again, or run the folder as it was written",
        )
    return {file: (folder / file).read_bytes() for file in names}


def sizes_of(name: str, header: bytes) -> dict[str, int]:
    """The numbers that the header defines, without the prefix of the library."""
    prefix = f"{name.upper()}_"
    pairs = _MACRO.findall(header.decode("ascii", "replace"))
    return {macro.removeprefix(prefix): int(number) for macro, number in pairs}


def _check_agreement(folder: Path, told: Told, sizes: Mapping[str, int]) -> None:
    """Memory is handed over by the interface and used by the code: both must say the same."""
    wanted = dict(_wanted(told))
    if any(sizes.get(macro) != size for macro, size in wanted.items()) or not (
        {"ARENA_BYTES", "ARENA_ALIGN"} <= sizes.keys()
    ):
        raise UsageError(
            "E616",
            f"the header in {str(folder)!r} is not that of its interface file",
            why="the files come from different runs, or were changed",
            fix="compile the model again",
        )


def _wanted(told: Told) -> Iterator[tuple[str, int]]:
    most = {name: high for name, (_, high) in (*told.sizes.items(), *told.lengths.items())}
    for number, high in enumerate(high for _, high in told.sizes.values()):
        yield f"SIZE{number}_MAX", high
    for number, high in enumerate(high for _, high in told.lengths.values()):
        yield f"LENGTH{number}_MAX", high
    for word, ports in (("INPUT", told.interface.inputs), ("OUTPUT", told.interface.outputs)):
        yield f"{word}S", len(ports)
        for number, port in enumerate(ports):
            yield f"{word}{number}_BYTES", nbytes(port, most)
