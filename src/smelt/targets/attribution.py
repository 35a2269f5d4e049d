"""Report errors in functions of a target as mistakes of that target, not of smelt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.extensions import OWN, blame
from smelt.ir.bounds import Bounds, readable_bounds
from smelt.operators.declaration import accepts_arguments
from smelt.runtime.feed import feed
from smelt.runtime.interface import Interface, Value, interface_of
from smelt.runtime.run_bounds import sizes_of
from smelt.targets.base import Artifact, Target
from smelt.targets.runner import Runner, is_ready


@contextmanager
def attribute_errors_to(
    target: Target[Any, Any], description: str, function: object = None
) -> Iterator[None]:
    """Raise errors inside of the ``with`` block as UsageError E653, an error of the target.

    ``description`` is the name of the target's function, or a description of ``function``.
    """
    try:
        yield
    except Exception as error:
        named = getattr(target, description, None) if function is None else function
        blame(error, named, f"`{description}` of target {target.name!r}")
        raise


def call_with_options(function: Callable[..., Any], argument: object, options: object) -> Any:
    """Return ``function(argument)``, or ``function(argument, options)`` if it takes two."""
    return function(argument) if accepts_arguments(function, 1) else function(argument, options)


def is_built_in(target: Target[Any, Any]) -> bool:
    """True for a target of smelt itself."""
    return bool(str(getattr(target.emit, "__module__", "")).partition(".")[0] == OWN)


def check_artifact(target: Target[Any, Any], artifact: object) -> Artifact:
    """Return the result of ``emit``; raises UsageError E649 unless it is an Artifact with valid
    files.
    """
    if not isinstance(artifact, Artifact):
        raise UsageError(
            "E649",
            f"`emit` of target {target.name!r} returned no Artifact",
            why=f"it returned {repr(artifact)[:60]}",
            fix="return Artifact(name, plan.model, files, plan)",
        )
    artifact.target = target.name
    problems = []
    # Lazily written files are not checked: the user may only want to run the artifact.
    for name in artifact.files if isinstance(artifact.files, dict) else ():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
            problems.append(f"the file name {name!r} leaves the output folder")
    if isinstance(artifact.files, dict):
        problems += [
            f"the file {name!r} holds no bytes: {repr(data)[:40]}"
            for name, data in artifact.files.items()
            if not isinstance(data, bytes | bytearray | memoryview)
        ]
    if problems:
        raise UsageError(
            "E649",
            f"`emit` of target {target.name!r} returned an Artifact that cannot be written",
            at=problems,
            fix="name files by relative paths, and give them bytes",
            why="files and report are written to a folder as they are",
        )
    return artifact


class CheckedRunner:
    """A runner of another package whose inputs and outputs are checked against the model."""

    def __init__(self, target: Target[Any, Any], model: ir.Model, run: Runner) -> None:
        """Check inputs, outputs and bounds of each ``run`` of ``model``."""
        self._target, self._run = target, run
        self._interface = interface_of(model)
        self._bounds: Mapping[str, Bounds] = readable_bounds(model.graph)

    def __call__(self, *inputs: Value) -> Sequence[Value]:
        """Check the inputs, run once, and check the outputs; errors are those of the target."""
        feed(self._interface, inputs)
        if self._bounds:
            sizes_of(self._interface, [np.asarray(value) for value in inputs], self._bounds)
        with attribute_errors_to(self._target, "load", self._run):
            results = self._run(*inputs)
        if isinstance(results, np.ndarray) or not isinstance(results, Sequence):
            raise self._wrong(f"it returned {repr(results)[:60]}, no tuple with a value an output")
        self._check(self._interface, results)
        return results

    def ready(self, timeout: float | None) -> bool:
        """Return ``ready`` of the checked runner."""
        return is_ready(self._run, timeout)

    def _check(self, interface: Interface, results: Sequence[Value]) -> None:
        """Raise UsageError E653 unless ``results`` have the types and shapes of the outputs."""
        if len(results) != len(interface.outputs):
            raise self._wrong(f"{len(results)} results for {len(interface.outputs)} outputs")
        for port, value in zip(interface.outputs, results, strict=True):
            if port.kind != "tensor" or port.dtype is None or not isinstance(value, np.ndarray):
                continue
            fits = port.dtype == ir.DataType.STRING or value.dtype == port.dtype.numpy()
            if port.shape is not None:
                fits &= len(port.shape) == value.ndim
                sizes = zip(port.shape, value.shape, strict=False)
                fits &= all(not isinstance(dim, int) or dim == size for dim, size in sizes)
            if not fits:
                described = f"{value.dtype}[{','.join(map(str, value.shape))}]"
                raise self._wrong(f"output {port.name!r} is {port}, and it returned {described}")

    def _wrong(self, why: str) -> UsageError:
        """Return UsageError E653 for results that do not fit the model."""
        return UsageError(
            "E653",
            f"the artifact of target {self._target.name!r} does not run like its model",
            why=why,
            fix="return one array per output, of its type and shape",
        )


def checked_load(target: Target[Any, Any], artifact: Artifact) -> Callable[[], Runner] | None:
    """Return ``artifact.load`` with checked runs; smelt's own targets are returned unchanged."""
    load, model = artifact.load, artifact.model
    if load is None or is_built_in(target):
        return load

    def opened() -> Runner:
        """Load the artifact; raises UsageError E649 if the result is not callable."""
        with attribute_errors_to(target, "load", load):
            run = load()
        if not callable(run):
            raise UsageError(
                "E649",
                f"`load` of target {target.name!r} returned {repr(run)[:40]}",
                fix="return a function that takes one array per input and returns one per output",
                why="load returns a function that runs the artifact on this machine",
            )
        return CheckedRunner(target, model, run)

    return opened
