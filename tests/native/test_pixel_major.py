"""Products of bytes from images with the channels of a pixel side by side: the bits of exact sums,
as plain C on this machine and by DSP instructions on an emulated Cortex-M4."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from c_library import STRICT, Library, ops
from c_programs import Run, files_of, main_of
from native import test_quantized_conv as conv
from native import test_quantized_dot as dot
from native.test_quantized_conv import Case
from quantized_arithmetic import convolved, factors, in_fixed_point, requantized
from targets.c.test_builds import WARNINGS, needs, run

from bench.cortex_m import BOARDS, compiler_command, emulator_command, link

CPU = "cortex-m4"


def drawn(seed: int) -> Case:
    """A convolution with odd sizes, pads, strides, dilations and groups."""
    rng = np.random.default_rng(seed)
    group = int(rng.choice([1, 1, 2, 3]))
    channels, filters = (int(rng.choice([1, 2, 3, 4, 5, 7, 8])) * group for _ in range(2))
    if rng.random() < 0.3:
        group, filters = channels, channels * int(rng.integers(1, 3))
    kernel = tuple(int(size) for size in rng.choice([1, 2, 3, 5], 2))
    dilations = tuple(int(size) for size in rng.choice([1, 1, 2], 2))
    image = tuple(
        int(size) + dilation * kernel_size
        for size, dilation, kernel_size in zip(
            rng.integers(0, 12, 2), dilations, kernel, strict=True
        )
    )
    return Case(
        *(channels, image, filters, kernel),
        x=str(rng.choice(["int8", "uint8"])),
        w=str(rng.choice(["int8", "int8", "uint8"])),
        bias=bool(rng.random() < 0.7),
        group=group,
        strides=tuple(int(size) for size in rng.choice([1, 2, 3], 2)),
        pads=tuple(int(size) for size in rng.integers(0, 3, 4)),
        dilations=dilations,
        batch=int(rng.integers(1, 3)),
    )


DRAWN = {f"drawn {seed}": drawn(seed) for seed in range(24)}
CONVOLUTIONS = {**conv.CASES, **DRAWN}


def library_of(cases: dict[str, Case], **options: object) -> Library:
    """The cases in one library for ``CPU``."""
    graphs = {name: case.graph for name, case in cases.items()}
    values = {name: case.values for name, case in cases.items()}
    return Library(graphs, flags=STRICT, values=values, cpu=CPU, **options)


@pytest.fixture(scope="module")
def convolutions() -> Library:
    return library_of(CONVOLUTIONS)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_the_bits_of_convolutions_are_those_of_exact_sums(convolutions: Library, name: str) -> None:
    case = CONVOLUTIONS[name]
    (got,) = convolutions.run(name, [case.given])
    np.testing.assert_array_equal(got, case.wanted)
    assert ops(convolutions.models[name].artifact) == ["QLinearConv"]


def test_sums_beyond_the_exact_floats_are_clamped() -> None:
    cases = {
        name: Case(8, (9, 16), 6, (3, 3), pads=(1, 1, 1, 1), group=group, scaled=1e8)
        for name, group in (("pixels", 1), ("groups", 2))
    } | {"depthwise": Case(6, (9, 35), 6, (3, 3), x="int8", group=6, scaled=1e8)}
    library = library_of(cases)
    for name, case in cases.items():
        (got,) = library.run(name, [case.given])
        np.testing.assert_array_equal(got, case.wanted, err_msg=name)


def test_multipliers_and_shifts_are_those_of_gemmlowp() -> None:
    names = ("int8", "odd channels, stride", "groups", "depthwise, uint8 weights", "pointwise")
    cases = {name: conv.CASES[name] for name in names}
    fixed = library_of(cases, quantized="fixed")
    for name, case in cases.items():
        v = case.values
        factor = np.float64(v["xs"]) * np.asarray(v["ws"], np.float64) / np.float64(v["ys"])
        factor = factor.reshape(1, -1, 1, 1) if case.each else factor
        wanted = in_fixed_point(case.sums, factor, v["yz"], np.dtype(case.x))
        (got,) = fixed.run(name, [case.given])
        np.testing.assert_array_equal(got, wanted, err_msg=name)


def test_sums_are_the_result_of_conv_integer() -> None:
    graphs = {name: conv.summed(case, "z") for name, case in conv.SUMMED.items()}
    values = {
        name: {"w": case.values["w"], "wz": case.values["wz"].reshape(-1)[0]}
        for name, case in conv.SUMMED.items()
    }
    library = Library(graphs, flags=STRICT, values=values, cpu=CPU)
    for name, case in conv.SUMMED.items():
        zero = np.asarray(-77 if case.x == "int8" else 130, case.x)
        w = case.values["w"].astype(int) - int(case.values["wz"].reshape(-1)[0])
        (got,) = library.run(name, [case.given, zero])
        wanted = convolved(case.given.astype(int) - int(zero), w, **case.window)
        np.testing.assert_array_equal(got, wanted, err_msg=name)


PRODUCTS = {
    (f"{m}x{k}x{n}", kind, zero): (m, k, n, kind, zero)
    for m, k, n in ((7, 40, 21), (1, 33, 40), (1, 5, 3), (13, 5, 1), (2, 1001, 17), (5, 7, 6))
    for kind, zero in (("int8", 0), ("uint8", 127), ("uint8", 3))
} | {
    (f"1x{k}x{n}", kind, zero): (1, k, n, kind, zero)
    for k, n, kind, zero in ((34, 40, "int8", 0), (1001, 8, "int8", 0), (30, 9, "uint8", 128))
}


def values_of(key: tuple[str, str, int]) -> dict[str, np.ndarray]:
    """The constants of a product; at odd depths and unsigned, no weight is below -127."""
    _, k, n, kind, zero = PRODUCTS[key]
    found = dot.case_values(k, n, kind, zero)
    if k % 2 or kind == "uint8":
        found["b"] = np.maximum(found["b"], np.iinfo(kind).min + 1)
    return found


def product_of(key: tuple[str, str, int]) -> tuple[np.ndarray, np.ndarray]:
    """The left operand of a product, and its result."""
    m, k, _, kind, zero = PRODUCTS[key]
    v, limits = values_of(key), np.iinfo(kind)
    a = np.random.default_rng(0).integers(limits.min, limits.max + 1, (m, k)).astype(kind)
    sums = (a.astype(int) - int(v["az"])) @ (v["b"].astype(int) - zero)
    return a, requantized(sums, factors(v["as"], v["bs"], v["ys"]), v["yz"], v["yz"].dtype)


@pytest.fixture(scope="module")
def products() -> Library:
    graphs = {str(key): dot.graph(m, k, n, kind) for key, (m, k, n, kind, _) in PRODUCTS.items()}
    values = {str(key): values_of(key) for key in PRODUCTS}
    graphs["sums"] = (
        "g (uint8[3,9,5] a, int8[5,7] b, uint8 z) => (int32[3,9,7] y) "
        "{ y = MatMulInteger(a, b, z) }"
    )
    values["sums"] = {"b": np.random.default_rng(1).integers(-128, 128, (5, 7)).astype(np.int8)}
    return Library(graphs, flags=STRICT, values=values, cpu=CPU)


@pytest.mark.parametrize("key", PRODUCTS, ids=str)
def test_the_bits_of_products_are_those_of_exact_sums(
    products: Library, key: tuple[str, str, int]
) -> None:
    a, wanted = product_of(key)
    (got,) = products.run(str(key), [a])
    np.testing.assert_array_equal(got, wanted)
    assert ops(products.models[str(key)].artifact) == ["QLinearMatMul"]


def test_the_zero_point_of_sums_may_come_at_run_time(products: Library) -> None:
    a = np.random.default_rng(0).integers(0, 256, (3, 9, 5)).astype(np.uint8)
    (got,) = products.run("sums", [a, np.asarray(200, np.uint8)])
    b = np.random.default_rng(1).integers(-128, 128, (5, 7))
    np.testing.assert_array_equal(got, (a.astype(int) - 200) @ b)


def test_weights_stay_bytes_and_one_row_needs_no_memory(products: Library) -> None:
    case = Case(64, (8, 8), 64, (3, 3), pads=(1, 1, 1, 1))
    facts = library_of({"it": case}).models["it"].artifact.plan.facts
    assert facts["weights_bytes"] < 1.02 * case.values["w"].size
    row = products.models[str(("1x33x40", "int8", 0))].artifact.plan.facts
    assert row["arena_bytes"] == 0


def test_rows_whose_sums_or_weights_are_too_large_for_two_columns_a_word_are_widened(
    products: Library,
) -> None:
    widened = {
        key: products.models[str(key)].artifact.plan.facts["arena_bytes"] > 0
        for key, (m, *_) in PRODUCTS.items()
        if m == 1
    }
    too_large = {key for key in widened if key[0] in ("1x34x40", "1x1001x8")}  # -128, 1001 rows
    as_int16 = {key for key in widened if key[2] == 3} | {("1x33x40", "uint8", 127)}
    assert {key for key, is_widened in widened.items() if is_widened} == too_large | as_int16


@pytest.mark.slow
@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m3"])
def test_the_bits_are_the_same_on_an_emulated_machine(
    cpu: str, convolutions: Library, products: Library, tmp_path: Path
) -> None:
    """Cortex-M4 has the DSP instructions, Cortex-M3 computes the plain C."""
    needs("arm-none-eabi-gcc", "gcc-arm-none-eabi with libnewlib-arm-none-eabi")
    needs("qemu-system-arm", "qemu-system-arm")
    board = BOARDS[cpu]
    text = ""
    for number, library in enumerate((convolutions, products)):
        names = [*CONVOLUTIONS] if library is convolutions else [*map(str, PRODUCTS)]
        runs = []
        for name in names:
            case = CONVOLUTIONS.get(name)
            key = next((each for each in PRODUCTS if str(each) == name), None)
            given, wanted = (case.given, case.wanted) if case else product_of(key)
            runs.append(Run(name, [given], [wanted]))
        folder = tmp_path / str(number)
        folder.mkdir()
        for file, data in files_of(library, names).items():
            (folder / file).write_bytes(data)
        (folder / "main.c").write_bytes(main_of([_named(library, each) for each in runs]))
        models = sorted(file.name for file in folder.glob("m*.c") if file.name != "main.c")
        run([*compiler_command(board, "-O2"), *WARNINGS, "-c", *models], folder)
        link(board, folder, [*(f"{name[:-2]}.o" for name in models), "main.c"])
        run(emulator_command(board), folder)
        text += run(["arm-none-eabi-objdump", "-d", "run.elf"], folder)
    assert ("smlad" in text) == (cpu == "cortex-m4")


def _named(library: Library, run: Run) -> Run:
    """The run by the prefix of its model."""
    prefix = library.models[run.name].function.removesuffix("_run")
    return Run(prefix, run.inputs, run.outputs)
