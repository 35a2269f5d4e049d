"""Make pages of the site that no file holds: one for each error code and one for each pass.

mkdocs calls the functions ``on_*``. The files ``errors.md`` and ``passes.md`` of the repository
hold everything on one page each; on the site, they are lists that lead to these pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from diagram import pictures_of, svg_of
from mkdocs.structure.files import File, Files

from smelt.error_codes import FAMILIES
from smelt.passes.registry import passes

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

    from smelt.error_codes import ErrorCode
    from smelt.passes.base import Pass

HIDDEN = {"index.md": ["navigation", "toc"], "errors.md": ["toc"], "passes.md": ["toc"]}
"""What is left out beside a page, to give it room."""

LINK = re.compile(r"\]\(((?:\.\./)*)(errors|passes)\.md#([\w-]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of error codes and passes."""
    for _, codes in FAMILIES.values():
        for code, known in codes.items():
            page = error_page(code, known)
            files.append(File.generated(config, f"errors/{code}.md", content=page))
    for each in passes().values():
        page = pass_page(each)
        files.append(File.generated(config, f"passes/{each.spelling}.md", content=page))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the lists for the pages of errors and passes; lead links to the page of each."""
    if page.file.src_uri in HIDDEN:
        page.meta["hide"] = HIDDEN[page.file.src_uri]
    if page.file.src_uri == "errors.md":
        return errors_list(markdown)
    if page.file.src_uri == "passes.md":
        return passes_list(markdown)
    return LINK.sub(_own_page, markdown)


def _own_page(found: re.Match[str]) -> str:
    up, folder, name = found.groups()
    return f"]({up}{folder}/{name.upper() if folder == 'errors' else name}.md)"


def error_page(code: str, known: ErrorCode) -> str:
    """Return the page of one error code as Markdown."""
    lines = [
        f"[Error codes](../errors.md)\n\n# {code}: {known.title}\n\n{known.meaning}\n",
        f'!!! tip "What to do"\n\n    {known.fix}\n',
        f"`smelt explain {code}` prints this page.",
    ]
    return "\n".join(lines)


def errors_list(markdown: str) -> str:
    """Return the list of error codes, below the text that begins the page of the repository."""
    lines = [
        markdown.partition("\n## ")[0].strip(),
        "",
        "| code | what | family |",
        "|---|---|---|",
    ]
    for digit, (subject, codes) in FAMILIES.items():
        family = f"{digit}xx: {subject}"
        for code, known in codes.items():
            lines.append(f"| [{code}](errors/{code}.md) | {known.title} | {family} |")
    return "\n".join(lines)


def pass_page(each: Pass) -> str:
    """Return the page of one pass as Markdown, its pictures drawn."""
    runs = "In the default pipeline." if each.default else "On request only."
    lines = ["[Passes](../passes.md)", "", f"# {each.spelling}", "", _markdown(each.summary), ""]
    lines += [*_drawn(each.page), "", f"**Results:** {each.exactness}. **Runs:** {runs}"]
    if each.makes:
        made = ", ".join(f"`{'.'.join(filter(None, key))}`" for key in each.makes)
        lines += [f"**Needs a target with** {made}."]
    lines += ["", *_prose(each.page)]
    if each.source:
        lines += [f"The pass follows {each.source}.", ""]
    lines += [f"`smelt explain {each.spelling}` prints this page."]
    return "\n".join(lines)


def passes_list(markdown: str) -> str:
    """Return the table of passes with links to their pages, and the stages."""
    lines = ["# Passes", "", "| pass | what it does | results | default |", "|---|---|---|---|"]
    for name in sorted(passes()):
        each = passes()[name]
        results, _, _ = str(each.exactness).partition(":")
        summary = _markdown(each.summary).replace("|", "\\|")
        default = "yes" if each.default else "no"
        link = f"[{each.spelling}](passes/{each.spelling}.md)"
        lines.append(f"| {link} | {summary} | {results} | {default} |")
    stages = markdown.partition("\n## Stages")[2].partition("\n## ")[0]
    return "\n".join([*lines, "", f"## Stages{stages}"])


def _drawn(page: str) -> Iterator[str]:
    """Yield the pictures of a page as HTML: before and after, one below the other."""
    for before, after in pictures_of(page):
        yield '<div class="rewrite">'
        for name, rows in (("before", before), ("after", after)):
            text = escape(" ".join(" ".join(rows).split()))
            caption = f"<figcaption>{name}</figcaption>"
            yield f'<figure aria-label="{name}: {text}">{caption}{svg_of(rows)}</figure>'
        yield "</div>\n"


def _prose(page: str) -> Iterator[str]:
    """Yield what a page says beside its summary and its pictures, as Markdown."""
    for paragraph in page.strip().split("\n\n")[1:]:
        if re.match(r" {4}before", paragraph):
            continue
        for section in re.split(r"\n(?=\w+ {2,})", paragraph):
            yield from _section(section)
            yield ""


def _section(text: str) -> Iterator[str]:
    """Yield ``Needs  (1) this; (2) that.`` as a heading and a list; other text as it stands."""
    headed = re.match(r"(Needs|Keeps) {2,}", text)
    if headed is None:
        yield _markdown(" ".join(text.split()))
        return
    yield f"## {headed[1]}\n"
    first, *items = re.split(r"(?:^|(?<= ))\(\d+\) ", " ".join(text[headed.end() :].split()))
    if first.strip():
        yield f"{_markdown(first.strip())}\n"
    for item in items:
        yield f"- {_markdown(item.strip().removesuffix(';').removesuffix('.'))}"


def _markdown(text: str) -> str:
    """Return a text of docstrings as Markdown; outside of code, ``*`` and ``<`` are escaped."""
    parts = text.split("``")
    plain = [re.sub(r"([*_<])", r"\\\1", part) for part in parts[::2]]
    code = [f"`{part}`" for part in parts[1::2]]
    return "".join(piece for pair in zip(plain, [*code, ""], strict=False) for piece in pair)
