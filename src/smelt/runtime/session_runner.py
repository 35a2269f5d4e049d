"""Run a session of ONNX Runtime as a runner: inputs in order, checked against an interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx_ir as ir

from smelt.runtime.feed import feed
from smelt.runtime.interface import Interface, Value, interface_of
from smelt.runtime.session import Session


@dataclass
class SessionRunner:
    """An open session; see ``runner.Runner``."""

    interface: Interface
    session: Session

    name = "onnxruntime"

    def __call__(self, *inputs: Value) -> tuple[Value, ...]:
        """Run once. Raises UsageError E632 or E670 for inputs that do not fit."""
        names = [port.name for port in self.interface.outputs]
        return tuple(self.session.run(names, feed(self.interface, inputs)))


def run_session(model: ir.Model, open_session: Callable[[], Session]) -> SessionRunner:
    """Return a runner of a new session, with the interface of ``model``."""
    return SessionRunner(interface_of(model), open_session())
