"""Compilers accept the emitted C without warnings, as C99 and C++, for this machine and for small
ones.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from c_library import Library
from c_programs import CONSTANT, KINDS, files_of, main_of, runs_of

from bench.cortex_m import BOARDS, compiler_command, emulator_command, link

WARNINGS = [
    *("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wcast-align"),
    *("-Wdouble-promotion", "-Wundef", "-Werror"),
]
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DSMELT_NO_DISPATCH"]


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(KINDS, constant=CONSTANT, flags=("-O0", "-DSMELT_NO_DISPATCH"))


@pytest.fixture(scope="module")
def folder(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all models of ``KINDS`` and a program that runs them."""
    folder = tmp_path_factory.mktemp("kinds")
    write(folder, library, list(KINDS))
    return folder


def write(folder: Path, library: Library, names: Sequence[str]) -> None:
    for file, data in files_of(library, names).items():
        (folder / file).write_bytes(data)
    (folder / "main.c").write_bytes(main_of(runs_of(library, names)))


def needs(tool: str, package: str) -> str:
    """Return the path of a tool, or skip the test with a text that says what to install."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed; Debian has it in the package {package}")
    return tool


def needs_specs(compiler: str, specs: str, package: str) -> None:
    """Skip the test without the C library that ``specs`` of ``compiler`` need."""
    found = run([compiler, f"--print-file-name={specs}"], Path.cwd()).strip()
    if not Path(found).is_absolute():  # a compiler repeats a name that it finds no file for
        pytest.skip(f"{compiler} has no {specs}; Debian has it in the package {package}")


def run(command: Sequence[str], folder: Path) -> str:
    """Return the output of ``command``, which must succeed."""
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={"PATH": "/usr/bin:/bin", "ASAN_OPTIONS": "detect_leaks=0"},
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}{done.stdout[-2000:]}"
    return done.stdout + done.stderr


def sources(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.glob("*.c"))


MEMORY = {"memcpy", "memmove", "memset"}
MATH = {"expf", "frexpf", "ldexpf", "sinf", "sqrtf", "tanhf"}


def undefined(folder: Path) -> set[str]:
    """Return the functions that the objects in ``folder`` call and do not define."""
    objects = [str(file) for file in folder.glob("m*.o")]
    words = [line.split() for line in run(["nm", "-u", *objects], folder).splitlines()]
    names = {word[-1] for word in words if word[:1] == ["U"]}
    return {name for name in names if "_weight" not in name and name != "_GLOBAL_OFFSET_TABLE_"}


LANGUAGES = {
    "gcc": ["gcc", "-std=c99", "-O1", "-fsyntax-only"],
    "clang": ["clang", "-std=c99", "-O1", "-fsyntax-only"],
    "g++": ["g++", "-std=c++11", "-x", "c++", "-O1", "-fsyntax-only"],
    "clang++": ["clang++", "-std=c++11", "-x", "c++", "-O1", "-fsyntax-only"],
    "gcc -O2": ["gcc", "-std=c99", "-O2", "-DSMELT_NO_DISPATCH", "-c"],
}
"""Warnings that come of reading are asked for with the second version for wider vectors; those
that come of optimizing without it, which takes longer."""


@pytest.mark.parametrize("command", LANGUAGES.values(), ids=LANGUAGES)
def test_compiles_without_a_warning(command: list[str], folder: Path) -> None:
    needs(command[0], "clang" if "clang" in command[0] else "build-essential")
    models = [file for file in sources(folder) if file != "main.c"]
    assert run([*command, *WARNINGS, *models], folder) == ""
    if "-c" in command:
        assert undefined(folder) <= MATH | MEMORY


@pytest.mark.parametrize("compiler", ["gcc"])
def test_sanitizers_find_nothing_in_many_models_in_one_binary(compiler: str, folder: Path) -> None:
    run([compiler, "-std=c99", "-O0", *SANITIZED, *sources(folder), "-o", "run", "-lm"], folder)
    assert run(["./run"], folder) == ""


SMALL = ["block", "quantized", "a loop", "lstm", "half floats", "axes at run time", "indexing"]
"""What fits into the 16 KiB of the smallest, stack and results included."""
FRAME = 1024


@pytest.mark.parametrize("cpu", ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7"])
def test_runs_on_a_bare_machine_with_small_frames(
    cpu: str, library: Library, tmp_path: Path
) -> None:
    needs("arm-none-eabi-gcc", "gcc-arm-none-eabi with libnewlib-arm-none-eabi")
    needs("qemu-system-arm", "qemu-system-arm")
    board = BOARDS[cpu]
    write(tmp_path, library, SMALL if cpu == "cortex-m0" else list(KINDS))
    models = [file for file in sources(tmp_path) if file.startswith("m") and file != "main.c"]
    run([*compiler_command(board), "-fstack-usage", *WARNINGS, "-c", *models], tmp_path)
    frames = [line.split("\t") for each in tmp_path.glob("*.su") for line in each.open()]
    assert frames
    assert [frame for frame in frames if int(frame[1]) > FRAME and "double" not in frame[0]] == []
    link(board, tmp_path, [*(f"{Path(file).stem}.o" for file in models), "main.c"])
    run(emulator_command(board), tmp_path)


def test_runs_on_64_bits_of_risc_v(library: Library, tmp_path: Path) -> None:
    needs("riscv64-linux-gnu-gcc", "gcc-riscv64-linux-gnu with libc6-dev-riscv64-cross")
    needs("qemu-riscv64", "qemu-user")
    write(tmp_path, library, list(KINDS))
    command = ["riscv64-linux-gnu-gcc", "-std=c99", "-O2", *WARNINGS, "-static"]
    run([*command, *sources(tmp_path), "-o", "run", "-lm"], tmp_path)
    run(["qemu-riscv64", "./run"], tmp_path)


LINUX = """
int main(void);
void start(void);
void start(void)
{
    register long result __asm__("a0") = main(), call __asm__("a7") = 93;
    __asm__ volatile("ecall" : : "r"(result), "r"(call));
    for (;;)
        ;
}
void _start(void) __attribute__((naked));
void _start(void) { __asm__ volatile(".option norelax\\n la gp, __global_pointer$\\n .option relax\\n and sp, sp, -16\\n j start"); }
"""
PROCESS = """
ENTRY(_start)
SECTIONS {
  . = 0x10000;
  .text : { *(.text*) *(.rodata*) *(.srodata*) }
  . = ALIGN(0x1000);
  .data : { __global_pointer$ = . + 0x800; *(.sdata*) *(.data*) }
  .bss : { *(.sbss*) *(.bss*) *(COMMON) }
}
"""


def test_runs_on_32_bits_of_risc_v(library: Library, tmp_path: Path) -> None:
    compiler_name = needs("riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf")
    needs_specs(compiler_name, "picolibc.specs", "picolibc-riscv64-unknown-elf")
    needs("qemu-riscv32", "qemu-user")
    write(tmp_path, library, list(KINDS))
    (tmp_path / "start.c").write_text(LINUX)
    compiler = [compiler_name, "-march=rv32imac", "-mabi=ilp32", "-std=gnu99"]
    compiler += ["-O2", "--specs=picolibc.specs"]
    models = [file for file in sources(tmp_path) if file.startswith("m") and file != "main.c"]
    run([*compiler, *WARNINGS, "-c", *models], tmp_path)
    (tmp_path / "process.ld").write_text(PROCESS)
    linked = ["-nostartfiles", "-T", "process.ld", "-o", "run.elf", "-lm", "-lc", "-lgcc"]
    objects = [f"{Path(file).stem}.o" for file in models]
    run([*compiler, "-w", *objects, "main.c", "start.c", *linked], tmp_path)
    run(["qemu-riscv32", "./run.elf"], tmp_path)
