"""The errors of smelt and their one renderer.

Every error has the same five parts in the same order: a code, what happened, where (``at``), why,
and how to fix it. Nothing else in smelt formats an error, and no error that a user can cause
appears as a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any

from smelt.distribution import install


class ExitStatus(IntEnum):
    """Exit statuses of the command line, one per kind of failure."""

    DONE = 0
    MISMATCH = 1
    USAGE = 2
    INVALID_MODEL = 3
    UNSUPPORTED = 4
    RESOURCE_LIMIT = 5
    INTERNAL = 70


class SmeltError(Exception):
    """A failure that smelt can explain.

    ``code`` is an anchor in ``docs/errors.md``; ``what`` is one sentence; ``at`` lists places
    (node, source line); ``why`` and ``fix`` are one sentence each and may be empty.
    """

    status: ExitStatus = ExitStatus.INTERNAL

    def __init__(
        self,
        code: str,
        what: str,
        *,
        at: str | Sequence[str] = (),
        why: str = "",
        fix: str = "",
    ) -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.at: tuple[str, ...] = (at,) if isinstance(at, str) and at else tuple(at)
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        return render(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled by positional arguments only; __dict__ restores the attributes.
        return _revived, (type(self), self.args), self.__dict__

    def to_json(self) -> dict[str, object]:
        """Return the error as plain data for ``--json``."""
        return {
            "code": self.code,
            "status": int(self.status),
            "what": self.what,
            "at": list(self.at),
            "why": self.why,
            "fix": self.fix,
        }


class Mismatch(SmeltError):
    """Two computations that should agree do not."""

    status = ExitStatus.MISMATCH


class UsageError(SmeltError):
    """The request is wrong: an option, a pipeline, a path."""

    status = ExitStatus.USAGE


class InvalidModel(SmeltError):
    """The model breaks the ONNX specification."""

    status = ExitStatus.INVALID_MODEL


class Unsupported(SmeltError):
    """The request is valid, but smelt or the target cannot do it."""

    status = ExitStatus.UNSUPPORTED


class ResourceLimit(SmeltError):
    """The work would need more memory, time or disk than allowed."""

    status = ExitStatus.RESOURCE_LIMIT


class InternalError(SmeltError):
    """A mistake in smelt itself; ``why`` and ``fix`` say so if they are not given."""

    status = ExitStatus.INTERNAL

    def __init__(
        self,
        code: str,
        what: str,
        *,
        at: str | Sequence[str] = (),
        why: str = "",
        fix: str = "",
    ) -> None:
        why = why or "this is a mistake of smelt, not of yours"
        super().__init__(code, what, at=at, why=why, fix=fix or "please report it with the model")


class ErrorList(SmeltError):
    """Several failures of one kind, reported together."""

    def __init__(self, errors: Iterable[SmeltError]) -> None:
        """Hold ``errors``; code, text and exit status are those of the first one."""
        self.errors = tuple(errors)
        if not self.errors:
            raise ValueError("an ErrorList holds at least one error")
        first = self.errors[0]
        super().__init__(first.code, first.what, at=first.at, why=first.why, fix=first.fix)
        self.status = first.status

    def __str__(self) -> str:
        return "\n".join(render(error) for error in self.errors)

    def to_json(self) -> dict[str, object]:
        """Return the first error as plain data, with all errors under ``errors``."""
        return {**self.errors[0].to_json(), "errors": [e.to_json() for e in self.errors]}


def _revived(kind: type[SmeltError], args: tuple[Any, ...]) -> SmeltError:
    """Return an error of ``kind`` without attributes, which pickle then restores."""
    return kind.__new__(kind, *args)


def not_installed(package: str, extra: str, what: str) -> UsageError:
    """Return error E631: ``what`` needs ``package``, which the optional dependencies ``extra``
    install.
    """
    return UsageError(
        "E631",
        f"{what} needs the package {package}, which is not installed",
        why=f"it is not among the dependencies of smelt itself; the extra {extra!r} has it",
        fix=install(extra),
    )


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return "did you mean ...?" with the nearest ``known`` names; ``otherwise`` if none is near.

    Names that begin with ``name`` come first, then similar spellings; capitals, hyphens and
    underscores are ignored.
    """
    import difflib

    names: dict[str, list[str]] = {}
    for item in known:
        names.setdefault(letters_of(item), []).append(item)
    given = letters_of(name)
    begun = [item for item in names if given and item.startswith(given)]
    near = begun or difflib.get_close_matches(given, names)
    spelled = list(dict.fromkeys(each for item in near for each in names[item]))
    return f"did you mean {' or '.join(map(repr, spelled[:3]))}?" if spelled else otherwise


def damage(error: Exception) -> str:
    """Return the text ``why`` for a damaged JSON document, whose reading raised ``error``."""
    if isinstance(error, LookupError | TypeError | AttributeError | OverflowError):
        return f"an entry is missing or has the wrong type: {error}"
    return str(error)


def listed(names: Sequence[str], shown: int) -> str:
    """Return the first ``shown`` names, and the number of the others."""
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return f"{', '.join(names[:shown])}{more}"


def letters_of(name: str) -> str:
    """Return ``name`` in lower case without hyphens and underscores."""
    return name.replace("_", "").replace("-", "").lower()


def render(error: SmeltError) -> str:
    """Return the text of one error: ``CODE what``, then its non-empty parts, indented by two
    spaces.
    """
    lines = [f"{error.code} {error.what}"]
    lines += [f"  at    {place}" for place in error.at]
    if error.why:
        lines.append(f"  why   {error.why}")
    if error.fix:
        lines.append(f"  fix   {error.fix}")
    return "\n".join(lines)
