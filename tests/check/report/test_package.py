"""The installed package contains the files of the page."""

from __future__ import annotations

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from smelt.check.report.page import SCRIPTS

ROOT = Path(__file__).parents[3]


def test_the_wheel_holds_the_page():
    files = {each.distribution_path for each in WheelBuilder(str(ROOT)).recurse_included_files()}
    wanted = ["page.html", "page.css", *(f"{name}.js" for name in SCRIPTS)]
    assert {f"smelt/check/report/assets/{name}" for name in wanted} <= files
