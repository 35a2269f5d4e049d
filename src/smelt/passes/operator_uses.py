"""Find the passes that match, make or describe an operator, from their patterns and pages."""

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
"""A capitalized word inside a sentence; an operator if one has that name."""


@dataclass(frozen=True)
class OperatorUses:
    """The passes that match an operator, make it, or only mention it in their page."""

    matching: tuple[Pass, ...]
    making: tuple[Pass, ...]
    mentioning: tuple[Pass, ...]


def operator_uses(domain: str, op_type: str, passes: Iterable[Pass]) -> OperatorUses:
    """Sort ``passes`` by what they do with the operator ``domain.op_type``.

    A pass looks for the operator if a pattern of its rules or the "before" picture of its page has
    it. It makes the operator if it declares so, or if only the "after" picture has it.
    """
    matching, making, mentioning = [], [], []
    for pass_ in passes:
        page = _page(pass_)
        matched = (domain, op_type) in _patterns(pass_)
        if matched or op_type in page.before:
            matching.append(pass_)
        if (domain, op_type) in pass_.makes or op_type in page.after - page.before:
            making.append(pass_)
        if pass_ not in (*matching[-1:], *making[-1:]) and op_type in page.prose:
            mentioning.append(pass_)
    return OperatorUses(tuple(matching), tuple(making), tuple(mentioning))


@cache
def _patterns(pass_: Pass) -> frozenset[tuple[str, str]]:
    """Return the operators that the patterns of the rules of a pass contain."""
    return frozenset().union(*(pattern.operators(rule.pattern) for rule in pass_.rules))


@dataclass(frozen=True)
class _Page:
    """The capitalized words of a page: in its before and after pictures, and in its prose."""

    before: frozenset[str]
    after: frozenset[str]
    prose: frozenset[str]


@cache
def _page(pass_: Pass) -> _Page:
    """Split the page of a pass into pictures and prose, and collect their capitalized words.

    A picture begins with a line ``    before ...`` or ``    after ...``, and goes on in lines that
    are indented by 10 spaces or more.
    """
    words: dict[str, set[str]] = {"before": set(), "after": set()}
    prose: list[str] = []
    side = ""
    for line in pass_.page.splitlines():
        begins_picture = _STEP.match(line) is not None
        continues_picture = bool(side) and line.startswith(" " * 10)
        if not begins_picture and not continues_picture:
            side = ""
            prose.append(line.strip())
            continue
        for part_of, text in _pieces_with_side(line, side):
            side = part_of
            words[side].update(re.findall(r"\b[A-Z]\w+", text))
    mentioned = frozenset(_PROSE.findall(" ".join(prose)))
    return _Page(frozenset(words["before"]), frozenset(words["after"]), mentioned)


def _pieces_with_side(line: str, side: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of one line of a picture, each with its side: "before" or "after".

    ``side`` is the side on which the line begins, "" if none.
    """
    at = 0
    for word in _SIDES.finditer(line):
        if side and line[at : word.start()].strip():
            yield side, line[at : word.start()]
        side, at = word[1], word.end()
    if side:
        yield side, line[at:]
