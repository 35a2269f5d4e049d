"""Write a compiled decoder to a folder, in the form that ``saved`` reads."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from smelt.decoding.compiled import ArtifactCall
from smelt.decoding.network import Network
from smelt.decoding.program import Programs
from smelt.decoding.saved import DOCUMENT, WEIGHTS, document_bytes, machine
from smelt.runtime.file_digest import remember
from smelt.runtime.jit.cache import PARTIAL, Cache

ALIGNMENT = 64
"""Weights begin at a cache line."""


@dataclass(frozen=True)
class Facts:
    """What a saved decoder holds besides its programs; see ``SavedDecoder``."""

    step: Network
    first: Network | None
    room: int | None
    context: int
    given: Sequence[str]
    threads: int


def write_decoder(folder: Path, programs: Programs, facts: Facts) -> bool:
    """Write ``programs`` to ``folder``, in place of what is there; False if they cannot be stored.

    They cannot if NumPy runs a part of them. The folder appears with all its files. Raises OSError
    if it cannot be written.
    """
    calls = {"step": programs.step.call}
    if programs.prompt is not programs.step:
        calls["prompt"] = programs.prompt.call
    taken = {
        name: call.taken() if isinstance(call, ArtifactCall) else None
        for name, call in calls.items()
    }
    stored = {name: each for name, each in taken.items() if each is not None}
    libraries = {name: Cache().find(each.key) for name, each in stored.items()}
    if len(stored) < len(calls) or None in libraries.values():
        return False
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _partial_folder(folder) as partial, _partial_folder(folder) as old:
        digests = {}
        for name, path in libraries.items():
            assert path is not None
            digests[f"{name}.so"] = _copy(path, partial / f"{name}.so")
        weights = _Weights()
        with (partial / WEIGHTS).open("wb") as file:
            entries = {
                name: {
                    "library": f"{name}.so",
                    "call": each.program.to_json(),
                    "weights": [weights.add(file, array) for array in each.weights],
                }
                for name, each in stored.items()
            }
        digests[WEIGHTS] = weights.digest.hexdigest()
        document = _document(facts, digests, entries)
        (partial / DOCUMENT).write_bytes(document_bytes(document))
        for name, digest in digests.items():
            remember(partial / name, digest)
        with contextlib.suppress(FileNotFoundError):
            folder.rename(old / "decoder")
        partial.rename(folder)
    return True


@contextlib.contextmanager
def _partial_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder beside ``folder``, which is deleted in the end unless it was renamed."""
    made = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=folder.parent))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _copy(source: Path, to: Path) -> str:
    """Copy a library and return its digest."""
    shutil.copyfile(source, to)
    return hashlib.sha256(to.read_bytes()).hexdigest()


def _document(
    facts: Facts, digests: Mapping[str, str], entries: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the document of a decoder."""
    return {
        **machine(),
        "step": facts.step.to_json(),
        "first": None if facts.first is None else facts.first.to_json(),
        "room": facts.room,
        "context": facts.context,
        "given": list(facts.given),
        "threads": facts.threads,
        "files": digests,
        "programs": entries,
    }


class _Weights:
    """The arrays that were written to a file so far, equal ones once."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._end = 0
        self._starts: dict[bytes, int] = {}

    def add(self, file: BinaryIO, array: np.ndarray) -> tuple[int, int]:
        """Write the bytes of ``array`` unless they are there; return where they start, and how many
        they are."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        key = hashlib.sha256(data).digest()
        if key not in self._starts:
            padding = bytes(-self._end % ALIGNMENT)
            for part in (padding, data):
                file.write(part)
                self.digest.update(part)
            self._starts[key] = self._end + len(padding)
            self._end = self._starts[key] + len(data)
        return self._starts[key], len(data)
