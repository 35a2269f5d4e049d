"""Open a model, file, artifact, compiled folder or function as one side of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import onnx_ir as ir

from smelt.check.package_interface import adapted
from smelt.check.user_function import call
from smelt.errors import Unsupported
from smelt.frontends.coreml.detect import is_core_ml
from smelt.ir.approximation import approximation_of
from smelt.runtime.inputs import Mode, random_inputs, values_of
from smelt.runtime.interface import Interface, Value, interface_of
from smelt.runtime.memory import check_memory
from smelt.runtime.rounded_half import round_each_half
from smelt.runtime.runner import RunnerName, as_model, open_runner
from smelt.targets.base import Artifact
from smelt.targets.runner import at_full_speed
from smelt.targets.saved import open_saved
from smelt.targets.saved_folder import Saved

if TYPE_CHECKING:
    import onnx

Checkable: TypeAlias = (
    "ir.Model | onnx.ModelProto | bytes | str | Path | Artifact | Callable[..., Any]"
    " | ComparisonSide"
)


@dataclass
class ComparisonSide:
    """One side of a comparison. ``run`` takes one value for each input, and returns one for each
    output; complex numbers are pairs of reals.

    ``model`` is set if the side is an ONNX model, ``compiled`` is the model of an artifact.
    ``interface`` is set if the source declares one. ``make_inputs`` returns random inputs for
    sizes, a seed and a mode; None if the types of inputs are unknown.
    """

    name: str
    run: Callable[..., Sequence[Value]]
    interface: Interface | None = None
    model: ir.Model | None = None
    make_inputs: Callable[[Mapping[str, int], int, Mode], list[Value]] | None = None
    compiled: ir.Model | None = None

    @property
    def runner(self) -> RunnerName:
        """The runner to request for other versions: ``reference`` or ``auto``."""
        return "reference" if self.runtime == "reference" else "auto"

    @property
    def runtime(self) -> str:
        """The name of the runtime that runs the model; empty for functions and artifacts."""
        return str(getattr(self.run, "name", "")) if self.model is not None else ""

    def round_half(self) -> None:
        """Let a side that is a model round each result of float16, as a device does."""
        if self.model is not None:
            self.run = open_runner(round_each_half(self.model.clone()), self.runner)


def open_side(source: Checkable, name: str, runner: RunnerName = "auto") -> ComparisonSide:
    """Return ``source`` as a side. A model is opened here, so that its errors come before the runs.

    An artifact is opened when it first runs. A compiled folder runs as it is if it approximates, or
    has no model; else its model is the side.
    """
    if isinstance(source, ComparisonSide):
        return source
    if isinstance(source, Artifact):
        interface, compiled = interface_of(source.model), source.model
        if source.read_back is not None:
            compiled = adapted(source.read_back(), interface)
        make = partial(random_inputs, source.model)
        run = partial(_run_artifact, source)
        return ComparisonSide(
            name,
            run,
            interface,
            model=None,
            make_inputs=make,
            compiled=compiled,
        )
    if isinstance(source, str | Path) and Path(source).is_dir() and not is_core_ml(source):
        saved = open_saved(source)
        if saved.model is None or approximation_of(saved.model):
            opened_folder = side_of_saved(saved, name)
            return replace(opened_folder, run=at_full_speed(opened_folder.run))
        source = saved.model
    if isinstance(source, ir.Model | bytes | str | Path) or not callable(source):
        model = as_model(cast("ir.Model", source))
        copy = model.clone()
        check_memory(copy)
        try:
            opened = open_runner(copy, runner, consume=True)
        except Unsupported:
            if runner != "auto":
                raise
            opened = open_runner(model, "reference")
        return ComparisonSide(name, opened, opened.interface, model, partial(random_inputs, model))
    function = source
    return ComparisonSide(name, partial(call, function))


def _run_artifact(artifact: Artifact, *inputs: Value) -> Sequence[Value]:
    """Return the outputs of the final form of ``artifact``; waits while it is being compiled."""
    return at_full_speed(artifact.opened())(*inputs)


def side_of_saved(saved: Saved, name: str) -> ComparisonSide:
    """Return a compiled folder as a side; it is built or opened at once."""
    limits = [saved.ranges.get(port.name) for port in saved.interface.inputs]
    make = partial(values_of, saved.interface.inputs, limits)
    return ComparisonSide(
        name, saved.load(), saved.interface, model=None, make_inputs=make, compiled=saved.model
    )
