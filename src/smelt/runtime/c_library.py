"""Build generated C with this machine's C compiler and call it in this process."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir

from smelt.errors import InternalError, InvalidModel, ResourceLimit, UsageError
from smelt.ir.tensors.packed import packed, unpacked
from smelt.runtime.c_compiler import compiler_command
from smelt.runtime.feed import feed
from smelt.runtime.interface import Interface, Port, Value
from smelt.runtime.run_bounds import RunBounds, shape_in, sizes_of

FLAGS = (
    *("-std=c99", "-O3", "-march=native", "-ffp-contract=fast"),
    *("-fno-math-errno", "-fno-trapping-math"),
)
"""Compiler flags for this machine; they preserve NaN, infinities and the order of operations."""

PORTABLE_FLAGS = tuple(flag for flag in FLAGS if flag != "-march=native")
"""Flags for C that chooses the vectors of the CPU at run time."""

WEIGHTS_ALIGNMENT = 64
"""Alignment in bytes of weights that are passed to a library."""

ERROR_SIZE, ERROR_SINGULAR = 3, 4
"""Return codes of a run, as in the generated header.

Data-dependent sizes are out of bounds; a matrix that the model checks is singular.
"""

TIME_LIMIT = 600.0
"""The time limit of the compiler in seconds."""


def build(
    files: Mapping[str, bytes], folder: Path, flags: Sequence[str] = FLAGS, name: str = "model"
) -> Path:
    """Write ``files`` to ``folder``, compile each ``.c`` file into one shared library; return its
    path.

    Raises UsageError E661 without a compiler, InternalError E961 if it rejects the code, and
    ResourceLimit E561 if it takes too long.
    """
    for file, data in files.items():
        (folder / file).write_bytes(data)
    library = folder / f"{name}.so"
    sources = sorted(file for file in files if file.endswith(".c"))
    command = [*compiler_command(), *flags, "-shared", "-fPIC", "-o", library.name, *sources, "-lm"]
    try:
        process = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=TIME_LIMIT
        )
    except subprocess.TimeoutExpired as error:
        raise ResourceLimit(
            "E561",
            f"the C compiler took more than {TIME_LIMIT:.0f} seconds",
            at=" ".join(command),
            why="large weights as text are slow to compile",
            fix="build the files yourself, or split the model",
        ) from error
    if process.returncode:
        lines = process.stderr.splitlines()
        first_error = next((line for line in lines if "error" in line), lines[0] if lines else "")
        raise InternalError(
            "E961",
            "the C compiler refuses the generated code",
            at=[" ".join(command), *_instruction(files, first_error)],
            why=first_error,
            fix="if CC and its flags are right, report this with the model; the C of an operator "
            "of another domain, to the package that adds it",
        )
    return library


def _instruction(files: Mapping[str, bytes], error: str) -> list[str]:
    """Return the instruction whose function contains the compiler ``error``, for the message.

    The error has a file and a line, the call of each function a comment with its instruction. The
    list is empty if they are not found.
    """
    found_position = re.match(r"([^:\s]+):(\d+):", error)
    if found_position is None or found_position[1] not in files:
        return []
    text = bytes(files[found_position[1]]).decode()
    above = "\n".join(text.splitlines()[: int(found_position[2])])
    functions = re.findall(r"^static [^\n=;]*?\b(\w+)\(", above, re.MULTILINE)
    called = functions and re.search(rf"\b{functions[-1]}\(.*/\* (.*) \*/", text)
    return [f"instruction {called[1]}"] if called else []


@dataclass
class CLibrary:
    """A built library, ready to run; see ``runner.Runner``.

    ``arena_bytes`` and ``alignment`` come from the generated header. ``weights``, if set, are
    passed to each run; else the library contains them. ``sizes`` are the bounds of the sizes that a
    run receives, ``lengths`` those of the data-dependent sizes that it returns, in order.
    """

    library: Path
    function: str
    interface: Interface
    arena_bytes: int
    alignment: int
    weights: bytes | None = None
    sizes: RunBounds = field(default_factory=dict)
    lengths: RunBounds = field(default_factory=dict)

    name = "c"

    def __post_init__(self) -> None:
        """Load the library, and allocate its arena and its weights; raises InternalError E961."""
        try:
            self._run = getattr(ctypes.CDLL(str(self.library)), self.function)
        except (OSError, AttributeError) as error:
            raise InternalError(
                "E961",
                f"the library that was built cannot be loaded, or has no {self.function!r}",
                why=str(error),
                fix="if CC and its flags are right, report this with the model",
            ) from error
        self._run.restype = ctypes.c_int
        self._arena, self._arena_address = aligned(self.arena_bytes, self.alignment)
        addresses = [self._arena_address]
        if self.weights is not None:
            self._weights, address = aligned(len(self.weights), WEIGHTS_ALIGNMENT)
            ctypes.memmove(address, self.weights, len(self.weights))
            addresses.append(address)
        self._memories = tuple(addresses)
        extra = len(addresses) + bool(self.sizes) + bool(self.lengths)
        self._run.argtypes = (ctypes.c_void_p,) * (2 + extra)

    def __call__(self, *inputs: Value) -> tuple[np.ndarray, ...]:
        """Run once and return the outputs.

        Raises UsageError E603 or E670 if an input does not fit, InvalidModel E331 if a matrix that
        the model checks is singular.
        """
        values_by_name = feed(self.interface, inputs)
        values = [_value(port, values_by_name.get(port.name)) for port in self.interface.inputs]
        sizes = sizes_of(self.interface, values, self.sizes)
        largest_sizes = sizes | {name: high for name, (_, high) in self.lengths.items()}
        arrays = [packed(a, _dtype(p)) for a, p in zip(values, self.interface.inputs, strict=True)]
        results = [
            np.empty(nbytes(port, largest_sizes), np.uint8) for port in self.interface.outputs
        ]
        size_arguments = (ctypes.c_ssize_t * len(self.sizes))(*(sizes[name] for name in self.sizes))
        lengths = (ctypes.c_ssize_t * len(self.lengths))()
        extra_arguments = [
            *([size_arguments] if self.sizes else []),
            *([lengths] if self.lengths else []),
        ]
        status = self._run(_pointers(arrays), _pointers(results), *self._memories, *extra_arguments)
        check_status(status)
        sizes |= dict(zip(self.lengths, lengths, strict=True))
        pairs = zip(self.interface.outputs, results, strict=True)
        return tuple(_result(port, data, sizes) for port, data in pairs)


def check_status(status: int) -> None:
    """Raise the error that the number ``status``, the result of a run, stands for; 0 is none."""
    if status == ERROR_SIZE:
        raise UsageError(
            "E670",
            "the values of this run lead to sizes for which the model was not compiled",
            why="memory is planned for the sizes that the model declares",
            fix="give inputs that lead to declared sizes, or declare larger output sizes",
        )
    if status == ERROR_SINGULAR:
        raise InvalidModel(
            "E331",
            "a matrix is singular",
            why="the model checks that the matrix can be inverted",
            fix="give inputs for which the matrix can be inverted",
        )
    if status:
        raise InternalError("E962", f"the compiled model returned the error {status}")


def _value(port: Port, value_or_none: Value) -> np.ndarray:
    """Return the array for ``port``, contiguous: the given value, or the default for None."""
    default = port.default.numpy() if port.default is not None else None
    array = np.asarray(default if value_or_none is None else value_or_none)
    return np.ascontiguousarray(array).reshape(array.shape)


def _dtype(port: Port) -> ir.DataType:
    """Return the element type of ``port``."""
    assert port.dtype is not None  # the target refuses values of unknown type
    return port.dtype


def nbytes(port: Port, sizes: Mapping[str, int]) -> int:
    """Return the bytes of an interface tensor at ``sizes``; 0 if a size is negative.

    The library refuses negative sizes.
    """
    return max(0, math.prod(shape_in(port, sizes)) * int(_dtype(port).bitwidth) + 7) // 8


def _result(port: Port, data: np.ndarray, sizes: Mapping[str, int]) -> np.ndarray:
    """Return the array in the memory ``data`` of an output."""
    shape = shape_in(port, sizes)
    return unpacked(data[: nbytes(port, sizes)], _dtype(port), shape)


def aligned(size: int, alignment: int) -> tuple[np.ndarray, int]:
    """Return new memory, and an address in it that is a multiple of ``alignment``.

    At least ``size`` bytes follow the address.
    """
    memory = np.zeros(size + alignment, np.uint8)
    address = memory.ctypes.data
    return memory, address + -address % alignment


def _pointers(arrays: Sequence[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
    """Return the addresses of ``arrays`` as a C array."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*(array.ctypes.data for array in arrays))


def load_library(
    files: Mapping[str, bytes],
    name: str,
    interface: Interface,
    *,
    arena_bytes: int,
    alignment: int,
    flags: Sequence[str] = FLAGS,
    weights: bytes | None = None,
    sizes: RunBounds | None = None,
    lengths: RunBounds | None = None,
) -> CLibrary:
    """Build ``files`` in a temporary folder and load them; the folder is deleted
    with the library.
    """
    folder = tempfile.mkdtemp(prefix="smelt-c-")
    try:
        library = build(files, Path(folder), flags, name)
        loaded = CLibrary(
            library,
            f"{name}_run",
            interface,
            arena_bytes,
            alignment,
            weights,
            sizes or {},
            lengths or {},
        )
    except BaseException:
        shutil.rmtree(folder)
        raise
    weakref.finalize(loaded, shutil.rmtree, folder, ignore_errors=True)
    return loaded
