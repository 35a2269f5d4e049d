"""Text of a model in C: comments cannot end early, literals hold each byte, names are checked."""

from __future__ import annotations

import ast

import pytest

from smelt.errors import UsageError
from smelt.native.emit.names import check_identifier, comment, string_literal


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("", '""'),
        ("az AZ 09 ~!", '"az AZ 09 ~!"'),
        ('a"b', '"a\\042b"'),
        ("a\\b", '"a\\134b"'),
        ("??/", '"\\077\\077/"'),
        ("\n\0\x1f\x7f", '"\\012\\000\\037\\177"'),
        ("café1", '"caf\\303\\2511"'),
        ("\ud800", '"\\077"'),
    ],
)
def test_a_literal_holds_the_bytes_of_the_text(text: str, literal: str) -> None:
    assert string_literal(text) == literal
    read = ast.literal_eval("b" + literal)
    assert read == text.encode(errors="replace")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a_b.c:d,[2] -1", "a_b.c:d,[2] -1"),
        ("*/ end", "__ end"),
        ("??/\n\\", "_____"),
        ("é", "_"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 77 + "..."),
    ],
)
def test_a_comment_is_clean_and_short(text: str, clean: str) -> None:
    assert comment(text) == clean


@pytest.mark.parametrize("name", ["a", "model", "A1_b", "x" * 60])
def test_names_of_functions(name: str) -> None:
    assert check_identifier(name) == name


@pytest.mark.parametrize("name", ["", "1a", "_a", "a-b", "a\n", "é", "int", "while", "x" * 61])
def test_refused_names_of_functions(name: str) -> None:
    with pytest.raises(UsageError, match="E660") as refused:
        check_identifier(name)
    assert repr(name) in refused.value.what
