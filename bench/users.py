"""Exports as users have them, at published widths, after each optimizer at hand.

    python -m bench.users FOLDER --make     (in an environment that has torch)
    python -m bench.users FOLDER [--only 'bert*'] [--threads 1] [--rounds 30] [--runs 2]
                             [--save]

``--make`` exports the models of ``EXPORTS`` by both exporters of PyTorch with open sizes into
FOLDER/KIND. Without it, each is measured at each of its sizes by ``bench.ort``: nodes left, and the
latency in ONNX Runtime as a ratio to the export, smelt for ``onnx`` and ``ort`` beside onnxslim,
onnxsim, onnxscript, optimum and ONNX Runtime's own optimizers, where they are installed.
``--runs`` limits the number of sizes of each. ``--save`` puts the rows into
``bench/figures.json``, beside those of other models that it has, if these are of the same tools.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.metadata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EXPORTERS = ("dynamo", "torchscript")

TEXT = tuple({"batch": b, "length": n} for b, n in ((1, 16), (2, 128), (8, 64), (1, 512)))
DECODING = ({"batch": 1, "past": 100, "total": 101},)
PICTURES = ({"batch": 1}, {"batch": 4})


@dataclass(frozen=True)
class Export:
    """A network of ``bench.architectures``, the fields of its ``Size``, and the sizes of runs."""

    network: str
    runs: tuple[Mapping[str, int], ...] = TEXT
    size: Mapping[str, int] = field(default_factory=dict)


BASE = {"layers": 4, "width": 768, "heads": 12, "words": 3000, "length": 32}
SMALL = {**BASE, "layers": 6, "width": 384}
IMAGE = {**BASE, "image": 224}

EXPORTS: Mapping[str, Export] = {
    "bert-base": Export("bert", size=BASE),
    "minilm": Export("bert", size=SMALL),
    "distilbert": Export("distilbert", size={**BASE, "layers": 6}),
    "roberta-base": Export("roberta", size=BASE),
    "t5-encoder": Export("t5_encoder", size={**SMALL, "width": 512, "heads": 8}),
    "gpt2": Export("gpt2_masked", size=BASE),
    "gpt2-cache": Export("gpt2_cache", DECODING, BASE),
    "llama-cache": Export("llama_cache", DECODING, {**SMALL, "width": 512, "heads": 8}),
    "vit-b": Export("vit", PICTURES, IMAGE),
    "deit-b": Export("deit", PICTURES, IMAGE),
    "swin": Export("swin", PICTURES, {"width": 96, "image": 224}),
    "convnext": Export("convnext", PICTURES, {"width": 96, "image": 224}),
    "efficientnet": Export("efficientnet", PICTURES, {"image": 224}),
    "segformer": Export("segformer", PICTURES, {"image": 224}),
}
"""By kind. Words are fewer than published: an embedding moves no latency but the file's size.
Of width 768 there are 4 layers, since eight sessions of 12 layers take over 10 GB."""


def paths(folder: Path, only: str) -> Iterator[tuple[str, Export, str, Path]]:
    """Yield the kind, the export, the exporter and the file of each model that ``only`` names."""
    for kind, each in EXPORTS.items():
        for exporter in EXPORTERS:
            if fnmatch.fnmatch(f"{kind}.{exporter}", only):
                path = folder / kind / f"{each.network}.{exporter}.dynamic.onnx"
                yield kind, each, exporter, path


def make(folder: Path, only: str) -> None:
    """Export what is missing in ``folder``, and print what an exporter refuses."""
    from bench.architectures.network import Size
    from bench.export_architectures import export

    for kind, each, exporter, path in paths(folder, only):
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        refused = export(
            each.network, Size(**each.size), exporter, "dynamic", path.parent, "float32"
        )
        print(f"{kind} {exporter}: {refused or 'written'}", flush=True)


def measure(
    folder: Path, only: str, threads: int, rounds: int, runs: int
) -> dict[str, dict[str, Any]]:
    """Return the row of ``bench.ort`` for each model and each of its first ``runs`` sizes."""
    from bench.ort import judge, optimized

    rows: dict[str, dict[str, Any]] = {}
    for kind, each, exporter, path in paths(folder, only):
        if not path.exists():
            continue
        models = optimized(path)
        for sizes in each.runs[:runs]:
            name = " ".join([kind, exporter, *(f"{dim}={n}" for dim, n in sizes.items())])
            rows[name] = judge(models, threads, rounds, dict(sizes))
            print(f"{name} is measured", flush=True)
    return rows


def save(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Put the rows of ``measure`` into ``bench/figures.json``."""
    from bench import figures
    from bench.ort import TOOLS

    before = figures.load().get("users", {})
    kept = dict(before["rows"]) if before.get("tools") == list(TOOLS) else {}
    for name, row in rows.items():
        cells = [
            [row[f"{tool} nodes"], round(ratio, 3)]
            if isinstance(ratio := row[tool], float)
            else ratio
            for tool in TOOLS
        ]
        kept[name] = [row["source nodes"], *cells]
    version = importlib.metadata.version("onnxruntime")
    figures.save("users", {"onnxruntime": version, "tools": list(TOOLS), "rows": kept})


def main() -> None:
    """Make the models, or measure those that are there and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--only", default="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--runs", type=int, default=len(TEXT))
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    if options.make:
        make(options.folder, options.only)
        return
    from bench.ort import table

    rows = measure(options.folder, options.only, options.threads, options.rounds, options.runs)
    print(table(rows))
    if options.save:
        save(rows)


if __name__ == "__main__":
    main()
