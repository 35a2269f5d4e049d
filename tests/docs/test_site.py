"""The site of the documentation: what its menu names, where links go, what its pages load."""

from __future__ import annotations

import functools
import http.server
import re
import threading
from pathlib import Path

import browser
import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
EXTRA = ("extra_css", "extra_javascript")
DECISION = re.compile(r"decisions/\d{3}-[a-z0-9-]+\.md")
CODE = re.compile(r"^( *)```.*?^\1```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)[^>]*?\ssrc=["']?([^"'\s>]+)"""
    r"""|<link(?![^>]*rel=["']?(?:canonical|next|prev))[^>]*?\shref=["']?([^"'\s>]+)"""
    r"""|url\(["']?([^"')]+)|@import\s+["']([^"']+)"""
)


def named(entry: object) -> list[str]:
    """The pages that a part of the menu names."""
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    assert not isinstance(parts, str)
    return [name for part in parts for name in named(part)]  # type: ignore[union-attr]


def settings() -> dict:
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The names of the headings of a page, as Python-Markdown makes them."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


def test_the_menu_names_every_page_once() -> None:
    listed = sorted(named(settings()["nav"]))
    assert listed == [page for page in PAGES if not DECISION.fullmatch(page)]


def test_the_page_of_decisions_lists_each_in_order() -> None:
    folder = DOCS / "decisions"
    found = LINK.findall((folder / "index.md").read_text(encoding="utf-8"))
    assert found == sorted(path.name for path in folder.glob("*.md") if path.stem != "index")


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("decisions/0")])
def test_a_decision_has_a_date_a_context_and_a_choice(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert re.match(
        r"# .+\n\nDate: \d{4}-\d\d-\d\d\n\n## Context\n\n.+\n\n## Choice\n\n.", text, re.DOTALL
    )


def test_nothing_is_loaded_from_elsewhere_by_the_settings() -> None:
    chosen = settings()
    assert chosen["theme"]["font"] is False
    assert chosen["strict"] is True
    theme = DOCS / ".theme"
    assert all((theme / name).is_file() for key in EXTRA for name in chosen[key])
    assert (DOCS / chosen["theme"]["logo"]).is_file()
    assert not any("```mermaid" in (DOCS / page).read_text(encoding="utf-8") for page in PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = CODE.sub("", (DOCS / page).read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (DOCS / page).parent / path if path else DOCS / page
        assert target.resolve().is_relative_to(DOCS), link
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` does."""
    pytest.importorskip("mkdocs", reason="needs mkdocs: pip install 'smelt-compiler[docs]'")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


@pytest.mark.slow  # The build takes some 4 s of CPU.
def test_built_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(PAGES)  # one each, and that of status 404
    for file in (*pages, *site.rglob("*.css")):
        loaded = LOADED.findall(file.read_text(encoding="utf-8"))
        names = [name for names in loaded for name in names if name]
        assert not [name for name in names if "//" in name and not name.startswith("data:")], file
    assert all("Content-Security-Policy" in page.read_text(encoding="utf-8") for page in pages)


@pytest.mark.slow
def test_each_error_and_each_pass_has_a_page(site: Path) -> None:
    from smelt.error_codes import FAMILIES
    from smelt.passes.registry import passes

    codes = {code for _, known in FAMILIES.values() for code in known}
    assert {page.stem for page in (site / "errors").glob("*.html")} == codes
    names = {each.spelling for each in passes().values()}
    assert {page.stem for page in (site / "passes").glob("*.html")} == names
    for folder, listed in (("errors", codes), ("passes", names)):
        text = (site / f"{folder}.html").read_text(encoding="utf-8")
        assert [name for name in listed if f'href="{folder}/{name}.html"' not in text] == []
    for name in names:
        text = (site / "passes" / f"{name}.html").read_text(encoding="utf-8")
        assert text.count('class="diagram"') >= 2, name


@pytest.mark.slow
def test_the_public_names_are_on_the_page_of_the_api(site: Path) -> None:
    import smelt

    shown = (site / "api.html").read_text(encoding="utf-8")
    assert [name for name in smelt.__all__ if f"{name}</span>" not in shown] == []


@pytest.mark.slow
@pytest.mark.skipif(browser.CHROMIUM is None, reason="needs a browser: apt-get install chromium")
def test_search_works_from_a_server_and_a_folder_and_asks_no_other_machine(
    site: Path, tmp_path: Path
) -> None:
    handler = functools.partial(Silent, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with browser.opened(tmp_path) as page:
            for own in (f"http://127.0.0.1:{server.server_port}/", f"{site.as_uri()}/"):
                page.requests.clear()
                page.call("Page.navigate", url=f"{own}tutorial.html?q=arena")
                found = page.ask(FOUND)
                assert re.search(r"[1-9]\d* matching document", found), found
                assert not [url for url in page.requests if not url.startswith((own, "data:"))]
                assert page.problems == []
        server.shutdown()


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing of requests."""


FOUND = """new Promise(done => {
    const text = () => document.querySelector('.md-search-result__meta')?.textContent ?? '';
    const wait = () => /matching/.test(text()) ? done(text()) : setTimeout(wait, 50);
    setTimeout(() => done(text()), 15000); wait();
})"""
"""What the search says once it has searched."""
