"""Unified differences of long listings, in nearly linear time.

Lines that are unique on both sides anchor the match, as in patience diff: nearly every line of a
listing is unique, since it names its results. ``difflib`` compares only the small gaps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from typing import NamedTuple

CONTEXT = 3
"""Unchanged lines around each change."""

SMALL = 1 << 16
"""Maximum number of pairs of lines that are compared where there is no anchor."""


def unified_diff(a: Sequence[str], b: Sequence[str], context: int = CONTEXT) -> list[str]:
    """Return the lines of ``diff -u`` from the first hunk on; empty if ``a`` and ``b`` are
    equal."""
    lines: list[str] = []
    for group in _Matcher(a, b).get_grouped_opcodes(context):
        first, last = group[0], group[-1]
        lines.append(f"@@ -{_lines(first[1], last[2])} +{_lines(first[3], last[4])} @@")
        for tag, i, i_end, j, j_end in group:
            if tag == "equal":
                lines += [f" {line}" for line in a[i:i_end]]
            else:
                lines += [f"-{line}" for line in a[i:i_end]]
                lines += [f"+{line}" for line in b[j:j_end]]
    return lines


def _lines(start: int, end: int) -> str:
    """Return the lines ``start`` to ``end`` as a hunk header writes them: ``first,count``.

    ``start`` counts from 0, the header from 1. An empty range is given by the line before it.
    """
    if end == start + 1:
        return str(end)
    first = start + 1 if end > start else start
    return f"{first},{end - start}"


class _Matcher(SequenceMatcher[str]):
    """A SequenceMatcher with blocks from anchors; the base class only groups them."""

    def __init__(self, a: Sequence[str], b: Sequence[str]) -> None:
        """Find the matching blocks by anchors, and leave the rest to difflib, which groups them
        into hunks.
        """
        super().__init__(None, "", "", autojunk=False)
        self.a, self.b = a, b
        self.opcodes = None
        self.matching_blocks = [Match(*block) for block in _merge_blocks(sorted(_blocks(a, b)))]
        self.matching_blocks.append(Match(len(a), len(b), 0))


class _Range(NamedTuple):
    """Lines ``a`` to ``a_end`` of one side, ``b`` to ``b_end`` of the other."""

    a: int
    a_end: int
    b: int
    b_end: int


_Block = tuple[int, int, int]
"""The start of equal lines on both sides, and their number."""


def _blocks(a: Sequence[str], b: Sequence[str]) -> Iterator[_Block]:
    """Yield blocks of equal lines, unsorted.

    Of each range of lines, they are: the equal lines at both ends; then lines that are unique on
    both sides (anchors), and the blocks of the ranges between them; in a small range without
    anchors, the blocks that difflib finds.
    """
    pending = [_Range(0, len(a), 0, len(b))]
    while pending:
        part, blocks = _trim_equal_ends(a, b, pending.pop())
        yield from blocks
        if part.a == part.a_end or part.b == part.b_end:
            continue
        anchors = _anchors(a, b, part)
        if anchors:
            yield from ((i, j, 1) for i, j in anchors)
            ends = [*anchors, (part.a_end, part.b_end)]
            starts = [(part.a, part.b), *((i + 1, j + 1) for i, j in anchors)]
            pairs = zip(starts, ends, strict=True)
            pending += [_Range(i, i_end, j, j_end) for (i, j), (i_end, j_end) in pairs]
        elif (part.a_end - part.a) * (part.b_end - part.b) <= SMALL:
            old, new = a[part.a : part.a_end], b[part.b : part.b_end]
            for i, j, size in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
                yield part.a + i, part.b + j, size


def _trim_equal_ends(
    a: Sequence[str], b: Sequence[str], part: _Range
) -> tuple[_Range, list[_Block]]:
    """Return ``part`` without equal lines at its ends, and two blocks: the equal lines at start and
    end.
    """
    start, end = 0, 0
    shorter = min(part.a_end - part.a, part.b_end - part.b)
    while start < shorter and a[part.a + start] == b[part.b + start]:
        start += 1
    while end < shorter - start and a[part.a_end - 1 - end] == b[part.b_end - 1 - end]:
        end += 1
    trimmed = _Range(part.a + start, part.a_end - end, part.b + start, part.b_end - end)
    return trimmed, [(part.a, part.b, start), (trimmed.a_end, trimmed.b_end, end)]


def _anchors(a: Sequence[str], b: Sequence[str], part: _Range) -> list[tuple[int, int]]:
    """Return the longest common subsequence of lines that are unique in ``part`` on both sides."""
    old, new = a[part.a : part.a_end], b[part.b : part.b_end]
    count_in_a, count_in_b = Counter(old), Counter(new)
    line_numbers = {line: part.b + j for j, line in enumerate(new)}
    common = [
        (part.a + offset, line_numbers[line])
        for offset, line in enumerate(old)
        if count_in_a[line] == 1 and count_in_b[line] == 1
    ]
    return _longest_increasing(common)


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of ``pairs``, sorted by first number, with increasing second.

    Patience sorting: ``tails[n]`` is the least second number that ends a subsequence of n + 1
    pairs, ``chain[n]`` the index of that pair, and ``before`` the pair before each pair.
    """
    tails: list[int] = []
    chain: list[int] = []
    before: list[int] = []
    for index, (_, second) in enumerate(pairs):
        length = bisect_left(tails, second)
        tails[length : length + 1] = [second]
        chain[length : length + 1] = [index]
        before.append(chain[length - 1] if length else -1)
    longest = []
    index = chain[-1] if chain else -1
    while index >= 0:
        longest.append(pairs[index])
        index = before[index]
    return longest[::-1]


def _merge_blocks(blocks: list[_Block]) -> Iterator[_Block]:
    """Yield ``blocks``, each ``(start in a, start in b, size)``, with adjacent ones joined and
    empty ones dropped.
    """
    i, j, size = 0, 0, 0
    for block in blocks:
        if (block[0], block[1]) == (i + size, j + size):
            size += block[2]
        elif block[2]:
            if size:
                yield i, j, size
            i, j, size = block
    if size:
        yield i, j, size
