"""Call a compiled program of open sizes: the sizes of its inputs are arguments of each run."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from smelt.runtime.jit.caller import ALIGNMENT, addresses

Shapes: TypeAlias = tuple[tuple[int, ...], ...]

Fitting: TypeAlias = tuple[Sequence[int], Sequence[tuple[int, ...]]]
"""The sizes that a run gets, and the shapes of its results."""

KEPT_SHAPES = 1024
"""The most sets of shapes whose sizes and result shapes are remembered."""


@dataclass
class OpenCaller:
    """Calls a compiled program of open sizes.

    ``fit`` returns the sizes and the shapes of the results for inputs of some shapes, None for
    shapes that the program does not take. ``dtypes`` are the element types of the results.
    ``library`` holds the compiled ``function``, ``weights`` are the arrays that it reads, and
    ``memory_bytes`` is the size of its workspace. ``key`` is the key of the library in the cache,
    ``bind_threads`` the name of its function that took the thread pool, empty without. Calls from
    several threads run concurrently, each with its own workspace.
    """

    fit: Callable[[Shapes], Fitting | None]
    dtypes: Sequence[np.dtype]
    library: ctypes.CDLL
    function: str
    weights: Sequence[np.ndarray]
    memory_bytes: int
    key: str = ""
    bind_threads: str = ""
    _fitting: OrderedDict[Shapes, tuple[np.ndarray, Sequence[tuple[int, ...]]] | None] = field(
        default_factory=OrderedDict
    )
    _workspaces: list[np.ndarray] = field(default_factory=list)

    @cached_property
    def _run(self) -> Callable[..., int]:
        """The compiled function: inputs, outputs, workspace and weights to 0, else a failure."""
        run = self.library[self.function]
        run.argtypes = (ctypes.c_void_p,) * 4
        return run

    @cached_property
    def _weights(self) -> ctypes.Array[ctypes.c_void_p]:
        """The addresses of the weights."""
        return addresses(self.weights)

    def takes(self, shapes: Shapes) -> bool:
        """True if the program runs inputs of ``shapes``."""
        return self._sizes(shapes) is not None

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Run on arrays that have the inputs' element types; None if the run fails.

        Arrays that are not row-major or aligned are copied first.
        """
        fitting = self._sizes(tuple(array.shape for array in arrays))
        if fitting is None:
            return None
        sizes, shapes = fitting
        aligned = [np.require(array, requirements=("C", "A")) for array in arrays]
        results = tuple(map(np.empty, shapes, self.dtypes))
        workspace = self._workspaces.pop() if self._workspaces else self._new_workspace()
        try:
            status = self._run(
                addresses([*aligned, sizes]),
                addresses(results),
                workspace.ctypes.data + -workspace.ctypes.data % ALIGNMENT,
                self._weights,
            )
        finally:
            self._workspaces.append(workspace)
        return None if status else results

    def _new_workspace(self) -> np.ndarray:
        """Return new memory for one run; the system provides only the pages that a run touches."""
        return np.empty(self.memory_bytes + ALIGNMENT, np.uint8)

    def _sizes(self, shapes: Shapes) -> tuple[np.ndarray, Sequence[tuple[int, ...]]] | None:
        """Return the sizes as the compiled function takes them, and the shapes of the results."""
        if shapes not in self._fitting:
            found = self.fit(shapes)
            self._fitting[shapes] = (
                None if found is None else (np.array(found[0], np.intp), found[1])
            )
            if len(self._fitting) > KEPT_SHAPES:
                self._fitting.popitem(last=False)
        return self._fitting[shapes]
