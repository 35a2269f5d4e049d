"""What text from a model may become in C: nothing but the inside of a comment, cleaned.

Identifiers are made of numbers that smelt gives out, so no name can clash or inject code.
"""

from __future__ import annotations

import re

from smelt.errors import UsageError

_UNSAFE = re.compile(r"[^A-Za-z0-9_.:,\[\] -]")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_LONGEST = 80

KEYWORDS = frozenset(
    {
        "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char",
        "class", "const", "continue", "default", "delete", "do", "double", "else", "enum",
        "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
        "int", "long", "main", "mutable", "namespace", "new", "not", "operator", "or", "private",
        "protected", "public", "register", "restrict", "return", "short", "signed", "sizeof",
        "static", "struct", "switch", "template", "this", "throw", "true", "try", "typedef",
        "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
        "wchar_t", "while", "xor",
    }
)  # fmt: skip
"""Words of C and C++ that no function can be called."""


def comment(text: str) -> str:
    """``text`` cleaned so that it cannot end a comment, continue a line or form a trigraph."""
    clean = _UNSAFE.sub("_", text)
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 3] + "..."


def check_identifier(name: str) -> str:
    """``name``, if C can use it as the prefix of functions and files.

    Raises UsageError E660 otherwise.
    """
    if _IDENTIFIER.match(name) and name not in KEYWORDS and len(name) <= 60:
        return name
    raise UsageError(
        "E660",
        f"{name!r} cannot name the functions of a C library",
        why="a name is letters, digits and _, begins with a letter and is no word of C or C++",
        fix="choose another with --option name=...",
    )
