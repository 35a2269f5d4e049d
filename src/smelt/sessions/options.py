"""The options of a session and of a run, by the names that ONNX Runtime gives them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING

from smelt.errors import UsageError
from smelt.runtime.jit.pool import MOST_THREADS
from smelt.sessions.process import log_once

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from smelt.sessions.value import OrtValue

ENGINE = "smelt.engine"
"""The configuration entry for the option ``engine`` of the target ``host``."""


class GraphOptimizationLevel(Enum):
    """How many passes run before the compile: none, or all of them."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Enum):
    """Whether operators run one after the other; smelt always does."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(Enum):
    """The order of operators; smelt chooses the order that needs the least memory."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


@dataclass
class SessionOptions:
    """The options of a session; ``WITHOUT_EFFECT`` lists those that change nothing here.

    ``intra_op_num_threads`` is the number of threads of costly operators, 0 for one per core that
    this process may use. ``graph_optimization_level``: ``ORT_DISABLE_ALL`` runs no optional passes.
    ``optimized_model_filepath`` is where the optimized model is written. ``log_severity_level`` is
    the least severity of messages, from 0 (all) to 4 (none).
    """

    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    execution_order: ExecutionOrder = ExecutionOrder.DEFAULT
    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    profile_file_prefix: str = "onnxruntime_profile_"
    use_deterministic_compute: bool = False
    use_per_session_threads: bool = True
    optimized_model_filepath: str = ""
    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    entries: dict[str, str] = field(default_factory=dict, repr=False)
    dims: dict[str, int] = field(default_factory=dict, repr=False)
    initializers: dict[str, OrtValue] = field(default_factory=dict, repr=False)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry; ``smelt.engine`` chooses the engine, others have no effect."""
        self.entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """Return a configuration entry; raises UsageError E663 if it was not set."""
        if key in self.entries:
            return self.entries[key]
        what = f"the session has no configuration entry {key!r}"
        raise UsageError(
            "E663",
            what,
            why=f"set are {', '.join(self.entries) or 'none'}",
            fix=f"call add_session_config_entry({key!r}, ...) first",
        )

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Give the symbolic dim ``name`` a size before the model is compiled."""
        self.dims[name] = size

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Replace the values of the initializer ``name`` before the model is compiled."""
        self.initializers[name] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Replace the values of several initializers."""
        self.initializers.update(zip(names, values, strict=True))

    def register_custom_ops_library(self, path: str | Path) -> None:
        """Raise UsageError E663: smelt compiles no operators of such libraries."""
        raise UsageError(
            "E663",
            f"the operators of {str(path)!r} cannot run in a session of smelt",
            why="the library holds code for ONNX Runtime",
            fix="declare the operators with smelt (docs/add-an-operator.md), or open the model "
            "with onnxruntime.InferenceSession",
        )

    @property
    def threads(self) -> int:
        """The number of threads of costly operators."""
        return min(self.intra_op_num_threads or _cores(), MOST_THREADS)

    def log_options_without_effect(self) -> None:
        """Log each option that the user set and smelt ignores, once per process."""
        for option in fields(self):
            why = WITHOUT_EFFECT.get(option.name)
            if why is not None and getattr(self, option.name) != option.default:
                log_once(f"SessionOptions.{option.name} has no effect: {why}", self)
        for key in self.entries:
            if key != ENGINE:
                log_once(f"the session configuration entry {key!r} has no effect", self)


WITHOUT_EFFECT = {
    "inter_op_num_threads": "operators run one after the other",
    "execution_mode": "operators run one after the other",
    "execution_order": "smelt orders operators so that they need the least memory",
    "enable_cpu_mem_arena": "memory is planned before the first run",
    "enable_mem_pattern": "memory is planned before the first run",
    "enable_mem_reuse": "memory is planned before the first run",
    "enable_profiling": "`smelt bench` and `smelt inspect` show where the time goes",
    "profile_file_prefix": "sessions write no profiles",
    "use_deterministic_compute": "compiled programs give the same bits on every run",
    "use_per_session_threads": "all sessions of a process share their threads",
    "log_verbosity_level": "smelt logs no verbose messages",
}
"""The options without an effect, and why."""


@dataclass
class RunOptions:
    """The options of a run, which have no effect except ``terminate``: such a run is refused."""

    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    terminate: bool = False
    entries: dict[str, str] = field(default_factory=dict, repr=False)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry, which has no effect."""
        self.entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """Return a configuration entry; raises KeyError if it was not set."""
        return self.entries[key]


def _cores() -> int:
    """Return the number of cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1
