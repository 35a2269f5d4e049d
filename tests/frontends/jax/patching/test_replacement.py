"""Attributes that are replaced while a trace runs."""

from __future__ import annotations

import threading
import types

import pytest

from smelt.frontends.jax.patching.replacement import Replacement, is_tracing, original, replaced


class Base:
    def __call__(self, text):
        return f"base({text})"


class Derived(Base):
    pass


def around(owner, label, name="__call__"):
    """A replacement that puts ``label`` around the attribute's result."""

    def make(function):
        return lambda *args: f"{label}[{function(*args)}]"

    return Replacement(owner, name, make)


def test_the_later_of_two_calls_the_earlier():
    inner, outer = around(Base, "inner"), around(Base, "outer")
    with replaced([inner, outer]):
        assert Base()("x") == "outer[inner[base(x)]]"
        assert original(Base, "__call__")(Base(), "x") == "base(x)"
    assert Base()("x") == "base(x)"


def test_one_that_is_installed_twice_is_called_once_and_stays_for_its_last_user():
    method = vars(Base)["__call__"]
    once = around(Base, "once")
    with replaced([once]):
        with replaced([once]):
            assert Base()("x") == "once[base(x)]"
        assert Base()("x") == "once[base(x)]"
    assert vars(Base)["__call__"] is method


def test_an_inherited_method_is_replaced_for_its_class_only():
    with replaced([around(Derived, "derived")]):
        assert (Derived()("x"), Base()("x")) == ("derived[base(x)]", "base(x)")
        with replaced([around(Base, "base's")]):
            assert Derived()("x") == "derived[base's[base(x)]]"
    assert "__call__" not in vars(Derived)


def test_other_threads_call_the_originals():
    library = types.ModuleType("library")
    library.double = lambda x: 2 * x
    seen = []

    def call():
        seen.append((library.double(2), is_tracing()))

    with replaced([around(library, "traced", "double")]):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        call()
    call()
    assert seen == [(4, False), ("traced[4]", True), (4, False)]


def test_two_threads_with_replacements_of_their_own_end_in_any_order():
    started, ended = threading.Event(), threading.Event()
    seen = []

    def other():
        with replaced([around(Base, "theirs")]):
            started.set()
            ended.wait(10)
            seen.append(Base()("x"))

    thread = threading.Thread(target=other)
    with replaced([around(Base, "ours")]):
        thread.start()
        started.wait(10)
        assert Base()("x") == "ours[base(x)]"
    ended.set()
    thread.join()
    assert seen == ["theirs[base(x)]"]
    assert Base()("x") == "base(x)"


def test_a_failed_replacement_restores_all_attributes():
    with pytest.raises(AttributeError), replaced([around(Base, "a"), around(Base, "b", "missing")]):
        raise AssertionError("unreachable")
    assert Base()("x") == "base(x)"
    assert not is_tracing()


def test_a_replacement_is_made_once_per_function(monkeypatch):
    made = []
    library = types.ModuleType("library")
    library.double = lambda x: 2 * x

    def make(function):
        made.append(function)
        return lambda x: -function(x)

    once = Replacement(library, "double", make)
    for _ in range(3):
        with replaced([once]):
            assert library.double(2) == -4
    assert len(made) == 1
    monkeypatch.setattr(library, "double", lambda x: 3 * x)
    with replaced([once]):
        assert library.double(2) == -6
    assert len(made) == 2
