"""The outcome of one model: a line of the record and of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from smelt.batch.content import files_of, size_of
from smelt.errors import ExitStatus, Mismatch


@dataclass(frozen=True)
class Outcome:
    """The result of a command on one model.

    ``status`` is its exit status; ``error`` its error document from ``--json``, or None. ``nodes``
    and ``bytes`` are counts before and after, None if the command has none; bytes are file sizes.
    ``evidence`` is the verification record. ``files`` are the sizes of the written files, by path
    below the folder of the batch.
    """

    name: str
    output: str
    key: str
    status: int
    seconds: float
    error: Mapping[str, Any] | None = None
    nodes: tuple[int, int] | None = None
    bytes: tuple[int, int] | None = None
    evidence: Mapping[str, Any] | None = None
    files: Mapping[str, int] = field(default_factory=dict)
    cached: bool = False

    @property
    def done(self) -> bool:
        """True if the command ended with exit status 0."""
        return self.status == ExitStatus.DONE

    @property
    def code(self) -> str:
        """The code of the error, or an empty text."""
        return str(self.error["code"]) if self.error else ""

    def holds(self, folder: Path) -> bool:
        """True if all written files still exist in ``folder`` with their sizes."""
        try:
            return all((folder / name).stat().st_size == size for name, size in self.files.items())
        except OSError:
            return False

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return asdict(self)


def facts(action: str, document: Mapping[str, Any], model: str, folder: Path) -> dict[str, Any]:
    """Return fields of an Outcome, read from the JSON document of the command ``action``.

    ``model`` is the path of the source.
    """
    if "error" in document:
        return {"error": document["error"]}
    return READERS[action](document, model, folder)


def _optimized(document: Mapping[str, Any], model: str, folder: Path) -> dict[str, Any]:
    """Return node counts, verification record and files of ``smelt optimize``."""
    fields = {"nodes": tuple(document["nodes"]), "evidence": document["evidence"]}
    return fields | _written(files_of(document["output"]), model, folder)


def _compiled(document: Mapping[str, Any], model: str, folder: Path) -> dict[str, Any]:
    """Return node counts, verification record and files of ``smelt compile``."""
    passes = document["passes"]
    nodes = (passes[0]["nodes"][0], passes[-1]["nodes"][1]) if passes else None
    checked = document.get("verification")
    evidence = _evidence(checked) if checked else None
    return {"nodes": nodes, "evidence": evidence} | _written(document["files"], model, folder)


def _written(paths: Iterable[str | Path], model: str, folder: Path) -> dict[str, Any]:
    """Return the fields ``files``, sizes by path below ``folder``, and ``bytes``,
    before and after.
    """
    files = {str(Path(path).relative_to(folder)): Path(path).stat().st_size for path in paths}
    return {"files": files, "bytes": (size_of(model), sum(files.values()))}


def _verified(document: Mapping[str, Any], model: str, folder: Path) -> dict[str, Any]:
    """Return verification record and file sizes of ``smelt verify``, and its error if results
    differ."""
    error = {} if document["ok"] else {"error": _difference(document)}
    fields = {"evidence": _evidence(document), **error}
    return fields | {"bytes": tuple(map(size_of, document["names"]))}


def _evidence(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verification record in the form that ``optimize`` uses."""
    sizes = [trial["sizes"] for trial in document["trials"] if not trial["skipped"]]
    return {
        "mode": "verify",
        "sizes": [size for index, size in enumerate(sizes) if size not in sizes[:index]],
        "worst": document["worst"],
    }


def _difference(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error that a verification's ``check`` would raise, from its document."""
    a, b = document["names"]
    if document["interface"]:
        problem = f"{b!r} does not have the interface of {a!r}"
        return Mismatch(
            "E700",
            problem,
            at=document["interface"][:8],
            why="names, types, order and ranks of inputs and outputs must be equal",
            fix="compare models of one interface; `smelt diff` shows the difference",
        ).to_json()
    problem = f"{b!r} does not compute what {a!r} computes"
    listed_problems = document["problems"][:8]
    return Mismatch(
        "E702",
        problem,
        at=listed_problems,
        why=f"allowed: {document['tolerance']}",
        fix="`smelt bisect` finds the rewrite at fault",
    ).to_json()


READERS = {"optimize": _optimized, "compile": _compiled, "verify": _verified}
"""For each command, the function that reads the fields of an Outcome from its JSON document."""
