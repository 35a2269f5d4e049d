"""Run a model in ONNX Runtime until its compiled form is ready, where ONNX Runtime is installed."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.opset import opset_of
from smelt.ir.value_facts.element_type import ElementTypes
from smelt.operators.onnxruntime.runtime_defects import is_wrong
from smelt.runtime.jit.variables import ENGINE as ENGINE_VARIABLE
from smelt.runtime.session import Session, SessionAdvice, open_session
from smelt.sessions.cache_entry import identity_of
from smelt.sessions.options import ENGINE, SessionOptions
from smelt.sessions.process import LOG


def may_run_interim(model: ir.Model, options: SessionOptions) -> bool:
    """True if ONNX Runtime may run ``model`` while the C compiler works.

    It must be installed, and have no known defect in an operator of the model. The engine must be
    ``auto``: with another one, calls wait for the compiler, or never use it.
    """
    engine = options.entries.get(ENGINE) or os.environ.get(ENGINE_VARIABLE) or "auto"
    if engine != "auto" or options.initializers or find_spec("onnxruntime") is None:
        return False
    types = ElementTypes(opset_of(model))
    first_inputs = ((node, node.inputs[0]) for node in scope.nodes(model) if node.inputs)
    typed = ((node, None if value is None else types.of(value)) for node, value in first_inputs)
    return not any(dtype is not None and is_wrong(node, dtype) for node, dtype in typed)


def source_identity(source: bytes | Path) -> object:
    """Return the identity of the file ``source``, which changes with its bytes: a session that
    opens later compares it, so that it does not run another model.

    None if the file cannot be read, or if ``source`` is the bytes of a model, which cannot change.
    """
    if isinstance(source, bytes):
        return None
    try:
        return identity_of(source)
    except OSError:
        return None


class InterimSession:
    """Calls a model in ONNX Runtime; its session opens with the first call.

    No session opens if the file has changed since ``identity`` was read: it may be another model.
    """

    def __init__(
        self, source: bytes | Path, names: Sequence[str], threads: int, identity: object
    ) -> None:
        """Open nothing yet.

        ``names`` are the names of the inputs in order. ``identity`` is what ``source_identity``
        returned before the model was read.
        """
        self._source = source
        self._identity = identity
        self._names = names
        self._advice = SessionAdvice(threads=threads, spinning_after_run=False)
        self._session: Session | None = None
        self._process = os.getpid()
        self._changing = threading.Lock()
        self._fails = False

    def __call__(self, arrays: Sequence[np.ndarray]) -> tuple[Any, ...] | None:
        """Return the results for one array per input.

        None if ONNX Runtime refuses the model or the arrays; then it is not tried again.
        """
        if self._fails:
            return None
        try:
            session = self._opened()
            return tuple(session.run(None, dict(zip(self._names, arrays, strict=True))))
        except Exception as error:  # noqa: BLE001 - the runtime has a type for each status
            LOG.info("NumPy runs the model until the C compiler is done: %s", error)
            self._fails = True
            return None

    def close(self) -> None:
        """Free the session; a later call opens another one."""
        if self._session is not None:
            LOG.info("the compiled program runs the model")
            self._session = None

    def _opened(self) -> Session:
        """Return the session of this process, opened on first use; a forked child opens its own."""
        session = self._session
        if session is not None and self._process == os.getpid():
            return session
        with self._changing:
            if self._session is None or self._process != os.getpid():
                LOG.info("ONNX Runtime runs the model until the C compiler is done")
                if source_identity(self._source) != self._identity:
                    raise OSError(f"{self._source!r} has changed")
                self._session = open_session(self._source, self._advice)
                self._process = os.getpid()
            return self._session
