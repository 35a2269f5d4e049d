"""The distribution on the package index: its name, version, install command, and its neighbour.

The module and the command are called ``smelt``. On the package index that name belongs to another
project, so every message that tells a user to install something takes the name from here.
"""

from __future__ import annotations

NAME = "smelt-compiler"
VERSION = "0.1.0"
NEIGHBOUR = "smelt"
"""Another project's distribution, which installs a module and a command of the same name."""


def requirement(*extras: str) -> str:
    """Return the requirement for smelt with ``extras``, such as ``smelt-compiler[jax,ort]``."""
    return f"{NAME}[{','.join(extras)}]" if extras else NAME


def install(*extras: str) -> str:
    """Return the shell command that installs smelt with ``extras``."""
    return f"pip install '{requirement(*extras)}'"


def neighbour_warning() -> str:
    """Return a warning if the other project ``smelt`` is installed here, else an empty string.

    The two overwrite each other's files in ``site-packages/smelt``, so ours have to be installed
    again after the other one is gone.
    """
    from importlib import metadata

    try:
        version = metadata.version(NEIGHBOUR)
    except metadata.PackageNotFoundError:
        return ""
    return (
        f"the package {NEIGHBOUR} {version} is another project and overwrites files of {NAME}: "
        f"pip uninstall {NEIGHBOUR}, then pip install --force-reinstall --no-deps {NAME}"
    )
