"""Bytes are the same for all floats as C and by the saturating instructions of a Cortex-M4."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from c_library import STRICT, Library
from c_programs import Run, files_of, main_of
from targets.c.test_builds import WARNINGS, needs, run

from bench.cortex_m import BOARDS, compiler_command, emulator_command, link

SPECIAL = [
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    -0.5,
    -1.5,
    126.5,
    127.5,
    -128.5,
    255.5,
    1e30,
    4194303.5,
    2.0**23,
]
FLOATS = np.concatenate(
    [
        np.array([*SPECIAL, *(-x for x in SPECIAL), np.inf, -np.inf], np.float32),
        np.array([0x7FC00000, 0xFFC00000, 0xFF800001, 0xFFFFFFFF], np.uint32).view(np.float32),
        np.random.default_rng(0).integers(0, 2**32, 1500, np.uint32).view(np.float32),
        np.random.default_rng(1).normal(scale=150, size=500).astype(np.float32),
    ]
)
GRAPHS = {
    f"{byte} {zero}": f"g (float[{FLOATS.size}] x) => ({byte}[{FLOATS.size}] y) "
    f"{{ s = Constant<value_float = 1.0>() z = Constant<value = {byte} {{{zero}}}>() y = QuantizeLinear(x, s, z) }}"
    for byte, zero in (("int8", -128), ("int8", 0), ("int8", 127), ("uint8", 0), ("uint8", 200))
}


def quantized(name: str) -> np.ndarray:
    """Return the bytes by the definition of QuantizeLinear; NaN is the lowest number."""
    byte, zero = name.split()
    range_ = np.iinfo(byte)
    steps = np.rint(np.where(np.isnan(FLOATS), -np.inf, FLOATS).astype(np.float64)) + int(zero)
    return np.clip(steps, range_.min, range_.max).astype(byte)


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(GRAPHS, flags=STRICT, cpu="cortex-m4")


@pytest.mark.parametrize("name", GRAPHS)
def test_any_float_becomes_the_nearest_byte(library: Library, name: str) -> None:
    np.testing.assert_array_equal(library.run(name, [FLOATS])[0], quantized(name))


@pytest.mark.slow
def test_a_cortex_m4_computes_the_same_bytes(library: Library, tmp_path: Path) -> None:
    needs("arm-none-eabi-gcc", "gcc-arm-none-eabi with libnewlib-arm-none-eabi")
    needs("qemu-system-arm", "qemu-system-arm")
    board = BOARDS["cortex-m4"]
    for file, data in files_of(library, list(GRAPHS)).items():
        (tmp_path / file).write_bytes(data)
    prefixes = {name: library.models[name].function.removesuffix("_run") for name in GRAPHS}
    runs = [Run(prefixes[name], [FLOATS], [quantized(name)]) for name in GRAPHS]
    (tmp_path / "main.c").write_bytes(main_of(runs))
    models = sorted(file.name for file in tmp_path.glob("m*.c") if file.name != "main.c")
    run([*compiler_command(board, "-O2"), *WARNINGS, "-c", *models], tmp_path)
    link(board, tmp_path, [*(f"{name[:-2]}.o" for name in models), "main.c"])
    run(emulator_command(board), tmp_path)
    assert "qsub" in run(["arm-none-eabi-objdump", "-d", "run.elf"], tmp_path)
