"""What is written beside a library: an example of a call, and build files."""

from __future__ import annotations

from smelt.targets.c.options import Options

FILES = {
    "none": {},
    "main": {"{name}_main.c": "main.c.j2"},
    "cmake": {"{name}_main.c": "main.c.j2", "CMakeLists.txt": "cmake.txt.j2"},
    "zephyr": {"CMakeLists.txt": "zephyr.txt.j2", "zephyr/module.yml": "module.yml.j2"},
}
"""Templates by file, for each project."""


def project_files(options: Options) -> dict[str, str]:
    """The templates of the project that ``options`` ask for, by name of the file."""
    return {file.format(name=options.name): t for file, t in FILES[options.project].items()}
