"""Write a compiled decoder to a folder, in the form that ``saved`` reads."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from smelt.decoding.compiled import ArtifactCall
from smelt.decoding.network import Network
from smelt.decoding.program import Programs
from smelt.decoding.saved import DOCUMENT, WEIGHTS, document_bytes, machine
from smelt.native.packed_once import WeightFile
from smelt.runtime.file_digest import remember
from smelt.runtime.jit.cache import PARTIAL, Cache
from smelt.targets.host.stored import TakenProgram

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


class PartialFolder:
    """A new folder below ``parent``, whose file ``weights`` gets weights while they are packed.

    ``write`` gives it another name; otherwise it is deleted with this object.
    """

    def __init__(self, parent: Path) -> None:
        """Make the folder and the file; raises OSError."""
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._own = _folder_below(parent)
        self.weights = WeightFile(Path(self._own.name) / WEIGHTS)

    def write(self, folder: Path, programs: Programs, facts: Facts) -> bool:
        """Write ``programs`` to ``folder``, in place of what is there; False if they cannot be
        stored, because NumPy runs a part of them.

        ``folder`` appears with all its files. Raises OSError if it cannot be written.
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
        made, digests = Path(self._own.name), {}
        for name, path in libraries.items():
            assert path is not None
            digests[f"{name}.so"] = _copy(path, made / f"{name}.so")
        entries = {name: _entry(name, each, self.weights) for name, each in stored.items()}
        self.weights.close()
        digests[WEIGHTS] = self.weights.digest.hexdigest()
        (made / DOCUMENT).write_bytes(document_bytes(_document(facts, digests, entries)))
        for name, digest in digests.items():
            remember(made / name, digest)
        with _folder_below(folder.parent) as old:
            with contextlib.suppress(FileNotFoundError):
                folder.rename(Path(old) / "decoder")
            made.rename(folder)
        return True


def _folder_below(parent: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a new folder in ``parent``, which is deleted with the returned object."""
    return tempfile.TemporaryDirectory(prefix=PARTIAL, dir=parent, ignore_cleanup_errors=True)


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


def _entry(name: str, taken: TakenProgram, file: WeightFile) -> dict[str, Any]:
    """Return the entry of a program; its weights are written to ``file`` unless they are there."""
    places = []
    for array in taken.weights:
        start = file.places.get(array.ctypes.data)
        if start is None:
            start = file.write(np.ascontiguousarray(array), ALIGNMENT)
        places.append((start, array.nbytes))
    return {"library": f"{name}.so", "call": taken.program.to_json(), "weights": places}
