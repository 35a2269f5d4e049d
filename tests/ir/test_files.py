"""Files are replaced whole or not at all."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from smelt.errors import ResourceLimit, UsageError
from smelt.ir.files import write_atomically, write_together


def test_writes_and_returns_the_path(tmp_path):
    path = tmp_path / "m.onnx"
    assert write_atomically(path, b"new") == path
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert write_atomically(tmp_path / "new", b"").stat().st_mode == plain.stat().st_mode


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_device_is_written_to_not_replaced():
    write_atomically("/dev/null", b"gone")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("place", [".", "missing/m.onnx", "file/m.onnx"])
def test_an_impossible_destination_is_a_usage_error(tmp_path, place):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError) as caught:
        write_atomically(tmp_path / place, b"new")
    assert caught.value.code == "E630"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "m"
    path.write_bytes(b"old")

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ResourceLimit, match="the disk is full") as caught:
        write_atomically(path, b"new")
    assert caught.value.code == "E505"
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_hits_the_size_limit_leaves_the_old_file(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    script = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))\n"
        "from smelt.ir.files import write_atomically\n"
        "write_atomically(sys.argv[1], bytes(1 << 20))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "E630" in result.stderr
    assert "ulimit -f" in result.stderr
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_may_be_written_piece_by_piece(tmp_path):
    def write(stream):
        for number in range(3):
            stream.write(bytes([number]))

    assert write_atomically(tmp_path / "m", write).read_bytes() == bytes(range(3))


def test_files_that_belong_together_appear_together(tmp_path):
    first, last = tmp_path / "first", tmp_path / "last"
    assert write_together({first: b"1", last: b"2"}) == [first, last]
    assert (first.read_bytes(), last.read_bytes()) == (b"1", b"2")
    assert sorted(tmp_path.iterdir()) == [first, last]


@pytest.mark.parametrize("stood", [True, False])
def test_a_name_that_cannot_be_taken_gives_the_others_back(tmp_path, monkeypatch, stood):
    first, last = tmp_path / "first", tmp_path / "last"
    if stood:
        first.write_bytes(b"old")
    last.write_bytes(b"old")
    replace = Path.replace

    def fail(self, target):
        if Path(target).name == "last":
            raise OSError(5, "Input/output error")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(UsageError, match="Input/output"):
        write_together({first: b"new", last: b"new"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == (
        {"first": b"old", "last": b"old"} if stood else {"last": b"old"}
    )
