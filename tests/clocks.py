"""A clock that runs tell what they take, so that no test of a timing depends on a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from smelt.runtime.onnxruntime import OnnxRuntime


class Clock:
    """Seconds that pass only where somebody says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def taking(self, seconds: float) -> Callable[[], None]:
        """A run that takes ``seconds``."""

        def run() -> None:
            self.now += seconds

        return run


def a_second_per_node(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock on which a run in ONNX Runtime takes a second for each node of its model."""
    clock = Clock()
    opened, called = OnnxRuntime.__init__, OnnxRuntime.__call__
    nodes: dict[OnnxRuntime, int] = {}

    def opens(self: OnnxRuntime, model: Any, *arguments: Any, **options: Any) -> None:
        opened(self, model, *arguments, **options)
        nodes[self] = len(model.graph)

    def calls(self: OnnxRuntime, *values: Any) -> Any:
        clock.now += nodes[self]
        return called(self, *values)

    monkeypatch.setattr(OnnxRuntime, "__init__", opens)
    monkeypatch.setattr(OnnxRuntime, "__call__", calls)
    return clock
