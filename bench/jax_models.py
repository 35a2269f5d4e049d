"""CPU seconds to convert the whole models of ``tests/whole_models``, beside another converter.

    python -m bench.jax_models [--rival PYTHON] [--only gpt_nnx,vit] [--published]
    python -m bench.jax_models --only vit --chains 10000,50000,100000

Each model and tool has a process of its own, which converts twice: the first call pays for what a
process does once. ``jax`` is the trace itself, without any conversion. ``--rival`` names a Python
that has jax2onnx, flax, equinox and optax. ``--published`` gives models the sizes that they were
published with, which the tests do without; ``--chains`` are the equations of one long function.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[1]
TIMEOUT = 300.0
CATALOGUE = "whole_models.catalogue"
GPT_2 = {"width": 768, "heads": 12, "words": 50257, "longest": 1024}
PUBLISHED: dict[str, dict[str, int]] = {
    "gpt_nnx": GPT_2,
    "gpt_equinox": GPT_2,
    "resnet50": {"width": 64, "classes": 1000, "side": 224},
    "resnet50_keywords": {"width": 64, "classes": 1000, "side": 224},
    "convnext": {"width": 96, "classes": 1000, "side": 224},
    "vit": {"width": 768, "heads": 12, "classes": 1000, "side": 224},
    "unet": {"width": 64, "side": 256},
}
"""GPT-2, ResNet-50, ConvNeXt-T, ViT-B/16 and U-Net."""

Figures: TypeAlias = dict[str, float]


def _struct(spec: Any) -> Any:
    """A spec in text as the shape and dtype that jax2onnx takes."""
    import jax

    if not isinstance(spec, str):
        return jax.ShapeDtypeStruct(spec.shape, spec.dtype)
    found = re.fullmatch(r"([a-z]+)(\d+)\[(.*)\]", spec)
    assert found is not None
    kind, bits, dims = found.groups()
    dtype = {"f": "float", "i": "int", "u": "uint"}[kind] + bits
    shape = tuple(int(dim) if dim.isdigit() else dim for dim in dims.split(",") if dim)
    return jax.ShapeDtypeStruct(shape, dtype)


def _by_jax(model: Any) -> Callable[[], Figures]:
    import jax

    from smelt.frontends.jax.call import specs

    structs, _ = specs.resolve(model.specs, model.constraints, model.x64)

    def convert() -> Figures:
        with jax.enable_x64(model.x64):
            return {"nodes": float(len(jax.make_jaxpr(model.function)(*structs).eqns))}

    return convert


def _by_smelt(model: Any) -> Callable[[], Figures]:
    def convert() -> Figures:
        import smelt

        traced = smelt.trace(
            model.function, *model.specs, constraints=model.constraints, x64=model.x64
        )
        small = smelt.optimize(traced)
        smelt.to_proto(small)
        return {"traced": float(len(traced.graph)), "nodes": float(len(small.graph))}

    return convert


def _by_rival(model: Any) -> Callable[[], Figures]:
    import jax

    leaves, tree = jax.tree.flatten(model.specs)

    def flat(*arguments: Any) -> Any:
        return model.function(*jax.tree.unflatten(tree, arguments))

    def convert() -> Figures:
        import jax2onnx

        proto = jax2onnx.to_onnx(
            flat, [_struct(leaf) for leaf in leaves], enable_double_precision=model.x64
        )
        return {"nodes": float(len(proto.graph.node))}

    return convert


TOOLS: dict[str, Callable[[Any], Callable[[], Figures]]] = {
    "jax": _by_jax,
    "smelt": _by_smelt,
    "jax2onnx": _by_rival,
}


def work(tool: str, name: str, published: bool) -> Figures:
    """The figures of one tool and model, in this process."""
    sys.path.insert(0, str(ROOT / "tests"))
    from importlib import import_module

    sizes = PUBLISHED[name] if published else {}
    convert = TOOLS[tool](import_module(CATALOGUE).MODELS[name](**sizes))
    figures: Figures = {}
    for call in ("first", "second"):
        started = time.process_time()
        figures |= convert()
        figures[call] = time.process_time() - started
    return figures


def measure(python: str, tool: str, name: str, published: bool) -> Figures | str:
    """The same in a process of ``python``, or why there are none."""
    command = [python, __file__, "--work", tool, name, *(["--published"] if published else [])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return f"over {TIMEOUT:.0f} s"
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if re.match(r"[\w.]*(Error|Exc)", line)]
        return (lines or ["failed"])[-1][:60]
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def chain(equations: int) -> Figures:
    """Microseconds of CPU an equation, for one function of so many."""
    import jax
    import jax.numpy as jnp

    import smelt

    def function(x: jax.Array) -> jax.Array:
        for _ in range(equations // 4):
            x = jnp.tanh(jnp.sin(x) * 1.5 + 0.25)
        return x

    started = time.process_time()
    jax.make_jaxpr(function)(jax.ShapeDtypeStruct((3, 4), "float32"))
    traced = time.process_time()
    smelt.trace(function, "f32[B,4]")
    done = time.process_time()
    scale = 1e6 / equations
    return {"jaxpr": (traced - started) * scale, "smelt": (done - traced) * scale}


def show(rows: dict[str, dict[str, Figures | str]]) -> None:
    """One table: seconds of CPU, nodes, and how many times as long the rival takes."""
    from rich.console import Console
    from rich.table import Table

    heads = ("model", "jax 1st", "smelt 1st", "2nd", "nodes", "jax2onnx 2nd", "nodes", "ratio")
    table = Table(*heads, title="CPU seconds")
    for name, tools in rows.items():
        jax, ours, rival = (tools.get(tool, "") for tool in TOOLS)
        if isinstance(ours, str):
            table.add_row(name, "", ours)
            continue
        row = [name, "" if isinstance(jax, str) else f"{jax['first']:.2f}"]
        row += [f"{ours['first']:.2f}", f"{ours['second']:.2f}"]
        row += [f"{ours['traced']:.0f} to {ours['nodes']:.0f}"]
        if isinstance(rival, str):
            row += [rival]
        else:
            row += [f"{rival['second']:.2f}", f"{rival['nodes']:.0f}"]
            row += [f"{rival['second'] / ours['second']:.1f}"]
        table.add_row(*row)
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rival", metavar="PYTHON")
    parser.add_argument("--only", default="")
    parser.add_argument("--chains", default="")
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(json.dumps(work(*options.work, options.published)))
        return
    for size in options.chains.split(",") if options.chains else ():
        figures = chain(int(size))
        told = ", ".join(f"{key} {value:.0f}" for key, value in figures.items())
        print(f"{int(size):,} equations, microseconds each: {told}", flush=True)
    sys.path.insert(0, str(ROOT / "tests"))
    from importlib import import_module

    every = PUBLISHED if options.published else import_module(CATALOGUE).MODELS
    names = options.only.split(",") if options.only else list(every)
    rows: dict[str, dict[str, Figures | str]] = {}
    for name in names:
        pythons = {"jax": sys.executable, "smelt": sys.executable, "jax2onnx": options.rival}
        rows[name] = {
            tool: measure(python, tool, name, options.published)
            for tool, python in pythons.items()
            if python
        }
    show(rows)


if __name__ == "__main__":
    main()
