"""Tables and long lines stay within the width of a terminal."""

import pytest

from smelt.cli import layout

ROWS = [("a-name-that-stays-whole", 3, "a summary of several words that is far too long " * 2)]


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_lines_stay_within_the_width(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = layout.table(ROWS, ("name", "n", "summary")).splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[1].startswith("a-name-that-stays-whole")
    words = " ".join(line[28:] for line in lines[1:]).split()
    assert words == ROWS[0][2].split()


def test_nothing_is_wrapped_for_a_pipe(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert len(layout.table(ROWS).splitlines()) == 1
    assert layout.prose("word " * 100) == "word " * 100


def test_a_column_that_is_wide_yields_before_others():
    assert layout.fitted([10, 100, 20], 80) == [10, 46, 20]
    assert layout.fitted([10, 40, 40], 74) == [10, 30, 30]
    assert layout.fitted([10, 20], None) == [10, 20]


def test_columns_that_cannot_be_narrower_stay():
    assert layout.fitted([40, 12, 12], 30) == [40, 12, 12]
    assert layout.fitted([90], 30) == [90]


def test_prose_keeps_its_indentation(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    folded = layout.prose("  one two three four five six seven\nshort")
    assert folded == "  one two three four five six\n  seven\nshort"


@pytest.mark.parametrize("limit", [40, 60, 100])
def test_no_line_breaks_inside_a_word(limit):
    row = ("Mul", "640*batch*length + 49152", "depends on batch, length", "float[batch,length,16]")
    text = layout.table([row], limit=limit)
    for piece in ("640*batch*length", "49152", "depends", "batch,", "length,", "16]"):
        assert piece in text
    if limit >= 60:
        assert max(map(len, text.splitlines())) <= limit


def test_a_type_breaks_behind_commas_without_new_spaces():
    text = layout.table([("x", "float[first_dim_of_x,second_dim_of_x]")], limit=30)
    assert [line.strip() for line in text.splitlines()] == [
        "x  float[first_dim_of_x,",
        "second_dim_of_x]",
    ]


def test_a_first_column_of_over_half_the_line_wraps_too():
    rows = [("raise-opset{to=23 needed-by=fuse-gelu-exact,fuse-attention}", 1, "opset raised x1")]
    lines = layout.table(rows, ("pass", "rewrites", "rules"), limit=60).splitlines()
    assert max(map(len, lines)) <= 60
    assert "".join(line[:40].strip() for line in lines[1:]).startswith("raise-opset{to=23")


def test_products_break_behind_a_factor_only_if_the_table_is_too_wide_otherwise():
    rows = [("MatMul", "1024*batch*length", "2048*batch*length")]
    whole, broken = (
        "MatMul  1024*batch*length  2048*batch*length",
        "MatMul  1024*batch*   2048*batch*",
    )
    assert layout.table(rows, limit=len(whole)) == whole
    assert layout.table(rows, limit=34).splitlines() == [broken, "        length        length"]
    assert "1024*batch*length" in layout.table(rows, limit=30)
