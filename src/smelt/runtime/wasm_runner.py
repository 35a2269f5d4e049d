"""Run a folder of the target ``wasm`` on this machine: in Node, else in the package wasmtime.

Node runs the JavaScript of the folder, so that it is tested as well.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx_ir as ir

from smelt.distribution import requirement
from smelt.errors import InternalError, UsageError
from smelt.ir.tensors.packed import packed, unpacked
from smelt.runtime.c_library import check_status, nbytes
from smelt.runtime.feed import feed
from smelt.runtime.interface import Interface, Port, Value
from smelt.runtime.run_bounds import RunBounds, shape_in, sizes_of

VARIABLE = "SMELT_NODE"
"""The environment variable that names the Node to use; empty for none."""


class Engine(Protocol):
    """Runs a module on arrays and ``sizes``; ``most`` are the largest bytes of the results.

    Returns the status, the bytes of each result, and the data-dependent sizes.
    """

    def __call__(
        self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int], most: Sequence[int]
    ) -> tuple[int, list[bytes], list[int]]: ...


class WasmModule:
    """A module, ready to run, as a ``runner.Runner``.

    ``sizes`` and ``lengths`` are those of ``CLibrary``. The module has one memory, so calls from
    several threads run one after the other.
    """

    name = "wasm"

    def __init__(
        self,
        files_by_name: Mapping[str, bytes],
        name: str,
        interface: Interface,
        sizes: RunBounds,
        lengths: RunBounds,
    ) -> None:
        """Start Node, or instantiate the module in wasmtime; UsageError E676 without both."""
        self.interface, self.sizes, self.lengths = interface, sizes, lengths
        self._run = engine_of(files_by_name, name, interface, sizes, lengths)
        self._lock = threading.Lock()

    def __call__(self, *inputs: Value) -> tuple[np.ndarray, ...]:
        """Run once and return the outputs; errors are those of ``CLibrary``."""
        given = feed(self.interface, inputs)
        values = [_value(port, given.get(port.name)) for port in self.interface.inputs]
        sizes = sizes_of(self.interface, values, self.sizes)
        most_sizes = sizes | {name: high for name, (_, high) in self.lengths.items()}
        pairs = zip(values, self.interface.inputs, strict=True)
        arrays = [np.ascontiguousarray(packed(array, _dtype(port))) for array, port in pairs]
        most = [nbytes(port, most_sizes) for port in self.interface.outputs]
        with self._lock:
            status, results, lengths = self._run(arrays, sizes, most)
        check_status(status)
        sizes |= dict(zip(self.lengths, lengths, strict=True))
        outputs = zip(self.interface.outputs, results, strict=True)
        return tuple(_result(port, data, sizes) for port, data in outputs)


def _value(port: Port, value: Value) -> np.ndarray:
    """Return the array for ``port``: the given value, or the default for None."""
    default = port.default.numpy() if port.default is not None else None
    return np.asarray(default if value is None else value)


def _dtype(port: Port) -> ir.DataType:
    """Return the element type of ``port``."""
    assert port.dtype is not None  # the target refuses values of unknown type
    return port.dtype


def _result(port: Port, data: bytes, sizes: Mapping[str, int]) -> np.ndarray:
    """Return the array of an output."""
    shape = shape_in(port, sizes)
    memory = np.frombuffer(bytearray(data[: nbytes(port, sizes)]), np.uint8)
    return unpacked(memory, _dtype(port), shape)


def engine_of(
    files_by_name: Mapping[str, bytes],
    name: str,
    interface: Interface,
    sizes: RunBounds,
    lengths: RunBounds,
) -> Engine:
    """Return the engine that this machine has; raises UsageError E676 without one."""
    node = os.environ.get(VARIABLE, "node")
    if node and shutil.which(node):
        return Node(node, files_by_name, name, interface, lengths)
    if find_spec("wasmtime") is not None:
        from smelt.runtime.wasmtime_engine import Wasmtime

        return Wasmtime(files_by_name, name, interface, sizes, lengths)
    raise UsageError(
        "E676",
        "there is nothing here that runs WebAssembly",
        why="a module runs in Node or in the package wasmtime",
        fix=f"install Node, or {requirement('wasm')}, or name a Node in {VARIABLE}",
    )


class Node:
    """A process of Node that runs the JavaScript of a folder."""

    def __init__(
        self,
        node: str,
        files_by_name: Mapping[str, bytes],
        name: str,
        interface: Interface,
        lengths: RunBounds,
    ) -> None:
        """Write the files to a temporary folder, and start Node on them."""
        folder = Path(tempfile.mkdtemp(prefix="smelt-wasm-"))
        for file, data in files_by_name.items():
            (folder / file).write_bytes(data)
        self.interface, self.lengths = interface, lengths
        with as_file(files("smelt.runtime").joinpath("wasm_host.mjs")) as host:
            self._process = subprocess.Popen(
                [node, str(host), str(folder / f"{name}.mjs")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            weakref.finalize(self, _end, self._process, folder)
            self._answer()

    def __call__(
        self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int], most: Sequence[int]
    ) -> tuple[int, list[bytes], list[int]]:
        """Send the arrays, and read the results."""
        ports = self.interface.inputs
        asked = {
            "inputs": [
                {"name": port.name, "bytes": array.nbytes, "shape": list(shape_in(port, sizes))}
                for port, array in zip(ports, arrays, strict=True)
            ],
            "sizes": dict(sizes),
        }
        assert self._process.stdin is not None
        self._process.stdin.write(_framed(json.dumps(asked).encode()))
        for array in arrays:
            self._process.stdin.write(array.tobytes())
        self._process.stdin.flush()
        answer = self._answer()
        if "status" in answer:
            return int(answer["status"]), [], []
        results = [self._read(int(each["bytes"])) for each in answer["outputs"]]
        shapes = [each["shape"] for each in answer["outputs"]]
        return 0, results, _lengths(self.interface, shapes, self.lengths)

    def _answer(self) -> dict[str, Any]:
        """Return the next message; raises InternalError E962 if Node ended or its run failed."""
        assert self._process.stdout is not None
        head = self._process.stdout.read(4)
        text = self._read(int.from_bytes(head, "little")) if len(head) == 4 else b""
        answer: dict[str, Any] = json.loads(text) if text else {}
        if not answer or "error" in answer:
            assert self._process.stderr is not None
            error = answer.get("error") or self._process.stderr.read().decode(errors="replace")
            raise InternalError(
                "E962",
                "the module does not run in Node",
                why=error,
                fix="if Node is of version 18 or later, report this with the model",
            )
        return answer

    def _read(self, count: int) -> bytes:
        """Return the next ``count`` bytes that Node wrote."""
        assert self._process.stdout is not None
        return self._process.stdout.read(count)


def _framed(data: bytes) -> bytes:
    """Return ``data`` after its length in four bytes."""
    return len(data).to_bytes(4, "little") + data


def _end(process: subprocess.Popen[bytes], folder: Path) -> None:
    """End Node and delete its folder."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
    shutil.rmtree(folder, ignore_errors=True)


def _lengths(
    interface: Interface, shapes: Sequence[Sequence[int]], lengths: RunBounds
) -> list[int]:
    """Return the data-dependent sizes, read from the shapes of the results."""
    from smelt.ir.symbolic_dims.solved_dims import solve

    dims = [dim for port in interface.outputs for dim in port.shape or ()]
    solved = solve(dims, [size for shape in shapes for size in shape])
    return [solved[name] for name in lengths]
