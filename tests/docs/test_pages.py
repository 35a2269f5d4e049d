"""Every Python block of the guides runs, in order, page by page.

Those of ``test_walkthroughs.py`` run there, with their commands.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from walked_pages import DOCS, WALKED

README = DOCS.parent / "README.md"
GUIDES = sorted(DOCS.glob("add-*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITH_CODE = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page not in WALKED and BLOCK.search(page.read_text(encoding="utf-8"))
]
PAGES = [README, *WITH_CODE]


def test_there_is_a_guide_for_each_thing_that_users_add() -> None:
    assert [page.stem for page in GUIDES] == [
        *("add-a-lowering", "add-a-pass", "add-a-target", "add-an-operator"),
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert blocks
    module = ModuleType(page.stem.replace("-", "_"))
    monkeypatch.setitem(sys.modules, module.__name__, module)  # Dataclasses look themselves up.
    namespace = module.__dict__
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)
