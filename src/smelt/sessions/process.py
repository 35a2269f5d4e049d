"""What ONNX Runtime keeps for the whole process: providers, versions, the log."""

from __future__ import annotations

import logging
from typing import Protocol

from smelt.distribution import VERSION

LOG = logging.getLogger("smelt.onnxruntime")
PROVIDER = "CPUExecutionProvider"
WARNING = 2
"""The severity of warnings in ONNX Runtime, where 0 is verbose and 4 is fatal."""

_said: set[str] = set()
_least_severity = [WARNING]


class HasSeverity(Protocol):
    """Options with the least severity of the messages to log."""

    log_severity_level: int


def log_once(message: str, options: HasSeverity) -> None:
    """Log ``message`` as a warning, once per process, unless ``options`` exclude warnings."""
    if message not in _said and max(options.log_severity_level, _least_severity[0]) <= WARNING:
        _said.add(message)
        LOG.warning(message)


def set_default_logger_severity(level: int) -> None:
    """Log only messages of at least this severity, from 0 (all) to 4 (none)."""
    _least_severity[0] = level


def set_default_logger_verbosity(level: int) -> None:
    """Do nothing: there are no verbose messages."""


def set_seed(seed: int) -> None:
    """Do nothing: random operators without a seed draw new numbers in each session."""


def get_available_providers() -> list[str]:
    """Return the one provider that there is, by the name that programs for the CPU ask for."""
    return [PROVIDER]


def get_all_providers() -> list[str]:
    """Return the one provider that there is."""
    return [PROVIDER]


def get_device() -> str:
    """Return ``CPU``."""
    return "CPU"


def get_version_string() -> str:
    """Return the version of smelt."""
    return VERSION


def get_build_info() -> str:
    """Return the name and the version of smelt."""
    return f"smelt {VERSION}"
