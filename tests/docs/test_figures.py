"""Pages show the figures of ``bench/figures.json``, in the words of ``bench/figures.py``."""

import pytest

from bench import figures

PAGES = figures.pages()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_shows_the_figures_of_the_file(path):
    text = path.read_text(encoding="utf-8")
    assert figures.filled(text, figures.load()) == text, "run `python -m bench.figures`"


def test_each_figure_is_shown_and_each_table_has_figures():
    shown = {block["name"] for path in PAGES for block in figures.BLOCK.finditer(path.read_text())}
    assert shown == set(figures.BLOCKS) == set(figures.load())
