"""Which CPUs multiply uint8 by int8 without saturation in ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from smelt.targets.ort import PASSES, integer_products


@pytest.mark.parametrize(
    ("machine", "flags", "exact"),
    [
        ("x86_64", "sse2 avx2 fma", False),
        ("x86_64", "sse2 avx2 avx512f avx512bw", False),
        ("x86_64", "avx2 avx512f avx512_vnni", True),
        ("AMD64", "avx2 avx_vnni", True),
        ("aarch64", "asimd", True),
    ],
)
def test_vnni_tells(machine: str, flags: str, exact: bool, tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t: none\n")
    assert integer_products.are_exact(machine, cpuinfo) is exact


def test_who_cannot_be_asked_is_not_trusted(tmp_path: Path) -> None:
    assert not integer_products.are_exact("x86_64", tmp_path / "missing")


def test_int8_stays_where_products_of_uint8_saturate() -> None:
    assert ("unsigned-activations" in PASSES) is integer_products.are_exact()
