"""Tokens a second of one decoder by smelt, ONNX Runtime, llama.cpp and onnxruntime-genai.

    python -m bench.decoders FOLDER [--size 311M] [--threads 1] [--rounds 12] [--context 128,2048]
                             [--rivals PYTHON] [--only host-int4,llama.cpp]

FOLDER gets the files of ``bench.decoder_files`` once. PYTHON is the interpreter of an environment
with ``gguf`` and ``llama_cpp``, and optionally ``onnxruntime_genai``. Each runtime is a process of
its own. The processes take turns: a round is ``STEPS`` tokens of each. The table has the median
round and the best one, the same relative to llama.cpp, the bytes of the files, the peak of memory,
and the fraction of the stream rate: bytes of weights a second over bytes a second of a plain sum.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from bench.decoder_runtimes import RUNTIMES, files_of

STEPS = 4
PROMPT = 512
ROOT = Path(__file__).parent.parent


class Worker:
    """A process that runs one runtime; a request is a line of JSON, and so is its answer."""

    def __init__(self, name: str, python: str, folder: Path, size: str, threads: int) -> None:
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        environment |= {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}
        command = [python, "-m", "bench.decoder_runtimes", name, str(folder), size, str(threads)]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if "BENCH_STDERR" in os.environ else subprocess.DEVNULL,
            text=True,
        )

    def ask(self, **request: Any) -> Any:
        """Return the answer to ``request``; raises EOFError if the process has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        while line and not line.startswith("{"):
            line = self.process.stdout.readline()
        if not line:
            raise EOFError
        return json.loads(line)

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


def _started(name: str, options: argparse.Namespace) -> tuple[Worker, dict[str, Any]] | None:
    """Return a worker that has its model and one token, and its first figures; None without."""
    python = sys.executable if name in ("host-f32", "host-int8", "host-int4") else options.rivals
    folder = Path(options.folder)
    worker = Worker(name, python, folder, options.size, options.threads)
    try:
        return worker, worker.ask(do="load")
    except EOFError:
        worker.end()
        print(f"{name}: cannot run here (BENCH_STDERR=1 shows why)")
        return None


def _rounds(workers: dict[str, Worker], options: argparse.Namespace) -> dict[str, list[float]]:
    """Return the seconds of a step of each runtime, one number a round."""
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(options.rounds):
        for name, worker in workers.items():
            seconds[name].append(worker.ask(do="steps", count=STEPS)["seconds"] / STEPS)
    return seconds


def _table(rows: dict[str, list[float]], rate: float, tokens: int, bytes_: dict[str, int]) -> None:
    """Print tokens a second, relative to llama.cpp, and the fraction of the stream rate."""
    peer = rows.get("llama.cpp")
    for name, seconds in rows.items():
        line = f"{name:14} {tokens / median(seconds):8.1f} {tokens / min(seconds):8.1f}"
        if peer:
            line += f" {median(peer) / median(seconds):8.2f} {min(peer) / min(seconds):8.2f}"
        if tokens == 1:
            line += f" {bytes_[name] / min(seconds) / rate:8.2f}"
        print(line, flush=True)


def measure(options: argparse.Namespace) -> None:
    """Print all tables."""
    names = options.only.split(",") if options.only else list(RUNTIMES)
    started = {name: made for name in names if (made := _started(name, options)) is not None}
    workers = {name: worker for name, (worker, _) in started.items()}
    sizes = {
        name: sum(
            path.stat().st_size for path in files_of(name, Path(options.folder), options.size)
        )
        for name in workers
    }
    try:
        rate = max(worker.ask(do="stream")["rate"] for worker in list(workers.values())[:1] * 3)
        print(f"{options.size}, {options.threads} threads, stream rate {rate / 1e9:.1f} GB/s")
        for context in map(int, options.context.split(",")):
            for worker in workers.values():
                worker.ask(do="prompt", count=context)
            columns = "tokens/s     best  over llama.cpp     of rate"
            print(f"\ndecode from {context}   {columns}")
            _table(_rounds(workers, options), rate, 1, sizes)
        seconds: dict[str, list[float]] = {name: [] for name in workers}
        for worker in workers.values():
            worker.ask(do="prompt", count=PROMPT)
        for _ in range(max(2, options.rounds // 4)):
            for name, worker in workers.items():
                seconds[name].append(worker.ask(do="prompt", count=PROMPT)["seconds"])
        print(f"\nprompt of {PROMPT}    tokens/s     best  over llama.cpp")
        _table(seconds, rate, PROMPT, sizes)
        print("\nfile MB, seconds to the first token, peak MB")
        for name, (worker, loaded) in started.items():
            peak = worker.ask(do="peak")["bytes"] / 1e6
            print(f"{name:14} {sizes[name] / 1e6:8.1f} {loaded['seconds']:8.2f} {peak:8.0f}")
    finally:
        for worker in workers.values():
            worker.end()


def main(arguments: Iterable[str] | None = None) -> None:
    """Write the files that are missing, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--size", default="311M")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--context", default="128,2048")
    parser.add_argument("--rivals", default=sys.executable)
    parser.add_argument("--only", default="")
    options = parser.parse_args(None if arguments is None else list(arguments))
    command = [options.rivals, "-m", "bench.decoder_files", options.folder, options.size]
    subprocess.run(command, check=True, cwd=ROOT)
    _write_quantized(Path(options.folder), options.size)
    measure(options)


def _write_quantized(folder: Path, size: str) -> None:
    """Write the model with weights of 4 and 8 bits, unless it is there."""
    for weights in ("int4", "int8"):
        to = folder / f"{size}-{weights}"
        if not (to / "model.onnx").exists():
            smelt = [sys.executable, "-m", "smelt", "compile", str(folder / f"{size}.onnx")]
            subprocess.run(
                [*smelt, "--target", "ort", "--weights", weights, "-o", str(to)], check=True
            )


if __name__ == "__main__":
    main()
