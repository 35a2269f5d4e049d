"""The browser that shows reports; without Chromium, these tests are skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import CHROMIUM, Browser, opened

import smelt


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start Chromium, once for each file of tests."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here (apt-get install chromium): no report is opened in a browser")
    with opened(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def show(browser, tmp_path):
    """Open a report in the browser; assert afterwards that it logged no error."""

    def opens(report: smelt.HtmlReport, anchor: str = "") -> Browser:
        browser.size(1280, 800)
        browser.open(report.save(tmp_path / "report.html"), anchor)
        assert browser.ask("document.body.dataset.ready") == "yes", browser.problems
        return browser

    yield opens
    assert browser.problems == []
    assert browser.requests == []
