"""The collector is off inside a compile, and as before after it."""

from __future__ import annotations

import gc
from threading import Event, Thread

import pytest

from smelt.ir.collector import paused_collector


def test_restored_after_an_error() -> None:
    def fail() -> None:
        with paused_collector():
            assert not gc.isenabled()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert gc.isenabled()


def test_nested_blocks_restore_at_the_outermost() -> None:
    with paused_collector():
        with paused_collector():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_stays_off_if_it_was_off() -> None:
    gc.disable()
    try:
        with paused_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_two_threads_that_overlap() -> None:
    entered, leave = Event(), Event()

    def hold() -> None:
        with paused_collector():
            entered.set()
            leave.wait(10)

    thread = Thread(target=hold)
    with paused_collector():
        thread.start()
        entered.wait(10)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()
