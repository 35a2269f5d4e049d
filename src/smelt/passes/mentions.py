"""Which passes are about an operator: by the patterns of their rules, and by their pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from smelt.ir import pattern
from smelt.passes.base import Pass

_STEP = re.compile(r" {4}(before|after) ")
_SIDES = re.compile(r"\b(before|after)\b")
_PROSE = re.compile(r"(?<=[a-z,(] )[A-Z]\w+")
"""A word with a capital that begins no sentence: an operator, if one has that name."""


@dataclass(frozen=True)
class Mentions:
    """The passes that look for an operator, that make it, and whose pages otherwise name it."""

    looked_for: tuple[Pass, ...]
    made: tuple[Pass, ...]
    named: tuple[Pass, ...]


def mentions(domain: str, op_type: str, passes: Iterable[Pass]) -> Mentions:
    """What ``passes`` have to do with the operator ``domain.op_type``.

    A pass looks for what the patterns of its rules hold, or what its page shows before; it makes
    what it declares, or what its page shows after and not before.
    """
    looked_for, made, named = [], [], []
    for pass_ in passes:
        page = _page(pass_)
        matched = (domain, op_type) in _patterns(pass_)
        if matched or op_type in page.before:
            looked_for.append(pass_)
        if (domain, op_type) in pass_.makes or op_type in page.after - page.before:
            made.append(pass_)
        if pass_ not in (*looked_for[-1:], *made[-1:]) and op_type in page.prose:
            named.append(pass_)
    return Mentions(tuple(looked_for), tuple(made), tuple(named))


@cache
def _patterns(pass_: Pass) -> frozenset[tuple[str, str]]:
    return frozenset().union(*(pattern.operators(rule.pattern) for rule in pass_.rules))


@dataclass(frozen=True)
class _Page:
    """The words with capitals of a page: in its pictures before and after, and in its prose."""

    before: frozenset[str]
    after: frozenset[str]
    prose: frozenset[str]


@cache
def _page(pass_: Pass) -> _Page:
    words: dict[str, set[str]] = {"before": set(), "after": set()}
    prose: list[str] = []
    side = ""
    for line in pass_.page.splitlines():
        if _STEP.match(line) is None and (not side or not line.startswith(" " * 10)):
            side = ""
            prose.append(line.strip())
            continue
        for part_of, text in _parts(line, side):
            side = part_of
            words[side].update(re.findall(r"\b[A-Z]\w+", text))
    named = frozenset(_PROSE.findall(" ".join(prose)))
    return _Page(frozenset(words["before"]), frozenset(words["after"]), named)


def _parts(line: str, side: str) -> Iterator[tuple[str, str]]:
    """The pieces of a line of a picture, each with the side that it stands on."""
    at = 0
    for found in _SIDES.finditer(line):
        if side and line[at : found.start()].strip():
            yield side, line[at : found.start()]
        side, at = found[1], found.end()
    if side:
        yield side, line[at:]
