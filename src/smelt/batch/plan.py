"""Which models a batch is about, and where the result of each goes."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from smelt.errors import UsageError

Action: TypeAlias = Literal["optimize", "verify", "compile"]

TAKEN = ("-o", "--output", "--json", "--dry-run")
"""Options that a batch gives by itself, or that leave nothing to record."""

ONE_FILE = ("--report", "--trace")
"""Options that name a file, which every model would write."""


@dataclass(frozen=True)
class Job:
    """One model: its ``name`` below the common root, its path, and where the result is.

    ``output`` lies below the folder of the batch: a file for ``optimize``, a folder for
    ``compile``, and for ``verify`` the model that is compared.
    """

    name: str
    model: str
    output: str


@dataclass(frozen=True)
class Batch:
    """What is done: the command ``action`` with ``options``, for each of ``jobs``.

    ``folder`` holds the results and the record. ``timeout``: seconds for one model, any if None.
    """

    action: Action
    folder: Path
    jobs: tuple[Job, ...]
    options: tuple[str, ...] = ()
    timeout: float | None = None


def plan(
    patterns: Sequence[str | Path],
    action: Action,
    folder: str | Path,
    *,
    options: Sequence[str] = (),
    timeout: float | None = None,
) -> Batch:
    """The batch of all models that ``patterns`` match; no model is read yet.

    A pattern is that of a shell, with ``**`` for folders at any depth; a folder stands for the
    ``.onnx`` files below it. What lies in ``folder`` is left out, as earlier results do. The tree
    of results is that of the models below the last folder that all patterns name.

    Raises UsageError E690 if nothing matches, E691 if two models would have one result, E692 for
    options that a batch gives by itself, or that would have each model write the same file, E637
    for a timeout that is no time.
    """
    if action not in get_args(Action):
        raise UsageError("E637", f"{action!r} is none of {', '.join(get_args(Action))}")
    if timeout is not None and not timeout > 0:
        raise UsageError("E637", f"a timeout of {timeout} seconds is none", fix="--timeout 600")
    _refuse_taken(options)
    target = _absolute(folder)
    texts = [os.fspath(pattern) for pattern in patterns]
    models = _models(texts, target)
    root = os.path.commonpath([_fixed_part(text) for text in texts])
    jobs = tuple(_job(model, root, action) for model in models)
    _refuse_clashes(jobs)
    return Batch(action, target, jobs, tuple(options), timeout)


def _absolute(path: str | Path) -> Path:
    """An absolute path without ``..``; links stay links."""
    return Path(os.path.normpath(Path(path).absolute()))


def _models(patterns: Iterable[str], folder: Path) -> list[Path]:
    found: dict[Path, None] = {}
    for pattern in patterns:
        paths = [path for match in _matches(pattern) for path in _files(match)]
        if not paths:
            what = f"no model matches {pattern!r}"
            raise UsageError("E690", what, fix="a path, or a pattern such as 'models/**/*.onnx'")
        found.update(dict.fromkeys(map(_absolute, paths)))
    models = [path for path in sorted(found) if not path.is_relative_to(folder)]
    if not models:
        raise UsageError(
            "E690",
            f"all models that match lie in {os.fspath(folder)!r}, the folder of the results",
            fix="-o another/folder",
        )
    return models


def _matches(pattern: str) -> list[Path]:
    """What ``pattern`` matches; a name that exists is no pattern, whatever signs it has."""
    if pattern and os.path.lexists(pattern):
        return [Path(pattern)]
    return [Path(match) for match in glob.glob(pattern, recursive=True)]  # noqa: PTH207 - absolute


def _files(match: Path) -> list[Path]:
    if match.is_dir():
        return [path for path in match.rglob("*.onnx") if not path.is_dir()]
    return [match]


def _fixed_part(pattern: str) -> Path:
    """The folder that ``pattern`` names before its first part that may vary."""
    if os.path.lexists(pattern):
        path = _absolute(pattern)
        return path if path.is_dir() else path.parent
    folder = Path(pattern).parent
    while glob.has_magic(str(folder)):
        folder = folder.parent
    return _absolute(folder)


def _job(model: Path, root: str, action: Action) -> Job:
    name = model.relative_to(root)
    output = name.with_suffix("") if action == "compile" else name
    return Job(str(name), str(model), str(output))


def _refuse_clashes(jobs: Iterable[Job]) -> None:
    """Names that differ in case only are one file on some systems."""
    taken: dict[str, Job] = {}
    for job in jobs:
        first = taken.setdefault(job.output.casefold(), job)
        if first is not job:
            raise UsageError(
                "E691",
                f"two models would have one result, {job.output!r}",
                at=(first.model, job.model),
                fix="rename one, or give each a batch of its own",
            )


def _refuse_taken(options: Iterable[str]) -> None:
    for option in options:
        if option.partition("=")[0] in ONE_FILE:
            what = f"each model would write the same file with {option!r}"
            raise UsageError("E692", what, fix="before --: --report FILE, of all models")
        if option.partition("=")[0] in TAKEN or (option[:2] == "-o" and len(option) > 2):
            raise UsageError(
                "E692",
                f"{option!r} is given by the batch itself",
                fix="before --: -o FOLDER of the results, --json for one document",
            )
