"""Instructions, flash and RAM of small models on an emulated Cortex-M, floats beside int8.

    python -m bench.microcontrollers [--models a,b] [--cpu cortex-m4] [--kinds float,int8]
                                     [--level -O2] [--kernels] [--option quantized=fixed]
                                     [--within 1%]

Counts come from QEMU (see ``bench.cortex_m``). ``off`` is the largest difference from ONNX Runtime
on this machine, over the largest result. The kind ``smelt`` is what ``smelt quantize --gain
cycles`` makes within the error of ``--within``, calibrated on 64 random inputs. ``text`` is code by
``-Os``. ``--kernels`` lists the instructions of each kernel.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

import smelt
from bench.c_models import session_of
from bench.cortex_m import (
    BOARDS,
    INSTRUCTIONS_PER_TICK,
    TICKS,
    Board,
    compiler_command,
    emulator_command,
    link,
)
from bench.networks import NETWORKS
from bench.quantized_models import quantized

MODELS = "tiny_mlp,mnist_cnn,dscnn_kws,resnet8,tiny_transformer"

ROOMY = {"cortex-m0": Board(BOARDS["cortex-m3"].machine, BOARDS["cortex-m0"].flags)}
"""A Cortex-M3 runs the code of a Cortex-M0; QEMU's boards with an M0 have 256 KiB of flash."""

MAIN = """
#include "model.h"
uint64_t model_clock(void) { return ticks(); }
static _Alignas(MODEL_ARENA_ALIGN) unsigned char arena[MODEL_ARENA_BYTES + 1];
static const uint32_t x[] = { VALUES };
static uint32_t y[MODEL_OUTPUT0_BYTES / 4];
int main(void)
{
    const void *inputs[] = { x };
    void *outputs[] = { y };
    start_ticks();
    const uint32_t begin = ticks();
    if (model_run(inputs, outputs, arena))
        return 1;
    uint32_t total = ticks() - begin;
    if (SYSTICK[0] & 0x10000) { /* the counter started again: add the kernels, each below 2^24 */
        total = 0;
        for (int i = 0; i < STEPS; ++i)
            total += (uint32_t)model_ticks[i] & 0xFFFFFF;
    }
    print_number(total);
    for (int i = 0; i < STEPS; ++i)
        print_number((uint32_t)model_ticks[i] & 0xFFFFFF);
    for (unsigned i = 0; i < MODEL_OUTPUT0_BYTES / 4; ++i)
        print_number(y[i]);
    return 0;
}
"""


@dataclass(frozen=True)
class Figures:
    """What one build of a model needs; ``kernels`` has a name, instructions and MACs of each."""

    instructions: int
    macs: int
    text: int
    weights: int
    arena: int
    frame: int
    off: float
    kernels: list[tuple[str, int, int]]


def measure(
    model: onnx.ModelProto,
    cpu: str,
    level: str,
    options: Mapping[str, object],
    keep: Path | None = None,
) -> Figures:
    """Compile, run and count one model."""
    board = ROOMY.get(cpu, BOARDS[cpu])
    artifact = smelt.compile(model, target="c", cpu=cpu, profile=True, **options)
    session = session_of(model)
    port = session.get_inputs()[0]
    x = np.random.default_rng(0).normal(size=port.shape).astype(np.float32)
    want = session.run(None, {port.name: x})[0]
    kernels = json.loads(artifact.files["report.json"])["kernels"]
    with tempfile.TemporaryDirectory() as name:
        folder = keep or Path(name)
        folder.mkdir(exist_ok=True, parents=True)
        for file, data in artifact.files.items():
            (folder / file).write_bytes(data)
        values = ",".join(f"{word}u" for word in x.view(np.uint32).ravel())
        main = MAIN.replace("VALUES", values).replace("STEPS", str(len(kernels)))
        (folder / "main.c").write_text(TICKS + main)
        frame = _frame(board, folder, level)
        link(board, folder, ["model.c", "model_weights.c", "main.c"], level)
        done = subprocess.run(
            emulator_command(board), cwd=folder, check=True, capture_output=True, text=True
        )
        numbers = [int(word) for word in (done.stdout + done.stderr).split()]
        total, ticks, words = numbers[0], numbers[1 : len(kernels) + 1], numbers[len(kernels) + 1 :]
        got = np.array(words, np.uint32).view(np.float32).reshape(want.shape)
        counts = [
            (f"{each['op']} {each['function']}", spent * INSTRUCTIONS_PER_TICK, each["macs"])
            for each, spent in zip(kernels, ticks, strict=True)
        ]
        return Figures(
            total * INSTRUCTIONS_PER_TICK,
            artifact.plan.facts["macs"],
            code_bytes(board, folder),
            artifact.plan.facts["weights_bytes"],
            artifact.plan.memory.arena_bytes,
            frame,
            float(np.abs(got - want).max() / np.abs(want).max()),
            counts,
        )


def _frame(board: Board, folder: Path, level: str) -> int:
    """The largest stack frame of the library."""
    command = [*compiler_command(board, level), "-fstack-usage", "-c", "model.c", "-o", "frame.o"]
    subprocess.run(command, cwd=folder, check=True)
    return max(int(line.split("\t")[1]) for line in (folder / "frame.su").open())


def code_bytes(board: Board, folder: Path, level: str = "-Os") -> int:
    """The bytes of code, without the clock and constant tables of its own."""
    subprocess.run(
        [*compiler_command(board, level), "-c", "model.c", "-o", "size.o"], cwd=folder, check=True
    )
    listed = subprocess.run(
        ["arm-none-eabi-size", "-A", "size.o"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return sum(
        int(line.split()[1]) for line in listed.stdout.splitlines() if line.startswith(".text")
    )


def within(model: onnx.ModelProto, cpu: str, error: str) -> onnx.ModelProto:
    """What smelt quantizes of ``model`` for a CPU within an error."""
    port = session_of(model).get_inputs()[0]
    rng = np.random.default_rng(1)
    data = [{port.name: rng.normal(size=port.shape).astype(np.float32)} for _ in range(128)]
    result = smelt.quantize(
        model, data, within=error, activations="static", signed=True, gain="cycles", cpu=cpu
    )
    return smelt.to_proto(result.model)


def models_of(
    name: str, kinds: Sequence[str], cpu: str = "cortex-m4", error: str = "1%"
) -> dict[str, onnx.ModelProto]:
    """The float model, and the same with int8 or uint8 activations, or within an error."""
    model = NETWORKS[name]()
    found = {}
    for kind in kinds:
        if kind == "smelt":
            found[kind] = within(model, cpu, error)
            continue
        activations = "uint8" if kind == "uint8" else "int8"
        given = argparse.Namespace(dynamic=False, tensors=False, activations=activations)
        found[kind] = model if kind == "float" else quantized(model, given)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=re.sub(r"\s+", " ", __doc__ or ""))
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--cpu", default="cortex-m4", choices=sorted(BOARDS))
    parser.add_argument("--kinds", default="float,int8")
    parser.add_argument("--level", default="-O2")
    parser.add_argument("--within", default="1%")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for sources and programs")
    parser.add_argument("--option", action="append", default=[])
    given = parser.parse_args()
    options = dict(option.split("=", 1) for option in given.option)
    names = ("instructions", "a MAC", "over float", "text", "weights", "arena", "frame", "off")
    table = Table("model", "kind", *names, box=None)
    for name in given.models.split(","):
        first = 0
        for kind, model in models_of(name, given.kinds.split(","), given.cpu, given.within).items():
            found = measure(
                model, given.cpu, given.level, options, given.keep and given.keep / f"{name}_{kind}"
            )
            first = first or found.instructions
            counts = [f"{found.instructions:,}", f"{found.instructions / found.macs:.2f}"]
            sizes = (found.text, found.weights, found.arena, found.frame)
            row = [*counts, f"{found.instructions / first:.2f}", *map(str, sizes)]
            table.add_row(name, kind, *row, f"{found.off:.2g}")
            for kernel, count, macs in found.kernels if given.kernels else ():
                print(f"{count:>12,} {count / max(macs, 1):>8.2f} a MAC  {kernel}")
            Console(width=160).print(table)


if __name__ == "__main__":
    main()
