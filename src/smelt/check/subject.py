"""The two sides of a verification: a model, a file, an artifact or a function, made callable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import onnx_ir as ir

from smelt.runtime.interface import Interface, Value, interface_of
from smelt.runtime.memory import check_memory
from smelt.runtime.runner import RunnerName, as_model, open_runner
from smelt.targets.base import Artifact

if TYPE_CHECKING:
    import onnx

Checkable: TypeAlias = (
    "ir.Model | onnx.ModelProto | bytes | str | Path | Artifact | Callable[..., Any]"
)


@dataclass
class Subject:
    """One side: ``run`` takes and returns one value a port.

    ``model`` is there for anything that is run as an ONNX model, and ``interface`` for anything
    that declares one.
    """

    name: str
    run: Callable[..., Sequence[Value]]
    interface: Interface | None = None
    model: ir.Model | None = None

    @property
    def runner(self) -> RunnerName:
        """What runs the model: the reference evaluator, or whatever can."""
        return "reference" if self.runtime == "reference" else "auto"

    @property
    def runtime(self) -> str:
        """The name of what was opened to run the model; empty for functions and artifacts."""
        return str(getattr(self.run, "name", "")) if self.model is not None else ""


def as_subject(source: Checkable, name: str, runner: RunnerName = "auto") -> Subject:
    """Make ``source`` callable; a model is loaded and opened at once, so its errors come first."""
    if isinstance(source, Subject):
        return source
    if isinstance(source, Artifact):
        return Subject(name, source, interface_of(source.model))
    if isinstance(source, ir.Model | bytes | str | Path) or not callable(source):
        model = as_model(cast("ir.Model", source))
        check_memory(model)
        opened = open_runner(model, runner)
        return Subject(name, opened, opened.interface, model)
    function = source
    return Subject(name, lambda *inputs: flatten(function(*inputs)))


def flatten(result: object) -> list[Value]:
    """The arrays of nested tuples, lists and dicts in JAX's order: dict entries by key."""
    return list(_leaves(result))


def _leaves(result: object) -> Iterator[Value]:
    if result is None:
        return
    if isinstance(result, Mapping):
        for key in sorted(result):
            yield from _leaves(result[key])
    elif isinstance(result, list | tuple):
        for item in result:
            yield from _leaves(item)
    else:
        yield np.asarray(result)
