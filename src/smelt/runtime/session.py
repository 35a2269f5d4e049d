"""Open sessions of ONNX Runtime with options that can be stored as JSON."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from smelt.errors import UsageError, did_you_mean, not_installed

if TYPE_CHECKING:
    import onnxruntime as ort

Session: TypeAlias = "ort.InferenceSession"

LEAST_MAPPED_BYTES = 1 << 16
"""Bytes from which a weight becomes external data.

Mapping a weight takes a session 14 us; copying it from the protobuf takes 0.5 us per 1024 bytes.
"""

STOP_SPINNING = "session.force_spinning_stop"
"""The option that makes threads stop busy-waiting when a run ends."""

WEIGHTS_OF_KEPT = "session.optimized_model_external_initializers"

LEVELS = {
    "disabled": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
"""Optimization levels, and their names in ONNX Runtime."""


@dataclass(frozen=True)
class SessionAdvice:
    """Options of a session; the defaults are those of ONNX Runtime but for ``memory_reuse``.

    ``level`` is one of ``LEVELS``; ``without`` lists disabled graph optimizers. ``threads`` is the
    number of threads within an operator, 0 for one per core. ``spinning``: idle threads busy-wait
    during a run; ``spinning_after_run``: also for a while after it, which slows the rest of the
    process. ``arena``: freed memory is not returned to the system. ``memory_reuse``: the runtime
    plans which values share memory; without it, a value gets the memory that the arena freed last,
    which is still in the cache (2 % faster over 18 exports, 10 % for a SegFormer).
    ``flush_denormals``: subnormal numbers become 0, which changes results.
    """

    level: str = "all"
    without: tuple[str, ...] = ()
    threads: int = 0
    spinning: bool = True
    spinning_after_run: bool = True
    arena: bool = True
    memory_reuse: bool = False
    flush_denormals: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON data."""
        return {**asdict(self), "without": list(self.without)}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> SessionAdvice:
        """Return the advice in ``document``; UsageError E663 for unknown options or values."""
        for name, value in document.items():
            if name not in ALLOWED_VALUES:
                raise UsageError(
                    "E663",
                    f"a session has no option {name!r}",
                    why=f"its options are {', '.join(ALLOWED_VALUES)}",
                    fix=did_you_mean(
                        name, ALLOWED_VALUES, f"use one of {', '.join(ALLOWED_VALUES)}"
                    ),
                )
            if not _is_allowed(name, value):
                what = f"{name}={value!r} is not a valid option of a session"
                raise UsageError(
                    "E663",
                    what,
                    why=f"{name} must be {ALLOWED_VALUES[name]}",
                    fix="`smelt explain ort` lists the options of a session",
                )
        options: dict[str, Any] = dict(document)
        return SessionAdvice(**{**options, "without": tuple(options.get("without", ()))})


ALLOWED_VALUES = {
    "level": f"one of {', '.join(LEVELS)}",
    "without": "a list of names of graph optimizers",
    "threads": "a whole number, 0 for one per core",
    **dict.fromkeys(
        ("spinning", "spinning_after_run", "arena", "memory_reuse", "flush_denormals"),
        "true or false",
    ),
}
"""The options of ``SessionAdvice`` and their allowed values, in words."""


def _is_allowed(name: str, value: object) -> bool:
    """True if ``value`` is allowed for the session option ``name``."""
    match name:
        case "level":
            return isinstance(value, str) and value in LEVELS
        case "without":
            return isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)
        case "threads":
            return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return isinstance(value, bool)


def session_options(advice: SessionAdvice) -> ort.SessionOptions:
    """Return ``advice`` as ONNX Runtime's SessionOptions; raises UsageError E631 without it."""
    ort = _import()
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[advice.level])
    options.intra_op_num_threads = advice.threads
    options.log_severity_level = 4  # failures raise exceptions; the log adds only noise
    options.enable_cpu_mem_arena = advice.arena
    options.enable_mem_reuse = advice.memory_reuse
    if not advice.spinning:
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not advice.spinning_after_run:
        options.add_session_config_entry(STOP_SPINNING, "1")
    if advice.flush_denormals:
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
    return options


def open_session(
    model: bytes | Path,
    advice: SessionAdvice,
    keep: tuple[Path, str] | None = None,
    library: Path | None = None,
) -> Session:
    """Open a session on the CPU for the model in a file or in bytes.

    ``keep`` is the path to which the optimized model is written, and the name of a file for weights
    in the same folder. ``library`` has the custom operators of the model.
    """
    ort = _import()
    source = model if isinstance(model, bytes) else str(model)
    extra_arguments = {"disabled_optimizers": list(advice.without)} if advice.without else {}
    options = session_options(advice)
    if library is not None:
        options.register_custom_ops_library(str(library))
    if keep is not None:
        options.optimized_model_filepath = str(keep[0])
        options.add_session_config_entry(f"{WEIGHTS_OF_KEPT}_file_name", keep[1])
        least = str(LEAST_MAPPED_BYTES)
        options.add_session_config_entry(f"{WEIGHTS_OF_KEPT}_min_size_in_bytes", least)
    return ort.InferenceSession(
        source, options, providers=["CPUExecutionProvider"], **extra_arguments
    )


def open_with_library(plain: Path, library: str, advice: SessionAdvice) -> Session:
    """Open the variant of the model ``plain`` with native regions; ``plain`` itself if that fails.

    Native regions are parts that run as compiled C. For ``NAME.onnx``, the variant is
    ``NAME.native.onnx``, and its custom operators are in NAME + ``library``. Warns if these do not
    load, as on another system.
    """
    stem = plain.with_suffix("")
    try:
        model = stem.with_name(f"{stem.name}.native.onnx")
        return open_session(model, advice, library=stem.with_name(f"{stem.name}{library}"))
    except Exception as error:  # noqa: BLE001 - a type for each status of the runtime
        warnings.warn(
            f"the library {stem.name}{library} does not load, so the session runs"
            f" {plain.name} without it: {error}",
            stacklevel=3,
        )
        return open_session(plain, advice)


def _import() -> Any:
    """Return the module onnxruntime; UsageError E631 if it is not installed."""
    try:
        return import_module("onnxruntime")
    except ImportError as error:
        raise not_installed("onnxruntime", "ort", "opening a session") from error
