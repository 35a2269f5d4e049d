"""The C compiler of this machine: its command, its flags, and the cache key of its output."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from smelt.errors import InternalError, ResourceLimit
from smelt.runtime.c_compiler import compiler_command

TIME_LIMIT = 120.0
"""The time limit of the compiler for one program, in seconds."""

FLAGS = ("-std=gnu11", "-O2", "-ftree-vectorize", "-w")
FLOAT_FLAGS = ("-fno-math-errno", "-fno-trapping-math")
"""Flags that preserve NaN, infinities and the order of operations."""

COMPILER_FLAGS = {
    "gcc": ("-fvect-cost-model=dynamic", "-ffp-contract=fast"),
    "clang": ("-ffp-contract=on",),
}
"""Flags of each compiler for fused multiply-add; clang fuses within a statement, which suffices."""

CPU_FLAGS = {"x86_64": ("-march=native",), "aarch64": ("-mcpu=native",), "arm64": ("-mcpu=native",)}


@dataclass(frozen=True)
class Toolchain:
    """The compiler ``command`` with ``flags``; ``version`` is the output of ``--version``."""

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]

    def key(self, *texts: str) -> str:
        """Return the cache key of the library of ``texts`` built by this compiler for this CPU."""
        digest = hashlib.sha256()
        for text in (*self.command, self.version, *self.flags, cpu(), *texts):
            digest.update(f"{len(text)}:{text}".encode())
        return digest.hexdigest()

    def compile(self, text: str, folder: Path, extra_flags: Sequence[str] = ()) -> Path:
        """Compile the C ``text`` into a shared library in ``folder`` and return its path.

        Raises OSError if it cannot be written, ResourceLimit E561 if the compiler takes too long,
        and InternalError E961 if it rejects the text.
        """
        (folder / "source.c").write_text(text, "ascii")
        flags = [
            *self.flags,
            *extra_flags,
            "-shared",
            "-fPIC",
            "-o",
            "library.so",
            "source.c",
            "-lm",
        ]
        status, output = _run([*self.command, *flags], folder, TIME_LIMIT)
        (folder / "source.c").unlink()
        if status or not (folder / "library.so").is_file():
            lines = output.splitlines()
            raise InternalError(
                "E961",
                "the C compiler refuses the generated code",
                at=" ".join(self.command),
                why=next((line for line in lines if "error" in line), (lines or [""])[0]),
                fix="if CC is right, report this with the model",
            )
        return folder / "library.so"


@cache
def toolchain(chosen: str | None = None) -> Toolchain:
    """Return the compiler of this machine, cached by ``chosen``, the value of ``$CC``.

    Raises UsageError E661 if the machine has no C compiler.
    """
    command = compiler_command()
    _, version = _run([*command, "--version"], Path.cwd(), 10.0)
    kind = "clang" if "clang" in version else "gcc"
    cpu_flags = CPU_FLAGS.get(platform.machine(), ())
    flags = (*FLAGS, *FLOAT_FLAGS, *COMPILER_FLAGS[kind], *cpu_flags)
    return Toolchain(tuple(command), f"{shutil.which(command[0])} {version}", flags)


def this_toolchain() -> Toolchain:
    """Return the compiler for the current ``$CC``; see ``toolchain``."""
    return toolchain(os.environ.get("CC"))


@cache
def cpu() -> str:
    """Return the name and the instruction sets of this CPU, on which compiled code depends."""
    facts = {platform.machine(), platform.processor()}
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        words = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part")
        lines = cpuinfo.read_text("utf-8", "replace").splitlines()
        facts |= {line for line in lines if line.split("\t")[0].strip() in words}
    return "\n".join(sorted(facts))


@dataclass(frozen=True)
class _Running:
    """The compilers that threads of one process currently run."""

    processes: set[subprocess.Popen[str]] = field(default_factory=set)
    changing: threading.Lock = field(default_factory=threading.Lock)


@cache
def _running_of(process: int) -> _Running:
    """Return the compilers of the process with this id."""
    return _Running()


def end_compilers() -> None:
    """Kill the compilers that this process runs, but not those of its parent."""
    running = _running_of(os.getpid())
    with running.changing:
        for process in running.processes:
            _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill ``process`` and, where process groups exist, everything it started."""
    if not hasattr(os, "killpg"):
        process.kill()
    elif process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def _run(command: Sequence[str], folder: Path, limit: float) -> tuple[int, str]:
    """Run ``command`` in ``folder``; return its exit status and output.

    Kills it with all its children and raises ResourceLimit E561 after ``limit`` seconds.
    """
    running = _running_of(os.getpid())
    with running.changing:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        running.processes.add(process)
    try:
        output, _ = process.communicate(timeout=limit)
    except BaseException as error:
        _kill(process)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise ResourceLimit(
                "E561",
                f"the C compiler took more than {limit:.0f} seconds",
                at=" ".join(command),
                fix="name another compiler in the environment variable CC",
                why="the compiler may hang, or the machine is busy",
            ) from error
        raise
    finally:
        with running.changing:
            running.processes.discard(process)
    return process.returncode, output
