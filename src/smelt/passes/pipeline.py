"""Parse and print the language of pipelines.

::

    canonicalize,fixpoint(simplify,fuse){max=8},add-fp16-cast{skip-ops-by-type=A,B skip-nodes=y*}

Steps are passes, stages of ``pipelines.py`` and ``fixpoint(...)``, separated by commas. Options
follow a pass in braces, separated by spaces as in MLIR. ``@FILE`` reads the text from a file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeAlias, get_type_hints

from smelt.errors import UsageError
from smelt.passes.base import Pass
from smelt.passes.option_text import bad_option, parse_value, print_value
from smelt.passes.pipelines import STAGES
from smelt.passes.registry import find_pass, installed

MAX_ROUNDS = 8
"""Rounds of a ``fixpoint`` without ``{max=N}``."""


@dataclass(frozen=True)
class Step:
    """One pass with its options; ``str`` gives its pipeline text."""

    pass_: Pass
    options: Any = None

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        """Return the pipeline text, with only those options that differ from their defaults."""
        if self.options is None:
            return self.pass_.spelling
        defaults = type(self.options)()
        options = [
            f"{field.name.replace('_', '-')}={print_value(getattr(self.options, field.name))}"
            for field in dataclasses.fields(self.options)
            if getattr(self.options, field.name) != getattr(defaults, field.name)
        ]
        return self.pass_.spelling + (f"{{{' '.join(options)}}}" if options else "")


@dataclass(frozen=True)
class Fixpoint:
    """Steps repeated until none of them changes the model, at most ``rounds`` times."""

    steps: tuple[Step | Fixpoint, ...]
    rounds: int = MAX_ROUNDS

    def __str__(self) -> str:
        """Return the text that ``parse`` reads: ``fixpoint(a,b){max=3}``."""
        inner = ",".join(str(step) for step in self.steps)
        return f"fixpoint({inner}){{max={self.rounds}}}"


Steps: TypeAlias = tuple[Step | Fixpoint, ...]


def parse(text: str) -> Steps:
    """Return the steps of a pipeline text, with stages expanded. Raises UsageError E601 for an
    unknown pass, E602 for bad syntax, E603 for a bad option, E604 for a broken declared order."""
    steps = _Parser(_read(text)).parse()
    check_order(steps)
    return steps


def parse_all(*texts: str) -> Steps:
    """Return the steps of several pipelines in a row; the declared order is checked across all."""
    steps = tuple(step for text in texts for step in parse(text))
    check_order(steps)
    return steps


def without_steps(steps: Steps, dropped: Collection[str]) -> Steps:
    """Return ``steps`` without those whose text, options included, is in ``dropped``."""
    kept: list[Step | Fixpoint] = []
    for step in steps:
        if isinstance(step, Fixpoint):
            kept.append(Fixpoint(without_steps(step.steps, dropped), step.rounds))
        elif str(step) not in dropped:
            kept.append(step)
    return tuple(kept)


def to_text(steps: Steps) -> str:
    """Return the canonical text of ``steps``; ``parse`` reads it back."""
    return ",".join(str(step) for step in steps)


def _read(text: str) -> str:
    """Return the pipeline text, read from the file if ``text`` is ``@FILE`` (``#`` begins a
    comment)."""
    if not isinstance(text, str):
        what = f"a pipeline is a text, not {type(text).__name__} {text!r:.60}"
        raise UsageError(
            "E602",
            what,
            fix="name passes, such as 'default'",
            why="a pipeline is text: passes and stages, separated by commas",
        )
    if not text.startswith("@"):
        return text
    path = Path(text[1:])
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "E606",
            f"cannot read the pipeline file {path}",
            why=str(error),
            fix="check the path after @, and that you may read the file",
        ) from error
    return " ".join(line.split("#")[0] for line in lines)


class _Parser:
    """Recursive-descent parser of names, parentheses, commas and option blocks."""

    TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z][\w-]*)|(?P<block>\{[^{}]*\})|(?P<sign>[(),]))")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def parse(self) -> Steps:
        """Return all steps of the text; raises UsageError E602 if text is left over."""
        if not self.text.strip():
            return ()
        steps = tuple(self.steps())
        if self.text[self.at :].strip():
            raise self.error("a comma or the end")
        return steps

    def steps(self) -> Iterator[Step | Fixpoint]:
        """Yield the steps of a list that commas separate."""
        yield from self.step()
        while self.peek("sign", ","):
            self.take()
            yield from self.step()

    def step(self) -> Iterator[Step | Fixpoint]:
        """Yield the one step of a pass or fixpoint, or all steps of a stage."""
        if not self.peek("name"):
            raise self.error("the name of a pass or stage")
        name = self.take()
        if name == "fixpoint":
            yield self.fixpoint()
        elif name in STAGES:
            yield from _stage(name)
        else:
            yield _with_options(find_pass(name), self.block())

    def fixpoint(self) -> Fixpoint:
        """Parse ``(steps){max=N}`` behind the word fixpoint."""
        if not self.peek("sign", "("):
            raise self.error("'(' after fixpoint")
        self.take()
        steps = tuple(self.steps())
        if not self.peek("sign", ")"):
            raise self.error("',' or ')'")
        self.take()
        options = self.block()
        unknown = set(options) - {"max"}
        if unknown:
            raise bad_option("fixpoint", sorted(unknown)[0], "its only option is max=N")
        rounds = options.get("max", str(MAX_ROUNDS))
        if not rounds.isdigit() or int(rounds) < 1:
            raise bad_option("fixpoint", "max", f"{rounds!r} is no positive number")
        return Fixpoint(steps, int(rounds))

    def block(self) -> dict[str, str]:
        """Return the following options as text; a bare ``flag`` means ``flag=true``."""
        if not self.peek("block"):
            return {}
        options: dict[str, str] = {}
        for item in self.take()[1:-1].split():
            key, _, value = item.partition("=")
            options[key] = value if "=" in item else "true"
        return options

    def peek(self, kind: str, sign: str | None = None) -> bool:
        """True if the next token is of ``kind`` and, if given, is ``sign``; does not consume it."""
        match = self.TOKEN.match(self.text, self.at)
        if match is None or match.lastgroup != kind:
            return False
        return sign is None or match.group(kind) == sign

    def take(self) -> str:
        """Consume the next token and return its text."""
        match = self.TOKEN.match(self.text, self.at)
        if match is None:
            raise self.error("a name, a sign or a block")
        self.at = match.end()
        return match.group(match.lastgroup or 0)

    def error(self, expected: str) -> UsageError:
        """Return error E602 at the current position, where ``expected`` should stand."""
        return UsageError(
            "E602",
            f"the pipeline is not well formed: expected {expected}",
            at=f"{self.text[: self.at]}>>>{self.text[self.at :]}",
            fix="for instance: canonicalize,fixpoint(simplify,fuse){max=8}",
            why="at the mark >>>, the text ends or has another character",
        )


@cache
def _stage(name: str) -> Steps:
    """Return the steps of a stage, including the default passes of installed packages.

    An installed pass goes behind the last pass of its ``after``, else before the first of its
    ``before``. A pass without declared order goes to the end of the stage ``fuse``.
    """
    steps = list(_Parser(STAGES[name]).parse())
    for pass_ in installed().values():
        if pass_.default:
            _insert(steps, pass_, last=name == "fuse")
    return tuple(steps)


def _insert(steps: list[Step | Fixpoint], pass_: Pass, last: bool) -> None:
    """Insert an installed pass into ``steps`` where its declared order puts it.

    ``last``: append a pass that declares no order.
    """
    names = [step.pass_.name if isinstance(step, Step) else "" for step in steps]
    behind = [index + 1 for index, name in enumerate(names) if name in pass_.after]
    ahead = [index for index, name in enumerate(names) if name in pass_.before]
    if pass_.name in names:
        return
    if behind:
        steps.insert(behind[-1], Step(pass_))
    elif ahead:
        steps.insert(ahead[0], Step(pass_))
    elif last and not pass_.after and not pass_.before:
        steps.append(Step(pass_))


def _with_options(pass_: Pass, texts: dict[str, str]) -> Step:
    """Return a Step for ``pass_`` with the options of ``texts``; raises UsageError E603 for a bad
    one."""
    if pass_.options_type is None:
        if texts:
            raise bad_option(pass_.spelling, next(iter(texts)), "it has no options")
        return Step(pass_)
    types = get_type_hints(pass_.options_type)
    values: dict[str, Any] = {}
    for key, value in texts.items():
        name = key.replace("-", "_")
        if name not in types:
            known = ", ".join(field.replace("_", "-") for field in types)
            raise bad_option(pass_.spelling, key, f"its options are {known}")
        values[name] = parse_value(pass_.spelling, key, value, types[name])
    return Step(pass_, pass_.options_type(**values))


def check_order(steps: Steps) -> None:
    """Raise UsageError E604 if two passes break an order that one of them declares.

    Only the first run of each pass counts, because fixpoints repeat passes.
    """
    first: dict[str, int] = {}
    listed = list(passes_of(steps))
    for index, pass_ in enumerate(listed):
        first.setdefault(pass_.name, index)
    for pass_ in listed:
        here = first[pass_.name]
        late = [name for name in pass_.after if first.get(name, -1) > here]
        late += [name for name in pass_.before if first.get(name, here + 1) < here]
        if late:
            other = late[0].replace("_", "-")
            order = "after" if late[0] in pass_.after else "before"
            raise UsageError(
                "E604",
                f"{pass_.spelling} must come {order} {other}",
                fix=f"swap them, or leave one out: `smelt explain {pass_.spelling}` says why",
                why="each of the two passes declares which passes it must come before or after",
            )


def passes_of(steps: Steps) -> Iterator[Pass]:
    """Yield every pass of ``steps`` in order; a fixpoint yields its passes once."""
    for step in steps:
        if isinstance(step, Fixpoint):
            yield from passes_of(step.steps)
        else:
            yield step.pass_
