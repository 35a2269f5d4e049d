"""Which C compiler builds the code that runs in this process."""

from __future__ import annotations

import sys

import pytest

from smelt.errors import UsageError
from smelt.runtime import c_compiler


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(c_compiler.shutil, "which", lambda command: None)
    monkeypatch.setattr(c_compiler, "find_spec", lambda name: None)


def test_a_wheel_brings_one(monkeypatch) -> None:
    monkeypatch.setattr(c_compiler, "find_spec", lambda name: object())
    assert c_compiler.compiler_command() == [sys.executable, "-m", "ziglang", "cc"]


def test_a_named_compiler_is_not_replaced(monkeypatch) -> None:
    monkeypatch.setattr(c_compiler, "find_spec", lambda name: object())
    monkeypatch.setenv("CC", "none-such -O2")
    with pytest.raises(UsageError, match="none-such"):
        c_compiler.compiler_command()


def test_none_at_all_says_how_to_have_one() -> None:
    with pytest.raises(UsageError, match="E661") as error:
        c_compiler.compiler_command()
    assert "smelt-compiler[host-cc]" in str(error.value)
