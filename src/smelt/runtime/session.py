"""Sessions of ONNX Runtime as users open them, and advice on their options as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from smelt.errors import UsageError, not_installed

if TYPE_CHECKING:
    import onnxruntime as ort

Session: TypeAlias = "ort.InferenceSession"

LEVELS = {
    "disabled": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
"""Levels of graph optimization by the names that advice has for them."""


@dataclass(frozen=True)
class SessionAdvice:
    """With which options to open a session; the defaults are those of ONNX Runtime.

    ``level`` is one of ``LEVELS``; ``without`` names graph optimizers that are left out.
    ``threads`` work within an operator, 0 for one a core. ``spinning``: whether idle threads wait
    in a loop. ``arena``: whether freed memory is kept. ``flush_denormals``: whether numbers below
    the least normal one become 0, which changes results.
    """

    level: str = "all"
    without: tuple[str, ...] = ()
    threads: int = 0
    spinning: bool = True
    arena: bool = True
    flush_denormals: bool = False

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "without": list(self.without)}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> SessionAdvice:
        """Raises UsageError E663 for what is no advice."""
        known = {field.name: field for field in fields(SessionAdvice)}
        for name, value in document.items():
            default = getattr(SessionAdvice, name, None)
            kind = list if isinstance(default, tuple) else type(default)
            if name not in known or not isinstance(value, kind):
                raise _no_advice(f"{name} = {value!r}")
        given: dict[str, Any] = dict(document)
        given["without"] = tuple(given.get("without", ()))
        advice = SessionAdvice(**given)
        if advice.level not in LEVELS or advice.threads < 0:
            raise _no_advice(f"level = {advice.level!r}, threads = {advice.threads}")
        return advice


def _no_advice(what: str) -> UsageError:
    return UsageError(
        "E663",
        f"no session can be opened with {what}",
        why=f"levels are {', '.join(LEVELS)}",
        fix="compile the model again, or mend session.json",
    )


def session_options(advice: SessionAdvice) -> ort.SessionOptions:
    """``advice`` as the options that the runtime takes; raises UsageError E631 without it."""
    ort = _import()
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[advice.level])
    options.intra_op_num_threads = advice.threads
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = advice.arena
    if not advice.spinning:
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if advice.flush_denormals:
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
    return options


def open_session(model: bytes | Path, advice: SessionAdvice) -> Session:
    """A session of the model in a file, or in bytes, on the CPU."""
    ort = _import()
    source = model if isinstance(model, bytes) else str(model)
    more = {"disabled_optimizers": list(advice.without)} if advice.without else {}
    return ort.InferenceSession(
        source, session_options(advice), providers=["CPUExecutionProvider"], **more
    )


def _import() -> Any:
    try:
        return import_module("onnxruntime")
    except ImportError as error:
        raise not_installed("onnxruntime", "ort", "opening a session") from error
