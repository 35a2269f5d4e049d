"""The files of the option ``project``: an example, build files, a package, or a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

EXAMPLE = "examples/classify"
"""The folder of the example that reads tensors as numbers and prints classes."""

FILES: Mapping[str, Mapping[str, str]] = {
    "none": {},
    "main": {"{name}_main.c": "main.c.j2"},
    "cmake": {"{name}_main.c": "main.c.j2", "CMakeLists.txt": "cmake.txt.j2"},
    "session": {"smelt_session.h": "smelt_session.h.j2", "{name}_session.c": "session.c.j2"},
    "zephyr": {"CMakeLists.txt": "zephyr.txt.j2", "zephyr/module.yml": "module.yml.j2"},
    "arduino": {
        "library.properties": "projects/library.properties.j2",
        f"{EXAMPLE}/classify.ino": "projects/classify.ino.j2",
    },
    "platformio": {
        "platformio.ini": "projects/platformio.ini.j2",
        "library.json": "projects/library.json.j2",
        f"{EXAMPLE}/main.c": "projects/classify.c.j2",
        f"{EXAMPLE}/classify.cpp": "projects/classify.ino.j2",
    },
    "esp-idf": {
        "CMakeLists.txt": "projects/component.txt.j2",
        "idf_component.yml": "projects/idf_component.yml.j2",
        f"{EXAMPLE}/CMakeLists.txt": "projects/idf_project.txt.j2",
        f"{EXAMPLE}/main/CMakeLists.txt": "projects/idf_main.txt.j2",
        f"{EXAMPLE}/main/main.c": "projects/classify.c.j2",
    },
    "cmsis-pack": {
        "smelt.{name}.pdsc": "projects/pack.pdsc.j2",
        f"{EXAMPLE}/{{name}}.csolution.yml": "projects/csolution.yml.j2",
        f"{EXAMPLE}/{{name}}.cproject.yml": "projects/cproject.yml.j2",
        f"{EXAMPLE}/main.c": "projects/classify.c.j2",
    },
}
"""Project to its files and their templates."""


class Board(NamedTuple):
    """The board of PlatformIO, and the device of ``ARM::Cortex_DFP``, that an example is for."""

    platform: str
    board: str
    device: str


_M4 = Board("ststm32", "nucleo_f446re", "ARMCM4")
BOARDS: Mapping[str, Board] = {
    "cortex-m0": Board("ststm32", "nucleo_f091rc", "ARMCM0"),
    "cortex-m3": Board("ststm32", "nucleo_f103rb", "ARMCM3"),
    "cortex-m4": _M4,
    "cortex-m33": Board("ststm32", "nucleo_u575zi_q", "ARMCM33"),
    "cortex-m7": Board("ststm32", "nucleo_f767zi", "ARMCM7"),
    "cortex-m55": _M4._replace(device="ARMCM55"),
    "cortex-m85": _M4._replace(device="ARMCM85"),
    "rv32": Board("espressif32", "esp32-c3-devkitm-1", "ARMCM4"),
}
"""By the option ``cpu``; other values get the board of ``cortex-m4``, to be replaced by yours."""


def project_files(name: str, project: str) -> dict[str, str]:
    """Return the template of each file in ``project`` of the library ``name``."""
    return {file.format(name=name): template for file, template in FILES[project].items()}


def classifies(project: str) -> bool:
    """True if ``project`` has the example that reads tensors and prints classes."""
    return any(file.startswith(EXAMPLE) for file in FILES[project])


def project_fields(name: str, project: str, cpu: str) -> dict[str, object]:
    """Return the values of the variables that only the templates of projects have."""
    return {
        "project": project,
        "board": BOARDS.get(cpu, _M4),
        "sources": [f"{name}.c", f"{name}_weights.c"],
        "url": f"https://example.org/{name}",
    }
