"""Text from a model may appear in C only inside of a comment, sanitized, or as a string literal.

Identifiers are made of numbers that smelt assigns, so no name can clash or inject code.
"""

from __future__ import annotations

import re

from smelt.errors import UsageError
from smelt.ir import reserved_words

_UNSAFE = re.compile(r"[^A-Za-z0-9_.:,\[\] -]")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_PLAIN = frozenset(map(chr, range(32, 127))) - set('"\\?')
"""Characters of a C string that need no escape; ``?`` may begin a trigraph."""
_LONGEST = 80
"""The most characters of a comment."""


def comment(text: str) -> str:
    """Return ``text`` sanitized: it cannot end a comment, continue a line or form a trigraph."""
    clean = _UNSAFE.sub("_", text)
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 3] + "..."


def string_literal(text: str) -> str:
    """Return ``text`` in UTF-8 as a C string, with octal escapes: ``"caf\\303\\251"``.

    JSON does not serve: C refuses its escapes of control characters and of pairs of surrogates.
    """
    data = text.encode(errors="replace")
    return '"' + "".join(chr(b) if chr(b) in _PLAIN else f"\\{b:03o}" for b in data) + '"'


def check_identifier(name: str) -> str:
    """Return ``name`` if C can use it as prefix of functions and files; raises UsageError E660."""
    if _IDENTIFIER.match(name) and name not in reserved_words.C and len(name) <= 60:
        return name
    raise UsageError(
        "E660",
        f"{name!r} cannot name the functions of a C library",
        why="a name has letters, digits and _, begins with a letter and is not a keyword of C",
        fix="choose another with --option name=...",
    )
