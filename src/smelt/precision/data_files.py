"""Read samples from files, folders and Python objects: one mapping from input names per sample."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from smelt.errors import UsageError
from smelt.runtime.array_files import SUFFIXES, read_arrays
from smelt.runtime.interface import Interface


def read_samples(source: Any, interface: Interface) -> Iterator[dict[str, np.ndarray]]:
    """Yield the samples in ``source``, each as arrays by input name.

    A folder holds .npz or .npy files, or folders with one .pb file per input, as in ONNX's tests.
    Files are read in the order of the numbers in their names. Raises UsageError E617 for files that
    cannot be read, E684 for an empty folder, E632 for arrays without a name.
    """
    if isinstance(source, str | Path):
        yield from _from_path(Path(source), interface)
    elif isinstance(source, Mapping):
        yield {str(name): np.asarray(array) for name, array in source.items()}
    elif hasattr(source, "__array__"):
        yield {_only_input(interface, "the array"): np.asarray(source)}
    elif isinstance(source, Iterable):
        for item in source:
            yield from read_samples(_in_order(item, interface), interface)
    else:
        raise UsageError(
            "E632",
            f"data of type {type(source).__name__} cannot be read",
            why="data are a file, a folder, an array, arrays by input name, or several of these",
            fix='calibrate=[{"x": first}, {"x": second}]',
        )


def _in_order(item: Any, interface: Interface) -> Any:
    """Return ``item`` as arrays by name if it is a tuple or list with one array per input.

    Any other item is returned unchanged.
    """
    ports = interface.inputs
    is_row = isinstance(item, tuple | list) and len(item) == len(ports)
    if is_row and all(hasattr(each, "__array__") for each in item):
        return {port.name: array for port, array in zip(ports, item, strict=True)}
    return item


def _from_path(path: Path, interface: Interface) -> Iterator[dict[str, np.ndarray]]:
    """Yield the samples in a file or a folder."""
    if not path.is_dir():
        yield _named(read_arrays(path), str(path), interface)
        return
    entries = sorted(path.iterdir(), key=lambda entry: _by_numbers(entry.name))
    files = [entry for entry in entries if entry.suffix in SUFFIXES and entry.is_file()]
    tensors = [file for file in files if file.suffix == ".pb" and file.name.startswith("input")]
    arrays = [file for file in files if file.suffix != ".pb"]
    folders = [entry for entry in entries if entry.is_dir()]
    for file in arrays:
        yield _named(read_arrays(file), str(file), interface)
    if tensors:
        merged = {name: array for file in tensors for name, array in read_arrays(file).items()}
        yield _named(merged, str(path), interface)
    for folder in folders:
        yield from _from_path(folder, interface)
    if not arrays and not tensors and not folders:
        raise UsageError(
            "E684",
            f"the folder {str(path)!r} holds no data",
            why=f"data are read from {', '.join(SUFFIXES)} files and from folders with them",
            fix="write each sample by np.savez(f'{folder}/{number}.npz', x=x)",
        )


def _named(
    arrays: Mapping[str, np.ndarray], place: str, interface: Interface
) -> dict[str, np.ndarray]:
    """Return ``arrays``; one without a name, as in a .npy file, gets that of the only input."""
    if "" not in arrays:
        return dict(arrays)
    return {_only_input(interface, f"the array in {place!r}"): arrays[""]}


def _only_input(interface: Interface, what: str) -> str:
    """Return the name of the input that has no default; raises UsageError E632 if several are."""
    names = [port.name for port in interface.inputs if port.default is None]
    if len(names) != 1:
        raise UsageError(
            "E632",
            f"{what} has no name, and the model has {len(names)} inputs",
            why=f"the inputs are {', '.join(map(repr, names)) or 'none'}",
            fix="give the arrays by name: np.savez('data.npz', x=x, mask=mask)",
        )
    return names[0]


def _by_numbers(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts 2.npz before 10.npz."""
    parts = re.findall(r"\d+|\D+", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
