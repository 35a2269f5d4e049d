"""Open a folder that the target ``wasm`` wrote before, and run its module here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from smelt.errors import UsageError
from smelt.native.emit.names import check_identifier
from smelt.native.interface_file import InterfaceFile, digest, from_json
from smelt.runtime.interface import Interface
from smelt.runtime.run_bounds import RunBounds
from smelt.runtime.wasm_runner import WasmModule
from smelt.targets.runner import Runner
from smelt.targets.saved_folder import Saved

SCHEMA = "smelt.wasm/1"
"""The schema of the interface file."""


def runner_of(
    files: Mapping[str, bytes],
    name: str,
    interface: Interface,
    sizes: RunBounds,
    lengths: RunBounds,
) -> Runner:
    """Return the runner of the files of a folder on this machine: Node or wasmtime."""
    return WasmModule(files, name, interface, sizes, lengths)


def open_folder(folder: Path) -> Saved | None:
    """Return the model in ``folder``, which has an interface file ``NAME.json``; None without one.

    Raises UsageError E616 if a file is missing or damaged.
    """
    for path in sorted(folder.glob("*.json")):
        contents = from_json(SCHEMA, path.read_bytes(), path.name)
        if contents is not None:
            return _saved(folder, contents)
    return None


def _saved(folder: Path, contents: InterfaceFile) -> Saved:
    """Read the files that ``contents`` lists, compare their digests with those listed, and return
    Saved; raises UsageError E616 for a missing or damaged file."""
    name = check_identifier(contents.name)
    ends = (".wasm", ".plain.wasm", ".weights", ".mjs")
    files = {}
    for file in (f"{name}{end}" for end in ends):
        if file not in contents.digests:
            continue
        path = folder / file
        files[file] = path.read_bytes() if path.is_file() else b""
        if digest(files[file]) != contents.digests[file]:
            what = "damaged" if path.is_file() else "missing"
            raise UsageError(
                "E616",
                f"{file!r} is {what} in {str(folder)!r}",
                why=f"{name}.json lists the file"
                + (" with another digest" if path.is_file() else ", and the folder lacks it"),
                fix="compile the model again, or copy the whole folder as smelt wrote it",
            )
    load = partial(runner_of, files, name, contents.interface, contents.sizes, contents.lengths)
    return Saved("wasm", contents.interface, load, ranges=contents.ranges)
