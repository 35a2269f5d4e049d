"""A compiled decoder in a folder, which runs without the compiler.

    decoder.json   inputs, outputs and sizes of the programs, and the digests of the other files
    weights.bin    the weights as the kernels read them, mapped; each once for all programs
    *.so           the library of the prompt and that of a step

The code is for the CPU on which it was compiled, and for one sequence.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from smelt.decoding.network import Network
from smelt.decoding.program import FirstProgram, Program, Programs, Shape
from smelt.decoding.state import Array
from smelt.distribution import VERSION
from smelt.errors import InvalidModel, UsageError, listed
from smelt.runtime.file_digest import digest_of
from smelt.runtime.jit.open_caller import OpenCaller
from smelt.runtime.jit.stored_program import StoredProgram
from smelt.runtime.jit.toolchain import cpu

SCHEMA = "smelt.decoder/1"
AGAIN = "compile it again: smelt generate MODEL -o FOLDER"
DOCUMENT, WEIGHTS = "decoder.json", "weights.bin"


@dataclass(frozen=True)
class SavedDecoder:
    """The contents of a folder: the networks of a step and of a prompt, and their programs.

    ``room`` is the most tokens that the model has room for, None for any number; ``context`` is the
    number that the programs were compiled for.
    """

    step: Network
    first: Network | None
    programs: Programs
    room: int | None
    context: int


class SavedCall:
    """A compiled program that was loaded from a file."""

    def __init__(self, program: StoredProgram, caller: OpenCaller) -> None:
        self.inputs: Mapping[str, np.dtype] = {port.name: port.numpy() for port in program.inputs}
        self.outputs: Sequence[str] = [port.name for port in program.outputs]
        self._caller = caller

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        """Return the outputs; raises InvalidModel E321 if the run fails."""
        results = self._caller(*arrays)
        if results is None:
            raise InvalidModel(
                "E321",
                "the compiled decoder gave no result",
                why="an index is out of range, or sizes do not fit each other",
                fix="check the inputs that hold indices or sizes",
            )
        return results

    def takes(self, shapes: Sequence[Sequence[Shape]]) -> bool:
        """True if the program runs inputs of all ``shapes``."""
        return all(self._caller.takes(tuple(each)) for each in shapes)

    def begin(self, shapes: Sequence[Sequence[Shape]]) -> bool:
        """Return False: the program is compiled."""
        return False


def is_saved(path: object) -> bool:
    """True if ``path`` is a folder with a compiled decoder."""
    return isinstance(path, str | Path) and (Path(path) / DOCUMENT).is_file()


def read_decoder(folder: Path, given: Collection[str], threads: int | None = None) -> SavedDecoder:
    """Return the decoder in ``folder``; its weights are mapped.

    ``given`` are the inputs that the caller gives, ``threads`` the number of threads, None for any.
    Raises UsageError E807 for a decoder of another CPU or version of smelt or with other inputs or
    threads, and for files that are missing or damaged.
    """
    document = _document(folder)
    for name, here in machine().items():
        if document.get(name) != here:
            raise refused(folder, f"it was compiled for another {name.replace('_', ' ')}")
    for name, digest in document["files"].items():
        if not (folder / name).is_file() or digest_of(folder / name) != digest:
            raise refused(folder, f"its file {name!r} is missing or damaged")
    if threads not in (None, document["threads"]):
        why = f"it was compiled for --threads {document['threads']}"
        raise refused(folder, why, fix="leave --threads out, or compile it again")
    if set(given) != set(document["given"]):
        names = listed(sorted(document["given"]), 6) or "none"
        raise refused(folder, f"it takes these inputs: {names}", fix="give these with --input")
    try:
        return _decoder(folder, document)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise refused(folder, f"its files do not fit each other: {error}") from error


def machine() -> dict[str, str]:
    """Return what a compiled decoder depends on besides its files."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "platform": sys.platform,
        "CPU": hashlib.sha256(cpu().encode()).hexdigest(),
    }


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the text of ``document`` behind a line with its digest."""
    text = json.dumps(document)
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n".encode()


def _document(folder: Path) -> dict[str, Any]:
    """Return the document in ``folder``; raises UsageError E807 for a damaged one."""
    try:
        digest, text = (folder / DOCUMENT).read_text("utf-8").splitlines()
        if hashlib.sha256(text.encode()).hexdigest() == digest:
            document: dict[str, Any] = json.loads(text)
            return document
    except (OSError, ValueError):
        pass
    raise refused(folder, f"its file {DOCUMENT!r} is damaged")


def _decoder(folder: Path, document: Mapping[str, Any]) -> SavedDecoder:
    """Return the decoder that ``document`` describes."""
    memory = _mapped(folder / WEIGHTS)
    step = Network.from_json(document["step"])
    first = None if document["first"] is None else Network.from_json(document["first"])
    calls = {
        name: _call(folder, entry, memory, document["threads"])
        for name, entry in document["programs"].items()
    }
    one = Program(step, calls["step"])
    prompt = one
    if first is not None:
        prompt = FirstProgram(first, calls["prompt"], step)
    elif "prompt" in calls:
        prompt = Program(step, calls["prompt"])
    return SavedDecoder(step, first, Programs(prompt, one), document["room"], document["context"])


def _mapped(path: Path) -> np.ndarray:
    """Return the bytes of the file of weights, mapped; an empty file cannot be mapped."""
    if not path.stat().st_size:
        return np.empty(0, np.uint8)
    return np.memmap(path, np.uint8, "r")


def _call(folder: Path, entry: Mapping[str, Any], memory: np.ndarray, threads: int) -> SavedCall:
    """Return the program that ``entry`` describes, with its library and its weights."""
    program = StoredProgram.from_json(entry["call"])
    weights = [memory[start : start + size] for start, size in entry["weights"]]
    if any(len(w) != size for w, (_, size) in zip(weights, entry["weights"], strict=True)):
        raise ValueError("weights end before their tensors do")
    library = ctypes.CDLL(str(folder / entry["library"]))
    caller = program.caller(library, weights, threads)
    if caller is None:
        raise ValueError("the package scipy-openblas32 is missing")
    return SavedCall(program, caller)


def refused(folder: Path, why: str, fix: str = AGAIN, verb: str = "run") -> UsageError:
    """Return E807 for a compiled decoder that cannot be run here, or written."""
    what = f"the compiled decoder in {str(folder)!r} cannot be {verb}"
    return UsageError("E807", what, why=why, fix=fix)
