"""The commands of smelt and the options that all accept, for files that ``main`` imports."""

from __future__ import annotations

from collections.abc import Callable

COMMANDS: dict[str, Callable[..., None]] = {}
"""The commands by name; ``cli.main`` adds them, because it imports their files."""

ANYWHERE = ("--quiet", "--verbose", "--with-weights", "--no-plugins", "--no-config")
"""Options of smelt itself that are also accepted behind the command."""
