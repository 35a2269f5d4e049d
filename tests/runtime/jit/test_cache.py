"""The cache returns complete entries that this user owns, or nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from smelt.runtime.jit.cache import DIGEST, LIBRARY, Cache, default_root


def writes(data: bytes) -> Callable[[Path], Path]:
    """Return a function that takes the place of the compiler."""

    def make(folder: Path) -> Path:
        (folder / "made").write_bytes(data)
        return folder / "made"

    return make


def refuses(folder: Path) -> Path:
    raise AssertionError("it was built again")


def test_added_libraries_are_found(tmp_path: Path) -> None:
    assert Cache(tmp_path / "c").find("k") is None
    added = Cache(tmp_path / "c").add("k", writes(b"code"))
    assert added.read_bytes() == b"code"
    assert Cache(tmp_path / "c").find("k") == added
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700


def test_of_two_that_build_the_same_the_first_stays(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    meet = threading.Barrier(4)

    def make(folder: Path) -> Path:
        meet.wait()
        return writes(folder.name.encode())(folder)

    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(cache.add("k", make))) for _ in "1234"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {tmp_path / "k" / LIBRARY}
    assert [entry.name for entry in tmp_path.iterdir()] == ["k"]


@pytest.mark.parametrize("damage", ["truncated", "changed", "no digest", "no library"])
def test_damaged_libraries_are_built_again(tmp_path: Path, damage: str) -> None:
    cache = Cache(tmp_path)
    library = cache.add("k", writes(b"code"))
    if damage == "no library":
        library.unlink()
    elif damage == "no digest":
        library.with_name(DIGEST).unlink()
    else:
        library.write_bytes(b"co" if damage == "truncated" else b"evil")
    assert cache.find("k") is None
    assert cache.add("k", writes(b"code")).read_bytes() == b"code"


@pytest.mark.parametrize("what", ["root", "entry", "library"])
def test_entries_that_others_may_write_are_refused(tmp_path: Path, what: str) -> None:
    library = Cache(tmp_path).add("k", writes(b"code"))
    {"root": tmp_path, "entry": tmp_path / "k", "library": library}[what].chmod(0o777)
    with pytest.raises(PermissionError, match="another user"):
        Cache(tmp_path).find("k")


def test_entries_of_another_user_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cache(tmp_path).add("k", writes(b"code"))
    other = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other)
    with pytest.raises(PermissionError, match="another user"):
        Cache(tmp_path).find("k")


def test_failed_builds_leave_no_files(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        Cache(tmp_path).add("k", refuses)
    assert list(tmp_path.iterdir()) == []


def test_entries_unused_the_longest_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=3 * 1100)
    for number, key in enumerate("abc"):
        cache.add(key, writes(bytes(1000)))
        os.utime(tmp_path / key, (number, number))
    assert cache.find("a") is not None  # used now, so b is the oldest
    cache.add("d", writes(bytes(1000)))
    assert {entry.name for entry in tmp_path.iterdir()} == {"a", "c", "d"}


def test_the_newest_stays_however_large(tmp_path: Path) -> None:
    assert Cache(tmp_path, limit=10).add("k", writes(bytes(1000))).is_file()


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Cache(tmp_path / "file").add("k", writes(b""))


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMELT_CACHE", "/a/b")
    assert default_root() == Path("/a/b")
    monkeypatch.delenv("SMELT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert default_root() == Path("/x/smelt")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_root() == Path.home() / ".cache" / "smelt"
