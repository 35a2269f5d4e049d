"""Plan a batch: find the models, and the place of each result."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from smelt.errors import UsageError

Action: TypeAlias = Literal["optimize", "verify", "compile"]

RESERVED = ("-o", "--output", "--json", "--dry-run")
"""Options that the batch sets itself, or with which there is nothing to record."""

ONE_FILE = ("--report", "--trace")
"""Options that name one file, which every model would overwrite."""


@dataclass(frozen=True)
class Job:
    """One model: its ``name`` below the common root, its path, and the place of its result.

    ``output`` is relative to the folder of the batch: the file that ``optimize`` writes, the folder
    that ``compile`` writes, or the model that ``verify`` compares with.
    """

    name: str
    model: str
    output: str


@dataclass(frozen=True)
class Batch:
    """The command ``action`` with ``options``, to run on each of ``jobs``.

    ``folder`` holds the results and the record. ``timeout`` is in seconds for one model; None is no
    limit.
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
    """Return the batch of all models that ``patterns`` match; no model is read yet.

    Patterns are shell patterns, with ``**`` for folders at any depth; a folder means the ``.onnx``
    files below it. Files in ``folder``, such as earlier results, are left out. The results keep the
    folder tree of the models below the common folder of all patterns.

    Raises UsageError E690 if nothing matches, E691 if two models have the same result path, E692
    for options that the batch sets itself or that name one file for all models, E637 for a bad
    timeout.
    """
    if action not in get_args(Action):
        raise UsageError(
            "E637",
            f"a batch cannot run {action!r}; it runs {', '.join(get_args(Action))}",
            why="a batch runs one of these commands",
            fix="--do optimize",
        )
    if timeout is not None and not timeout > 0:
        raise UsageError(
            "E637",
            f"a timeout cannot be {timeout} seconds",
            fix="--timeout 600",
            why="a timeout is a number of seconds above 0",
        )
    _refuse_reserved(options)
    target = _absolute(folder)
    texts = [os.fspath(pattern) for pattern in patterns]
    models = _models(texts, target)
    root = os.path.commonpath([_fixed_part(text) for text in texts])
    jobs = tuple(_job(model, root, action) for model in models)
    _refuse_clashes(jobs)
    return Batch(action, target, jobs, tuple(options), timeout)


def _absolute(path: str | Path) -> Path:
    """Return an absolute path without ``..``; symbolic links are kept."""
    return Path(os.path.normpath(Path(path).absolute()))


def _models(patterns: Iterable[str], folder: Path) -> list[Path]:
    """Return the models that ``patterns`` match, outside ``folder``; raises UsageError E690."""
    matched: dict[Path, None] = {}
    for pattern in patterns:
        paths = [path for match in _matches(pattern) for path in _files(match)]
        if not paths:
            what = f"no model matches {pattern!r}"
            raise UsageError(
                "E690",
                what,
                fix="a path, or a pattern such as 'models/**/*.onnx'",
                why="no file with a model matches",
            )
        matched.update(dict.fromkeys(map(_absolute, paths)))
    models = [path for path in sorted(matched) if not path.is_relative_to(folder)]
    if not models:
        raise UsageError(
            "E690",
            f"all models that match lie in {os.fspath(folder)!r}, the folder of the results",
            fix="-o another/folder",
            why="the folder of the results holds results, not sources",
        )
    return models


def _matches(pattern: str) -> list[Path]:
    """Return the paths that ``pattern`` matches; an existing name is never taken as a pattern."""
    if pattern and os.path.lexists(pattern):
        return [Path(pattern)]
    return [Path(match) for match in glob.glob(pattern, recursive=True)]  # noqa: PTH207 - absolute


def _files(match: Path) -> list[Path]:
    """Return the ``.onnx`` files below ``match``, or ``match`` itself if it is a file."""
    if match.is_dir():
        return [path for path in match.rglob("*.onnx") if not path.is_dir()]
    return [match]


def _fixed_part(pattern: str) -> Path:
    """Return the longest folder prefix of ``pattern`` without wildcards."""
    if os.path.lexists(pattern):
        path = _absolute(pattern)
        return path if path.is_dir() else path.parent
    folder = Path(pattern).parent
    while glob.has_magic(str(folder)):
        folder = folder.parent
    return _absolute(folder)


def _job(model: Path, root: str, action: Action) -> Job:
    """Return the Job for ``model``, named by its path below ``root``."""
    name = model.relative_to(root)
    output = name.with_suffix("") if action == "compile" else name
    return Job(str(name), str(model), str(output))


def _refuse_clashes(jobs: Iterable[Job]) -> None:
    """Raise UsageError E691 if two jobs have one result path.

    Case does not count, because some file systems ignore it.
    """
    by_output: dict[str, Job] = {}
    for job in jobs:
        first = by_output.setdefault(job.output.casefold(), job)
        if first is not job:
            raise UsageError(
                "E691",
                f"two models would have one result, {job.output!r}",
                at=(first.model, job.model),
                fix="rename one, or give each a batch of its own",
                why="a result is named by the path of its model below the folder that they share",
            )


def _refuse_reserved(options: Iterable[str]) -> None:
    """Raise UsageError E692 for options that the batch sets, or that name one file."""
    for option in options:
        if option.partition("=")[0] in ONE_FILE:
            what = f"each model would write the same file with {option!r}"
            raise UsageError(
                "E692",
                what,
                fix="write --report FILE before the --, for one report of all models",
                why="each model would overwrite the file of the one before",
            )
        if option.partition("=")[0] in RESERVED or (option[:2] == "-o" and len(option) > 2):
            raise UsageError(
                "E692",
                f"{option!r} stands after the --, but the batch itself sets this option",
                fix="write -o FOLDER or --json before the --",
                why="a batch chooses the files of each model",
            )
