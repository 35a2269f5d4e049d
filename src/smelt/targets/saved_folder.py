"""An artifact that was saved to a folder and is run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import onnx_ir as ir

from smelt.runtime.complex_arrays import on_pairs
from smelt.runtime.feed import with_optional_inputs
from smelt.runtime.input_ranges import Range
from smelt.runtime.interface import Interface, Value
from smelt.runtime.random_keys import on_key_data
from smelt.targets.runner import Runner, is_ready


def entry_of(interface: Interface, run: Runner) -> Runner:
    """Return ``run`` wrapped for callers: complex arrays, JAX keys, omitted optional inputs."""
    return with_optional_inputs(interface, on_key_data(interface, on_pairs(interface, run)))


@dataclass(frozen=True)
class Saved:
    """The contents of a folder that ``Artifact.save`` wrote; ``load`` returns its runner.

    It is called like the artifact; the first call loads it. ``model`` is set if the folder holds an
    ONNX model, which is then run. ``ranges`` are the allowed values of integer inputs, by name.
    """

    target: str
    interface: Interface
    load: Callable[[], Runner]
    model: ir.Model | None = None
    ranges: Mapping[str, Range] = field(default_factory=dict)

    def __call__(self, *inputs: Value) -> tuple[Value, ...]:
        """Run on this machine; complex ports take and return complex arrays."""
        return tuple(self._call(*inputs))

    def opened(self) -> Runner:
        """Return the runner behind calls; the first call builds or loads it."""
        return self._opened_runner

    def ready(self, timeout: float | None = 0.0) -> bool:
        """True if calls run at full speed; see ``Artifact.ready``."""
        return is_ready(self.opened(), timeout)

    @cached_property
    def _opened_runner(self) -> Runner:
        """The runner, loaded on first access."""
        return self.load()

    @cached_property
    def _call(self) -> Runner:
        """The runner for callers: it takes and returns what the interface says, see
        ``entry_of``.
        """
        return entry_of(self.interface, self._opened_runner)
