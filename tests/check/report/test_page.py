"""No text of a model becomes markup or script of the page."""

from __future__ import annotations

import json
import re

import pytest
from hostile_names import HOSTILE, hostile_report

from smelt.check.report.page import embedded
from smelt.check.report.shown import LIMIT, shown


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_in_the_data(name):
    page = hostile_report(name).to_html()
    assert len(page) < 200_000
    data = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert len(data) == 1
    assert not re.search("[<>&\u2028\u2029\x00]|[^\x20-\x7e]", data[0])
    assert json.loads(data[0])["title"] == shown(name, 120)
    assert page.count("<script") == 2
    assert page.count("</script") == 2


def test_the_policy_lets_only_the_own_script_and_style_run():
    page = hostile_report("x").to_html()
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[0]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert "innerHTML" not in page


def test_numbers_that_json_lacks_are_text():
    assert embedded([float("inf"), float("nan"), 1.5]) == '["inf","nan",1.5]'


def test_shown_text_is_short_and_visible():
    assert shown(None) == "?"
    assert shown("plain é 漢") == "plain é 漢"
    assert shown("a\u202eb\x00") == "a\\u202eb\\u0000"
    assert len(shown("x" * 10**6)) < LIMIT + 40
