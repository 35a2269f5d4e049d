"""Open a model from the cache of compiled sessions, or compile it and keep it there."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smelt.errors import SmeltError
from smelt.runtime.jit.cache_key import key_here
from smelt.runtime.jit.caller import Caller
from smelt.runtime.jit.variables import ENGINE as ENGINE_VARIABLE
from smelt.sessions.cache_entry import CacheEntry, Identity, Shapes, cached_caller, identity_of
from smelt.sessions.compiled import CompiledModel, compile_for_session
from smelt.sessions.options import ENGINE, SessionOptions
from smelt.sessions.ports import Description

CLOCK = 20_000_000
"""The most nanoseconds by which the time that a file system notes lies behind the clock."""

Source = str | bytes | os.PathLike[str]


def open_model(source: Source, options: SessionOptions) -> CompiledModel:
    """Return the model of ``source``, from the cache if an earlier process compiled it.

    Raises what ``compile_for_session`` raises.
    """
    key = _key(source, options)
    if key is None:
        return compile_for_session(source, options)
    kept = CacheEntry.read(key)

    def compiled() -> CompiledModel:
        """Return the compiled model, whose further calls are kept."""
        return _compile_and_cache(source, options, key, kept)

    if kept is None:
        return compiled()
    runner = CachedRunner(kept, options.threads, compiled)
    description = Description.from_json(kept.description)
    return CompiledModel(description, runner, runner.check_feeds, runner.ready)


class CachedRunner:
    """Runs a model by the library calls in its cache entry.

    For inputs of other shapes it compiles the model, once.
    """

    def __init__(
        self, kept: CacheEntry, threads: int, compiled: Callable[[], CompiledModel]
    ) -> None:
        """Load and compile nothing yet."""
        self._kept = kept
        self._threads = threads
        self._compile = compiled
        self._compiled: CompiledModel | None = None
        self._changing = threading.RLock()
        self._callers: dict[Shapes, Caller | None] = {}
        self._last: Caller | None = None

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        """Run once; raises what a run of the compiled model raises."""
        if self._last is not None:
            results = self._last(*inputs)
            if results is not None:
                return results
        if all(value is not None for value in inputs):
            arrays = [np.array(value, order="C", copy=None) for value in inputs]
            caller = self._caller(tuple(array.shape for array in arrays))
            results = None if caller is None else caller(*arrays)
            if results is not None:
                self._last = caller
                return results
        return self._full().run(*inputs)

    def check_feeds(self, feeds: Mapping[str, Any]) -> None:
        """Raise UsageError E632 for values that do not fit the inputs."""
        self._full().check_feeds(feeds)

    def ready(self, timeout: float | None) -> bool:
        """True if runs are at full speed, after waiting at most ``timeout`` seconds."""
        return self._compiled is None or self._compiled.ready(timeout)

    def _caller(self, shapes: Shapes) -> Caller | None:
        """Return the kept caller for inputs of ``shapes``; None if it is missing or damaged."""
        if shapes in self._callers:
            return self._callers[shapes]
        with self._changing:
            try:
                call = self._kept.call(shapes)
                caller = None if call is None else cached_caller(call, self._threads)
            except (OSError, ValueError, KeyError, TypeError):
                caller = None
            self._callers[shapes] = caller
        return caller

    def _full(self) -> CompiledModel:
        """Return the model compiled in this process, on first use; it takes inputs of any shape."""
        with self._changing:
            if self._compiled is None:
                self._compiled = self._compile()
        return self._compiled


def _key(source: Source, options: SessionOptions) -> str | None:
    """Return the name of the cache entry of ``source``; None if its session is not cached.

    Not cached are sessions with replaced initializers, with the engine ``numpy``, and those that
    write the optimized model, which only a compile makes.
    """
    engine = options.entries.get(ENGINE) or os.environ.get(ENGINE_VARIABLE)
    if options.initializers or options.optimized_model_filepath or engine == "numpy":
        return None
    if not isinstance(source, bytes) and not Path(source).is_file():
        return None
    if isinstance(source, bytes):
        name = f"bytes {hashlib.sha256(source).hexdigest()}"
    else:
        name = os.path.realpath(os.fspath(source))
    level = options.graph_optimization_level.name
    settings = (options.threads, engine, level, sorted(options.dims.items()))
    try:
        return key_here("session", name, json.dumps(settings))
    except SmeltError:
        return None  # there is no C compiler


def _compile_and_cache(
    source: Source, options: SessionOptions, key: str, kept: CacheEntry | None
) -> CompiledModel:
    """Return the compiled model of ``source``, which adds calls to the entry ``kept``.

    Without ``kept``, the entry called ``key`` begins. Only programs of the target ``host`` without
    defaults of inputs are kept.
    """
    from smelt.targets.host.runner import HostRunner

    begin = time.time_ns()
    model = compile_for_session(source, options)
    files = [*model.files] if isinstance(source, bytes) else [source, *model.files]
    unchanged = _unchanged(files, begin)
    runner = model.run
    if unchanged is None or not isinstance(runner, HostRunner) or runner.compiled is None:
        return model
    if not all(port.required for port in model.description.inputs):
        return model
    entry = kept or CacheEntry.begin(key, unchanged, model.description.to_json())
    runner.compiled.keep = entry.add
    return model


def _unchanged(files: Sequence[str | os.PathLike[str]], begin: int) -> list[Identity] | None:
    """Return the identities of ``files``; None if one may have changed since the time ``begin``.

    ``begin`` is in nanoseconds, taken before the files were read.
    """
    try:
        identities = [identity_of(path) for path in files]
    except OSError:
        return None
    changes = (max(identity[2], identity[3]) for identity in identities)
    return None if any(change > begin - CLOCK for change in changes) else identities
