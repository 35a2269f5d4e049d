"""The state of a sum of slices on disk, so that a run that ended goes on where it was."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt.errors import UsageError
from smelt.runtime.files import write_atomically

if TYPE_CHECKING:
    from smelt.networks.network import Network

INTERVAL = 30.0
"""Seconds between two writes; more if a write takes over a tenth of that, so that writes take a
tenth of the time at most."""


def key_of(network: Network, operands: Sequence[np.ndarray]) -> str:
    """Return a digest of the network, its path and slices, and the elements of its operands."""
    digest = hashlib.sha256()
    sizes = [(label, str(size)) for label, size in network.sizes.items()]
    about = (network.equation, network.slices.path, network.sliced, str(network.dtype), sizes)
    digest.update(repr((about, str(network.semiring))).encode())
    for array in operands:
        digest.update(_bytes(array).data)
    return digest.hexdigest()


class Checkpoint:
    """A file with the state of a sum: the result so far, partial sums, and the slices done."""

    def __init__(self, path: Path | None, key: str) -> None:
        """Keep the state in ``path``, nothing if it is None; ``key`` is that of ``key_of``."""
        self.path = path
        self.key = key
        self.interval = INTERVAL
        self._written = monotonic()

    def read(self, result: np.ndarray, stack: list[tuple[int, np.ndarray]]) -> int:
        """Fill ``result`` and ``stack`` from the file, and return the number of slices done.

        Returns 0 if there is no file yet. Raises UsageError E698 if the file is damaged or belongs
        to another contraction, or if its folder does not exist.
        """
        if self.path is None:
            return 0
        if not self.path.parent.is_dir():
            raise self._refused("its folder does not exist", fix="make the folder first")
        if not self.path.exists():
            return 0
        try:
            with np.load(self.path, allow_pickle=False) as state:
                if str(state["key"]) != self.key:
                    raise self._refused("it belongs to another contraction, or other operands")
                sizes = [int(n) for n in state["sizes"]]
                result[...] = state["result"].view(result.dtype).reshape(result.shape)
                for number, size in enumerate(sizes):
                    term = state[f"sum{number}"]
                    shape = tuple(state[f"shape{number}"])
                    stack.append((size, term.view(result.dtype).reshape(shape)))
                return int(state["done"])
        except (
            *(OSError, ValueError, KeyError, TypeError),
            *(EOFError, zipfile.BadZipFile),
        ) as error:
            raise self._refused(str(error)) from error

    def _refused(self, why: str, fix: str = "") -> UsageError:
        """Return E698: the file cannot be used."""
        return UsageError(
            "E698",
            f"the checkpoint {str(self.path)!r} cannot be continued",
            why=why,
            fix=fix or "delete the file, or give the arguments that it was written with",
        )

    def write(self, result: np.ndarray, stack: Sequence[tuple[int, np.ndarray]], done: int) -> None:
        """Write the state if the last write was long enough ago."""
        started = monotonic()
        if self.path is None or started - self._written < self.interval:
            return
        state: dict[str, Any] = {
            "key": np.asarray(self.key),
            "done": np.asarray(done),
            "sizes": np.asarray([size for size, _ in stack], np.int64),
            "result": _bytes(result),
        }
        for number, (_, term) in enumerate(stack):
            state[f"sum{number}"] = _bytes(term)
            state[f"shape{number}"] = np.asarray(term.shape, np.int64)
        buffer = io.BytesIO()
        np.savez(buffer, **state)
        write_atomically(self.path, buffer.getvalue())
        self._written = monotonic()
        self.interval = max(self.interval, 10 * (self._written - started))

    def remove(self) -> None:
        """Delete the file: the contraction is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _bytes(array: np.ndarray) -> np.ndarray:
    """Return the elements as bytes, since files of NumPy lack types such as bfloat16."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
