"""Spans, and the recorder that collects them for one context."""

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
    """One phase or one run of a pass, with the spans inside it.

    ``start`` is a ``time.perf_counter`` value. ``seconds`` is wall time, ``cpu`` the CPU time of
    the whole process during the span; both are in seconds, and 0 until the span ends. ``category``
    is ``phase`` or ``pass``. ``args`` are facts such as ``{"file": "m.onnx"}``; if an exception
    ended the span, ``error`` is among them: its code, or its type.
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
    """A recording; ``spans`` are the outermost spans in the order of their start.

    ``origin`` is the ``time.perf_counter`` value at the beginning, ``time`` the same in seconds
    since 1970. ``seconds`` (wall) and ``cpu`` are the duration of the recording, 0 until it ends.
    """

    def __init__(self) -> None:
        """Begin the recording now."""
        self.spans: list[Span] = []
        self.time = time.time()
        self.origin = time.perf_counter()
        self.seconds = self.cpu = 0.0
        self._cpu = time.process_time()

    def end(self) -> None:
        """Set the duration of the recording."""
        self.seconds = time.perf_counter() - self.origin
        self.cpu = time.process_time() - self._cpu

    def walk(self) -> Iterator[tuple[int, Span]]:
        """Yield every span with its depth, outer spans before inner ones."""
        stack = [(0, span) for span in reversed(self.spans)]
        while stack:
            depth, span = stack.pop()
            yield depth, span
            stack += [(depth + 1, inner) for inner in reversed(span.children)]

    def named(self, name: str) -> list[Span]:
        """Return the spans called ``name``, at any depth, in order."""
        return [span for _, span in self.walk() if span.name == name]


_Siblings: TypeAlias = list[Span]

_siblings: ContextVar[_Siblings | None] = ContextVar("smelt.spans", default=None)
"""The list that new spans of a context join: the recorder's, or that of the enclosing span."""


class OpenSpan:
    """A running span; this class records nothing, for use outside of ``recording``."""

    def note(self, **args: Any) -> None:
        """Do nothing; a recorded span adds ``args`` to its facts."""

    def __enter__(self) -> OpenSpan:
        """Start the span."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Do nothing."""


class _Recorded(OpenSpan):
    """A running span that is recorded."""

    def __init__(self, siblings: _Siblings, name: str, category: str, args: dict[str, Any]) -> None:
        """Hold the span; it starts, and joins the list ``siblings``, when the block is entered."""
        self._siblings = siblings
        self._span = Span(name, category, 0.0, os.getpid(), threading.get_native_id(), args)

    def note(self, **args: Any) -> None:
        """Add ``args`` to the facts of the span."""
        self._span.args.update(args)

    def __enter__(self) -> OpenSpan:
        """Start the span; spans of this context become its children."""
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
        """Set the times of the span, and the error that ended it, if any."""
        self._span.seconds = time.perf_counter() - self._span.start
        self._span.cpu = time.process_time() - self._cpu
        if kind is not None:
            self._span.args["error"] = getattr(error, "code", kind.__name__)
        _siblings.reset(self._token)


_UNRECORDED = OpenSpan()


def span(name: str, category: str = "phase", /, **args: Any) -> OpenSpan:
    """Return a context manager that records its body: ``with span("load", file=path):``.

    It records nothing outside of ``recording``.
    """
    siblings = _siblings.get()
    return _UNRECORDED if siblings is None else _Recorded(siblings, name, category, args)


@contextmanager
def recording() -> Iterator[Recorder]:
    """Collect the spans of this context until the block ends; an outer recording gets them, too.

    A thread is recorded if it runs in a copy of the context (``contextvars.copy_context``).
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
