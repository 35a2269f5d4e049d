"""Build C into a WebAssembly module with clang and lld, or with the compiler in ``ziglang``."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from smelt.distribution import install
from smelt.errors import InternalError, ResourceLimit, UsageError

VARIABLE = "SMELT_WASM_CC"
NEWEST, OLDEST = 24, 13
"""The versions of clang that Debian names its commands by, ``clang-14``."""

FLAGS = (
    *("-std=gnu11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-w"),
    *("-mbulk-memory", "-mnontrapping-fptoint", "-msign-ext", "-fvisibility=hidden"),
    *("-fno-stack-protector", "-fno-strict-aliasing", "-fno-slp-vectorize"),
)
"""Flags that preserve NaN, infinities and the order of operations.

Buffers are arrays of bytes and hold numbers of several types in turn. The vectorizer of straight
lines in clang 14 makes wrong code of a Resize (``test_resize_tf_crop_and_resize`` of ONNX).
"""

LINK = (
    *("-mexec-model=reactor", "-Wl,--no-entry", "-Wl,--strip-all", "-Wl,--gc-sections"),
    "-Wl,-z,stack-size=262144",
)
NOT_ZIG = ("-nostdlib", "-Wl,--stack-first")
"""Flags that zig lacks: no start files, and the stack below all data, so that overflow traps."""

SIMD = ("-msimd128",)
TIME_LIMIT = 600.0
"""The time limit of the compiler in seconds."""

FIX = (
    "install clang, lld and wasi-libc (Debian: apt-get install clang lld wasi-libc), "
    f"or {install('wasm')}, or name a compiler in the environment variable {VARIABLE}"
)


def compiler_command() -> tuple[str, ...]:
    """Return the compiler as a command: ``$SMELT_WASM_CC``, else a clang that builds WebAssembly,
    else the one in ``ziglang``.

    Raises UsageError E675 without one.
    """
    return _command(os.environ.get(VARIABLE, ""))


@cache
def _command(chosen: str) -> tuple[str, ...]:
    """Return the command of the compiler that ``chosen`` names, or of the first that works."""
    if chosen:
        command = tuple(shlex.split(chosen))
        if shutil.which(command[0]) and _builds(command):
            return command
        what = f"{chosen!r} builds no WebAssembly"
    else:
        for candidate in _candidates():
            if _builds(candidate):
                return candidate
        what = "no compiler for WebAssembly was found"
    why = (
        "a model becomes C, which a C compiler with a WebAssembly back end, lld and wasi-libc build"
    )
    raise UsageError("E675", what, why=why, fix=FIX)


def _candidates() -> Iterator[tuple[str, ...]]:
    """Yield the compilers that this machine has, best first."""
    versions = (f"clang-{number}" for number in range(NEWEST, OLDEST - 1, -1))
    for name in ("clang", *versions):
        if shutil.which(name):
            yield (name,)
    if find_spec("ziglang") is not None:
        yield (sys.executable, "-m", "ziglang", "cc")


def _builds(command: Sequence[str]) -> bool:
    """True if ``command`` builds a module with a function of math.h."""
    text = "#include <math.h>\nfloat run(float x);\nfloat run(float x) { return expf(x); }\n"
    with tempfile.TemporaryDirectory(prefix="smelt-wasm-") as folder:
        status, _ = _compile(command, text, Path(folder), ("run",), SIMD)
    return status == 0


def build(
    text: str,
    exports: Sequence[str],
    flags: Sequence[str] = SIMD,
    more: Mapping[str, str] | None = None,
) -> bytes:
    """Return the module of the C ``text`` that exports ``exports`` and its memory.

    ``more`` are further C files and headers by name.

    Raises UsageError E675 without a compiler, InternalError E961 if it rejects the text, and
    ResourceLimit E561 if it takes too long.
    """
    command = compiler_command()
    with tempfile.TemporaryDirectory(prefix="smelt-wasm-") as name:
        folder = Path(name)
        for file, contents in (more or {}).items():
            (folder / file).write_text(contents, "ascii")
        status, output = _compile(command, text, folder, exports, flags)
        if status == 0:
            return (folder / "model.wasm").read_bytes()
    lines = output.splitlines()
    raise InternalError(
        "E961",
        "the C compiler refuses the generated code",
        at=" ".join(command),
        why=next((line for line in lines if "error" in line), (lines or [""])[0]),
        fix=f"if {VARIABLE} is right, report this with the model",
    )


def _compile(
    command: Sequence[str], text: str, folder: Path, exports: Sequence[str], flags: Sequence[str]
) -> tuple[int, str]:
    """Compile ``text`` and the C files in ``folder`` to ``model.wasm`` there.

    Returns the exit status and the output.
    """
    (folder / "model.c").write_text(text, "ascii")
    exported = [f"-Wl,--export={name}" for name in exports]
    line = [*command, "--target=wasm32-wasi", *FLAGS, *flags, *LINK, *exported]
    line += [] if any("zig" in Path(part).name for part in command) else NOT_ZIG
    sources = sorted(path.name for path in folder.glob("*.c"))
    line += ["-o", "model.wasm", *sources, "-lc", "-lm"]
    try:
        process = subprocess.run(
            line, cwd=folder, capture_output=True, text=True, check=False, timeout=TIME_LIMIT
        )
    except subprocess.TimeoutExpired as error:
        raise ResourceLimit(
            "E561",
            f"the C compiler took more than {TIME_LIMIT:.0f} seconds",
            at=" ".join(line),
            why="the model has very many layers, or the machine is busy",
            fix="split the model, or name another compiler in " + VARIABLE,
        ) from error
    except OSError as error:
        return 1, str(error)
    return process.returncode, process.stderr
