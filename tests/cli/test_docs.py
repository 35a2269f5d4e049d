"""The generated pages are current, and every error code is explained."""

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

from smelt import error_codes
from smelt.cli.docs import PAGES
from smelt.error_codes import CODES, FAMILIES

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "smelt").rglob("*.py"))


def codes_in_source():
    found = {}
    for path in SOURCES:
        if path.parent.name == "error_codes":
            continue
        for code in re.findall(r'"(E\d{3})"', path.read_text()):
            found.setdefault(code, path.relative_to(ROOT))
    return found


def test_every_code_that_is_raised_is_explained():
    unexplained = {code: str(path) for code, path in codes_in_source().items() if code not in CODES}
    assert not unexplained


def test_every_explained_code_is_raised():
    assert sorted(set(CODES) - set(codes_in_source())) == []


def test_a_code_has_one_meaning():
    names = [part.name for part in pkgutil.iter_modules(error_codes.__path__)]
    parts = [import_module(f"{error_codes.__name__}.{name}") for name in names]
    explained = [code for part in parts for code in getattr(part, "CODES", ())]
    assert sorted(explained) == sorted(CODES)


@pytest.mark.parametrize("code", CODES)
def test_an_explanation_is_complete(code):
    known = CODES[code]
    assert code in FAMILIES[code[:2]][1]
    assert known.title
    assert not known.title.endswith(".")
    assert known.meaning.endswith(".")
    assert known.fix


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_current(name):
    committed = (ROOT / "docs" / name).read_text()
    assert committed == PAGES[name](), "run `python -m smelt.cli.docs`"
