"""Store the model that ONNX Runtime's graph optimizers made, so that the next session opens faster.

A session of a convolutional network spends most of its opening time on these optimizers, above all
on the blocked-channel layout of filters. The result depends on the runtime's version and the CPU's
vector instructions, so it is stored in a folder of this machine under a hash of both.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from smelt.errors import UsageError
from smelt.runtime.onnxruntime import version
from smelt.runtime.session import Session, SessionAdvice, open_session

CPUINFO = Path("/proc/cpuinfo")
FILE, WEIGHTS = "model.onnx", "model.onnx.data"
PARTIAL = ".partial-"


def open_kept(model: Path, advice: SessionAdvice, folder: Path) -> Session:
    """Open a session from the stored form of ``model`` in ``folder``, or open the model and store
    it.

    Stored forms of an older version of the file are removed. Raises UsageError E614 if the folder
    cannot be written, and the errors of opening a session.
    """
    if advice.level == "disabled":
        return open_session(model, advice)
    owner, key = _name(model, advice)
    entry = folder / f"{owner}-{key}"
    if (entry / FILE).is_file():
        try:
            return open_session(entry / FILE, replace(advice, level="disabled", without=()))
        except Exception:  # noqa: BLE001 - a type for each status of the runtime
            shutil.rmtree(entry, ignore_errors=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=folder))
    except OSError as error:
        what = f"cannot write to {str(folder)!r}"
        raise UsageError(
            "E614", what, why=str(error), fix="let kept= name a folder that you may write to"
        ) from error
    try:
        session = open_session(model, advice, (partial / FILE, WEIGHTS))
        if _has_same_interface(session, partial / FILE):
            for old in folder.glob(f"{owner}-*"):
                shutil.rmtree(old, ignore_errors=True)
            with suppress(OSError):  # another process was first
                partial.rename(entry)
        return session
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _has_same_interface(session: Session, path: Path) -> bool:
    """True if the stored model has the same inputs and outputs as ``session``.

    Models up to IR version 3 list folded constants as inputs.
    """
    advice = SessionAdvice(level="disabled", threads=1)
    return _interface(open_session(path, advice)) == _interface(session)


def _interface(session: Session) -> list[tuple[str, str]]:
    """Return the names and types of all inputs and outputs."""
    return [(v.name, v.type) for v in (*session.get_inputs(), *session.get_outputs())]


def _name(model: Path, advice: SessionAdvice) -> tuple[str, str]:
    """Return the name of a stored form in two parts: a hash of the file's path, and a hash of
    everything else on which the stored form depends.
    """
    path = model.resolve()
    files = [(f, f.stat()) for f in sorted(path.parent.glob(f"{path.name}*"))]
    facts = [(file.name, status.st_size, status.st_mtime_ns) for file, status in files]
    dependences = (facts, advice.level, sorted(advice.without), version(), _machine())
    return _digest(str(path))[:16], _digest(json.dumps(dependences))[:16]


def _digest(text: str) -> str:
    """Return the SHA-256 of ``text``."""
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _machine() -> str:
    """Return the CPU's name and features as far as the system reports them."""
    description = f"{platform.system()} {platform.machine()} {platform.processor()}"
    with suppress(OSError):
        text = CPUINFO.read_text(encoding="utf-8", errors="replace")
        lines = re.findall(r"^(?:model name|flags|Features|CPU part)\s*:.*$", text, re.MULTILINE)
        description += " ".join(sorted(set(lines)))
    return description
