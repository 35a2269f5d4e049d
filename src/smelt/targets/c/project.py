"""The files of the option ``project``: an example of a call, build files, or a session."""

from __future__ import annotations

from smelt.targets.c.options import Options

FILES = {
    "none": {},
    "main": {"{name}_main.c": "main.c.j2"},
    "cmake": {"{name}_main.c": "main.c.j2", "CMakeLists.txt": "cmake.txt.j2"},
    "session": {"smelt_session.h": "smelt_session.h.j2", "{name}_session.c": "session.c.j2"},
    "zephyr": {"CMakeLists.txt": "zephyr.txt.j2", "zephyr/module.yml": "module.yml.j2"},
}
"""Project to its files and their templates."""


def project_files(options: Options) -> dict[str, str]:
    """Return the template of each file in the project that ``options`` names."""
    return {file.format(name=options.name): t for file, t in FILES[options.project].items()}
