"""What a library needs of a board, and option ``fit``, which refuses what does not fit."""

from __future__ import annotations

import json
import shutil

import pytest
from c_library import compile_c, compile_text, with_constants
from c_programs import CNN

from smelt.errors import ResourceLimit, SmeltError
from smelt.targets.base import Artifact
from smelt.targets.c import code_size
from smelt.targets.c.cpu_costs import costs_of, measured_cpus
from smelt.targets.c.limits import Limits, limits

M4 = {"cpu": "cortex-m4"}
_SAME = "kernel_shape = [3, 3], pads = [1, 1, 1, 1]"
NETWORK = f"""g (float[1,8,32,32] x, float[8,8,3,3] w) => (float[1,8,8,8] y) {{
    a = Conv<{_SAME}>(x, w) b = Relu(a)
    c = Conv<{_SAME}, strides = [2, 2]>(b, w) d = Relu(c)
    y = Conv<{_SAME}, strides = [2, 2]>(d, w) }}"""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("flash=64K,ram=32K", Limits(65536, 32768)),
        ("ram=1M", Limits(None, 1 << 20)),
        ("ram=0, flash=100", Limits(100, 0)),
        ("flash=64Q", None),
        ("flash=64K,flash=1K", None),
        ("flash=-1", None),
        ("flash=", None),
        ("rom=64K", None),
        ("", None),
    ],
)
def test_limits_have_one_form(text: str, want: Limits | None) -> None:
    assert limits(text) == want


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({**M4, "fit": "flash=64Q"}, "flash=64Q"),
        ({**M4, "fit": True}, "fit"),
        ({"fit": "flash=64K"}, "cpu=generic"),
        ({"cpu": "rv32", "fit": "flash=64K"}, "cpu=rv32"),
    ],
)
def test_a_wrong_fit_is_refused(options: dict[str, object], told: str) -> None:
    with pytest.raises(SmeltError, match=told) as caught:
        compile_text(CNN, **options)
    assert caught.value.code == "E660"


def test_flash_and_ram_are_sums_of_their_parts() -> None:
    artifact = compile_text(CNN, **M4)
    facts = artifact.plan.facts
    assert facts["text_and_stack"] == "estimated"
    assert facts["flash_bytes"] == facts["text_bytes"] + facts["weights_bytes"]
    parts = facts["arena_bytes"] + facts["stack_bytes"] + facts["buffers_bytes"]
    assert facts["ram_bytes"] == parts
    kernels = artifact.report["kernels"]
    assert facts["instructions"] == sum(kernel["instructions"] for kernel in kernels) > 0
    listed = json.loads(artifact.files["report.json"])["kernels"]
    assert [each["instructions"] for each in listed] == [
        kernel["instructions"] for kernel in kernels
    ]


def test_a_cpu_without_measured_costs_gets_no_numbers() -> None:
    artifact = compile_text(CNN)
    assert "flash_bytes" not in artifact.plan.facts
    assert not any("instructions" in kernel for kernel in artifact.report["kernels"])


def test_instructions_of_a_loop_are_unknown() -> None:
    body = "b (int64 i, bool c, float[4] s) => (bool d, float[4] t) "
    body += "{ d = Identity(c) t = Add(s, s) }"
    graph = f"""g (float[4] x, int64 n) => (float[4] y) {{
        k = Constant<value = bool {{1}}>() s = Sin(x) y = Loop<body = {body}>(n, k, s) }}"""
    artifact = compile_text(graph, **M4)
    sine, loop = (kernel["instructions"] for kernel in artifact.report["kernels"])
    assert loop is None
    facts = artifact.plan.facts
    assert facts["instructions_besides_loops"] == sine > 0
    assert "instructions" not in facts
    assert facts["kinds_without_measured_costs"] == ["Sin float"]


def test_what_fits_is_compiled_and_what_does_not_is_refused_with_advice() -> None:
    def facts(fit: str) -> dict[str, object]:
        return compile_c(with_constants(NETWORK, 23, "w"), fit=fit, **M4).plan.facts

    needs = facts("flash=16M,ram=16M")
    assert facts(f"flash={needs['flash_bytes']},ram={needs['ram_bytes']}") == needs
    for name in ("flash", "ram"):
        less = needs[f"{name}_bytes"] - 1
        with pytest.raises(ResourceLimit, match=f"of {less:,} bytes of {name}") as caught:
            facts(f"{name}={less}")
        assert caught.value.code == "E408"
        assert "smelt quantize" in caught.value.fix


def test_an_arena_in_row_bands_is_advised_with_its_cost_and_then_fits() -> None:
    def compiled(**options: object) -> Artifact:
        return compile_c(with_constants(NETWORK, 23, "w"), **M4, **options)

    needs = compiled(fit="ram=16M").plan.facts
    limit = needs["ram_bytes"] - needs["arena_bytes"] // 3
    with pytest.raises(ResourceLimit, match="bytes of ram") as caught:
        compiled(fit=f"ram={limit}")
    assert "times the multiplications" in caught.value.fix
    advised = caught.value.fix.partition("--option arena=")[2].partition(":")[0]
    assert compiled(fit=f"ram={limit}", arena=int(advised)).plan.facts["ram_bytes"] <= limit


def test_code_is_measured_where_arm_gcc_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = compile_text(CNN, fit="flash=1M", **M4).plan.facts
    installed = shutil.which(code_size.COMPILER) and shutil.which(code_size.SIZE)
    assert facts["text_and_stack"].startswith("measured" if installed else "estimated")
    monkeypatch.setattr(code_size, "COMPILER", "no-such-compiler")
    assert compile_text(CNN, fit="flash=1M", **M4).plan.facts["text_and_stack"] == "estimated"


@pytest.mark.parametrize("cpu", ["cortex-m3", "cortex-m4", "cortex-m7"])
def test_tables_have_costs_for_kinds_that_no_model_measured(cpu: str) -> None:
    costs = costs_of(cpu)
    assert cpu in measured_cpus()
    assert costs is not None
    assert {"other float", "other int8"} <= costs.kinds.keys()
    assert all(number >= 0 for row in costs.kinds.values() for number in row)


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("qemu-system-arm") and shutil.which(code_size.COMPILER)),
    reason="needs qemu-system-arm and arm-none-eabi-gcc",
)
@pytest.mark.parametrize("name", ["tiny_mlp", "mnist_cnn", "dscnn_kws", "resnet8"])
def test_estimates_are_within_a_quarter_of_the_counts(name: str) -> None:
    import smelt
    from bench.microcontrollers import measure, models_of

    for model in models_of(name, ["float", "int8"]).values():
        counted = measure(model, "cortex-m4", "-O2", {}).instructions
        guess = smelt.compile(model, target="c", **M4).plan.facts["instructions"]
        assert 0.75 < guess / counted < 1.25
