"""What was saved and is run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import onnx_ir as ir

from smelt.runtime.complex_arrays import on_pairs
from smelt.runtime.feed import leaving_out
from smelt.runtime.input_ranges import Range
from smelt.runtime.interface import Interface, Value
from smelt.runtime.random_keys import on_key_data
from smelt.targets.settling import Runner, is_ready


def entry_of(interface: Interface, run: Runner) -> Runner:
    """What a caller calls: complex arrays for pairs, keys of JAX for their
    integers, and inputs with defaults may be left out."""
    return leaving_out(interface, on_key_data(interface, on_pairs(interface, run)))


@dataclass(frozen=True)
class Saved:
    """What a folder holds that ``Artifact.save`` wrote: ``load`` makes it ready to run.

    It is called as the artifact was, which loads it once.

    ``model`` is there if the folder holds an ONNX model, which is run as such. ``ranges`` are
    values that integer inputs may take, by name of the input, where not all are right.
    """

    target: str
    interface: Interface
    load: Callable[[], Runner]
    model: ir.Model | None = None
    ranges: Mapping[str, Range] = field(default_factory=dict)

    def __call__(self, *inputs: Value) -> tuple[Value, ...]:
        """Run on this machine; complex arrays where pairs of real numbers stand for them."""
        return tuple(self._call(*inputs))

    def opened(self) -> Runner:
        """What calls run, built or loaded by the first."""
        return self._opened

    def ready(self, timeout: float | None = 0.0) -> bool:
        """As that of an artifact."""
        return is_ready(self.opened(), timeout)

    @cached_property
    def _opened(self) -> Runner:
        return self.load()

    @cached_property
    def _call(self) -> Runner:
        return entry_of(self.interface, self._opened)
