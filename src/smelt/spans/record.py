"""Spans, and the recorder of a context that collects them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeAlias


@dataclass
class Span:
    """One phase or one run of a pass, and what ran within it.

    ``start`` is what ``time.perf_counter`` said then. ``seconds`` is wall time, ``cpu`` the CPU
    time of the whole process meanwhile, both in seconds and 0 until the span ends. ``category`` is
    ``phase`` or ``pass``. ``args`` are plain facts, such as ``{"file": "m.onnx"}``; ``error`` is
    among them for a span that an exception ended: its code, or its type.
    """

    name: str
    category: str
    start: float
    process: int
    thread: int
    args: dict[str, Any]
    seconds: float = 0.0
    cpu: float = 0.0
    children: list[Span] = field(default_factory=list)


class Recorder:
    """What a recording has heard; ``spans`` are the outermost, in the order they began.

    ``origin`` is what ``time.perf_counter`` said when it began, ``time`` the seconds since 1970;
    ``seconds`` and ``cpu`` are what it took from then to its end, 0 before that.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.time = time.time()
        self.origin = time.perf_counter()
        self.seconds = self.cpu = 0.0
        self._cpu = time.process_time()

    def end(self) -> None:
        """Note how long the recording took."""
        self.seconds = time.perf_counter() - self.origin
        self.cpu = time.process_time() - self._cpu

    def walk(self) -> Iterator[tuple[int, Span]]:
        """Every span with its depth, each before those within it."""
        stack = [(0, each) for each in reversed(self.spans)]
        while stack:
            depth, each = stack.pop()
            yield depth, each
            stack += [(depth + 1, inner) for inner in reversed(each.children)]

    def named(self, name: str) -> list[Span]:
        """The spans called ``name``, at any depth, in order."""
        return [each for _, each in self.walk() if each.name == name]


_Siblings: TypeAlias = list[Span]

_siblings: ContextVar[_Siblings | None] = ContextVar("smelt.spans", default=None)
"""Where spans of a context belong: the list of the recorder, or of the span around them."""


class Open:
    """A span that has not ended; ``note`` adds facts that are known only then."""

    def note(self, **args: Any) -> None:
        """Add ``args`` to those of the span."""

    def __enter__(self) -> Open:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nobody records."""


class _Recorded(Open):
    def __init__(self, where: _Siblings, name: str, category: str, args: dict[str, Any]) -> None:
        self._siblings = where
        self._span = Span(name, category, 0.0, os.getpid(), threading.get_native_id(), args)

    def note(self, **args: Any) -> None:
        self._span.args.update(args)

    def __enter__(self) -> Open:
        self._siblings.append(self._span)
        self._token: Token[_Siblings | None] = _siblings.set(self._span.children)
        self._cpu = time.process_time()
        self._span.start = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._span.seconds = time.perf_counter() - self._span.start
        self._span.cpu = time.process_time() - self._cpu
        if kind is not None:
            self._span.args["error"] = getattr(error, "code", kind.__name__)
        _siblings.reset(self._token)


_UNHEARD = Open()


def span(name: str, category: str = "phase", /, **args: Any) -> Open:
    """``with span("load", file=path):`` is recorded as what its body took."""
    where = _siblings.get()
    return _UNHEARD if where is None else _Recorded(where, name, category, args)


@contextmanager
def recording() -> Iterator[Recorder]:
    """Collect the spans of this context until the block ends; within another, for that as well.

    A thread that is to be heard runs in a copy of the context (``contextvars.copy_context``).
    """
    outer, recorder = _siblings.get(), Recorder()
    token = _siblings.set(recorder.spans)
    try:
        yield recorder
    finally:
        _siblings.reset(token)
        recorder.end()
        if outer is not None:
            outer.extend(recorder.spans)
