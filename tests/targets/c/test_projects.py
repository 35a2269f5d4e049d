"""Packages for Arduino, PlatformIO, ESP-IDF and CMSIS-Pack build, and their examples print classes."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from c_library import compile_text

from smelt.errors import UsageError

MODEL = "g (float[2,3] x) => (float[2,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { m = MatMul(x, w) y = Exp(m) }"
NUMBERS = "0.1 0.2\n0.3  -1\t-2 -1.5\n"
CLASSES = ["class 3", "class 0"]

ARDUINO = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct Port {
    void begin(long) {}
    void setTimeout(long) {}
    int available() { int c = getchar(); if (c == EOF) exit(0); ungetc(c, stdin); return 1; }
    float parseFloat() { float f = 0; return scanf("%f", &f) == 1 ? f : (exit(0), 0); }
    void print(const char *text) { printf("%s", text); }
    void println(int number) { printf("%d\\n", number); }
};
static Port Serial;
static inline unsigned long micros() { return 0; }
"""
MAIN = '#include "classify.ino"\nint main() { setup(); for (;;) loop(); }\n'
ENDED = "#include <stdlib.h>\nstatic inline void vTaskDelay(int ticks) { exit(ticks != 1); }\n"
ESP = "void app_main(void);\nint main(void) { app_main(); return 1; }\n"
IDF = """
function(idf_component_register)
  cmake_parse_arguments(C "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
  list(TRANSFORM C_SRCS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  target_sources(app PRIVATE ${C_SRCS})
  target_include_directories(app PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  set(COMPONENT_LIB app PARENT_SCOPE)
endfunction()
macro(project name)
  _project(${name} C)
  add_executable(app $ENV{IDF_PATH}/start.c)
  target_include_directories(app PRIVATE $ENV{IDF_PATH})
  target_link_libraries(app m)
  foreach(component ${EXTRA_COMPONENT_DIRS} ${CMAKE_CURRENT_LIST_DIR}/main)
    get_filename_component(component ${component} ABSOLUTE)
    string(MD5 place ${component})
    add_subdirectory(${component} ${place})
  endforeach()
endmacro()
"""
STUBS = {
    "arduino": {"stubs/Arduino.h": ARDUINO, "stubs/start.cpp": MAIN},
    "esp-idf": {
        "stubs/freertos/FreeRTOS.h": "",
        "stubs/freertos/task.h": ENDED,
        "stubs/start.c": ESP,
        "stubs/tools/cmake/project.cmake": IDF,
    },
}
EXAMPLE = {
    "arduino": ["stubs/start.cpp"],
    "esp-idf": ["stubs/start.c", "examples/classify/main/main.c"],
}
KINDS = ["arduino", "platformio", "esp-idf", "cmsis-pack"]


def saved(kind: str, folder: Path, **options: object) -> None:
    """Save the package of ``kind`` with headers that stand for those of its boards."""
    compile_text(MODEL, project=kind, name="digits", **options).save(folder)
    for file, text in STUBS.get(kind, {}).items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)


def classes(program: Path) -> list[str]:
    """Return the lines that the example prints for ``NUMBERS``."""
    return subprocess.run(
        [program], input=NUMBERS, check=True, capture_output=True, text=True
    ).stdout.splitlines()


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_prints_the_class_of_each_row(kind: str, tmp_path: Path) -> None:
    saved(
        kind,
        tmp_path,
        profile=kind == "esp-idf",
        weights="incbin" if kind == "cmsis-pack" else "hex",
    )
    flags = [
        "-Wall",
        "-Wextra",
        "-Werror",
        "-DSMELT_NO_DISPATCH",
        "-I.",
        "-Istubs",
        "-Iexamples/classify",
    ]
    sources = [*EXAMPLE.get(kind, ["examples/classify/main.c"]), "digits.c", "digits_weights.c"]
    compiler = ["g++", "-xc++", "-std=c++11"] if kind == "arduino" else ["cc", "-std=gnu99"]
    command = [*compiler, *flags, *sources, "-o", "run", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert classes(tmp_path / "run") == CLASSES


@pytest.mark.parametrize("kind", KINDS)
def test_each_file_that_a_manifest_names_is_there(kind: str, tmp_path: Path) -> None:
    saved(kind, tmp_path)
    texts = {
        file: file.read_text()
        for file in tmp_path.rglob("*")
        if file.suffix in {".txt", ".ini", ".pdsc", ".yml", ".properties"}
        or file.name == "library.json"
    }
    named = {
        (file, name)
        for file, text in texts.items()
        for name in re.findall(
            r"[\w/]*(?:digits|main|classify)\w*\.(?:cproject\.yml|cpp|c|h)\b", text
        )
    }
    assert named
    for file, name in named:
        assert (file.parent / name).is_file(), (file, name)


def test_manifests_are_of_their_formats(tmp_path: Path) -> None:
    for kind in KINDS:
        saved(kind, tmp_path / kind, cpu="cortex-m33")
    library = dict(
        line.split("=", 1)
        for line in (tmp_path / "arduino/library.properties").read_text().splitlines()
    )
    required = {
        "name",
        "version",
        "author",
        "maintainer",
        "sentence",
        "paragraph",
        "category",
        "url",
    }
    assert required | {"architectures", "includes"} == library.keys()
    ini = configparser.ConfigParser(interpolation=None)
    ini.read(tmp_path / "platformio/platformio.ini")
    assert ini["env:nucleo_u575zi_q"]["platform"] == "ststm32"
    manifest = json.loads((tmp_path / "platformio/library.json").read_text())
    assert manifest["build"]["srcFilter"] == ["-<*>", "+<digits.c>", "+<digits_weights.c>"]
    pack = ET.parse(tmp_path / "cmsis-pack/smelt.digits.pdsc").getroot()
    order = ["vendor", "name", "description", "url", "releases", "taxonomy", "components"]
    assert [child.tag for child in pack] == order
    assert (
        "ARM::ARMCM33"
        in (tmp_path / "cmsis-pack/examples/classify/digits.csolution.yml").read_text()
    )


@pytest.mark.slow
def test_cmake_builds_the_project_of_esp_idf(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed; Debian has it in the package cmake")
    saved("esp-idf", tmp_path)
    environment = {"IDF_PATH": str(tmp_path / "stubs"), "PATH": "/usr/bin:/bin"}
    folder = tmp_path / "examples/classify"
    for command in (["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"]):
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    assert classes(folder / "build/app") == CLASSES


ARDUINO_FILES = Path("/usr/share/arduino")


@pytest.mark.slow
def test_a_board_of_arduino_prints_classes(tmp_path: Path) -> None:
    tools = ("arduino-builder", "avr-gcc", "qemu-system-avr")
    if not all(map(shutil.which, tools)) or not ARDUINO_FILES.is_dir():
        pytest.skip("Debian has arduino-builder, arduino-core-avr, gcc-avr and qemu-system-misc")
    saved("arduino", tmp_path / "libraries/digits")
    (tmp_path / "out").mkdir()
    paths = {f"runtime.tools.{name}.path": "/usr" for name in ("avr-gcc", "avrdude")}
    paths |= {
        "runtime.tools.ctags.path": "/usr/bin",
        "compiler.cpp.extra_flags": "-DDECIMAL_DIG=17",
    }
    subprocess.run(
        [
            *("arduino-builder", "-compile", "-tools", "/usr/bin", "-build-path", tmp_path / "out"),
            *("-hardware", ARDUINO_FILES / "hardware", "-hardware", "/usr/share/arduino-builder"),
            *("-libraries", tmp_path / "libraries", "-fqbn", "arduino:avr:mega:cpu=atmega2560"),
            *(word for name, path in paths.items() for word in ("-prefs", f"{name}={path}")),
            tmp_path / "libraries/digits/examples/classify/classify.ino",
        ],
        check=True,
        capture_output=True,
    )
    elf = tmp_path / "out/classify.ino.elf"
    command = [
        "qemu-system-avr",
        "-M",
        "mega2560",
        "-bios",
        elf,
        "-nographic",
        "-serial",
        "stdio",
        "-monitor",
        "none",
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as board:
        assert board.stdin is not None
        assert board.stdout is not None
        board.stdin.write(NUMBERS)
        board.stdin.flush()
        lines = [board.stdout.readline().strip() for _ in CLASSES]
        board.kill()
    assert lines == CLASSES


@pytest.mark.parametrize(
    ("graph", "options"),
    [
        (MODEL, {"weights": "bin"}),
        ("g (float16[2] x) => (float16[2] y) { y = Relu(x) }", {}),
        ("g (float[2] x) => (float16[2] y) { y = Cast<to = 10>(x) }", {}),
    ],
)
def test_examples_that_cannot_read_or_compare_are_refused(
    graph: str, options: dict[str, str]
) -> None:
    with pytest.raises(UsageError) as error:
        compile_text(graph, project="arduino", **options)
    assert error.value.code == "E660"
