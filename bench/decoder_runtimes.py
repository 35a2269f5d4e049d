"""One runtime of ``bench.decoders`` in a process: it answers requests until its input ends."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

MOST = 4096


class Runtime(Protocol):
    """A decoder with one sequence; a token follows the most likely one."""

    def prompt(self, ids: np.ndarray) -> None:
        """Read the prompt of a new sequence, and compute its first token."""

    def step(self) -> None:
        """Compute the next token."""


class Host:
    """smelt's decoder on the target host."""

    def __init__(self, path: Path, threads: int) -> None:
        import smelt

        self.decoder = smelt.Decoder(str(path), threads=threads)
        self.tokens: Iterator[int] = iter(())

    def prompt(self, ids: np.ndarray) -> None:
        """Start a stream with room for more tokens than a run takes."""
        self.tokens = self.decoder.stream(ids, 256)
        next(self.tokens)

    def step(self) -> None:
        """Take a token of the stream."""
        next(self.tokens)


class Ort:
    """ONNX Runtime; pasts stay in its memory."""

    def __init__(self, path: Path, threads: int) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = ort.InferenceSession(str(path), options, ["CPUExecutionProvider"])
        self.value = ort.OrtValue.ortvalue_from_numpy
        self.pasts = [i.name for i in self.session.get_inputs() if i.name.startswith("past")]
        self.shape = [i.shape for i in self.session.get_inputs() if i.name.startswith("past")]
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.caches: list[Any] = []
        self.length = 0
        self.next = 0

    def prompt(self, ids: np.ndarray) -> None:
        """Run the prompt in one call."""
        _, groups, _, head = self.shape[0]
        empty = np.zeros((1, groups, 0, head), np.float32)
        self.caches, self.length = [self.value(empty) for _ in self.pasts], 0
        self._run(ids)

    def step(self) -> None:
        """Run the last token."""
        self._run(np.array([self.next]))

    def _run(self, ids: np.ndarray) -> None:
        end = self.length + len(ids)
        feeds = {
            "input_ids": self.value(ids[None].astype(np.int64)),
            "attention_mask": self.value(np.ones((1, end), np.int64)),
            "position_ids": self.value(np.arange(self.length, end, dtype=np.int64)[None]),
            **dict(zip(self.pasts, self.caches, strict=True)),
        }
        logits, *caches = self.session.run_with_ort_values(self.outputs, feeds)
        by_name = dict(zip(self.outputs[1:], caches, strict=True))
        self.caches = [by_name[name.replace("past_key_values", "present")] for name in self.pasts]
        self.length, self.next = end, int(logits.numpy()[0, -1].argmax())


class LlamaCpp:
    """llama.cpp by the functions of its C interface."""

    def __init__(self, path: Path, threads: int) -> None:
        import llama_cpp

        self.library = llama_cpp
        llama_cpp.llama_backend_init()
        model = llama_cpp.llama_model_load_from_file(
            str(path).encode(), llama_cpp.llama_model_default_params()
        )
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx, parameters.n_batch, parameters.n_ubatch = MOST, 512, 512
        parameters.n_threads = parameters.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(model, parameters)
        self.words = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
        self.next = 0

    def prompt(self, ids: np.ndarray) -> None:
        """Read the prompt in batches of 512."""
        library = self.library
        library.llama_memory_clear(library.llama_get_memory(self.context), True)
        for begin in range(0, len(ids), 512):
            self._run(ids[begin : begin + 512])

    def step(self) -> None:
        """Run the last token."""
        self._run(np.array([self.next]))

    def _run(self, ids: np.ndarray) -> None:
        library = self.library
        tokens = (library.llama_token * len(ids))(*map(int, ids))
        batch = library.llama_batch_get_one(tokens, len(ids))
        if library.llama_decode(self.context, batch):
            raise RuntimeError("llama_decode failed")
        pointer = library.llama_get_logits_ith(self.context, -1)
        self.next = int(np.ctypeslib.as_array(pointer, (self.words,)).argmax())


class GenAI:
    """onnxruntime-genai with a folder of its own builder, ``FOLDER/SIZE-genai``."""

    def __init__(self, path: Path, threads: int) -> None:
        import onnxruntime_genai as genai

        self.genai = genai
        config = genai.Config(str(path.parent))
        config.overlay(
            json.dumps(
                {"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}
            )
        )
        self.model = genai.Model(config)
        self.generator: Any = None

    def prompt(self, ids: np.ndarray) -> None:
        """Start a generator with room for more tokens than a run takes."""
        parameters = self.genai.GeneratorParams(self.model)
        parameters.set_search_options(max_length=len(ids) + 256, do_sample=False)
        self.generator = self.genai.Generator(self.model, parameters)
        self.generator.append_tokens(ids.astype(np.int32))
        self.generator.generate_next_token()

    def step(self) -> None:
        """Generate a token."""
        self.generator.generate_next_token()


RUNTIMES: dict[str, tuple[Any, str]] = {
    "host-f32": (Host, "{}.onnx"),
    "host-int8": (Host, "{}-int8/model.onnx"),
    "host-int4": (Host, "{}-int4/model.onnx"),
    "ort-int4": (Ort, "{}-int4/model.onnx"),
    "ort-f32": (Ort, "{}.onnx"),
    "llama.cpp": (LlamaCpp, "{}.gguf"),
    "genai-int4": (GenAI, "{}-genai/model.onnx"),
}
"""The class of each runtime, and the file that it reads."""


def files_of(name: str, folder: Path, size: str) -> list[Path]:
    """Return the files that a runtime reads."""
    path = folder / RUNTIMES[name][1].format(size)
    return [path, *path.parent.glob(f"{path.name}.data")]


def _stream_rate() -> float:
    """Return bytes a second of the sum of 256 MB; the best of several runs."""
    numbers = np.ones(1 << 25, np.float64)
    best = 0.0
    for _ in range(12):
        begin = time.perf_counter()
        np.dot(numbers, numbers)
        best = max(best, numbers.nbytes / (time.perf_counter() - begin))
    return best


def serve(name: str, folder: Path, size: str, threads: int) -> None:
    """Answer the requests of ``bench.decoders``."""
    kind, path = RUNTIMES[name]
    runtime: Runtime | None = None
    random = np.random.default_rng(1)
    for line in sys.stdin:
        request = json.loads(line)
        begin = time.perf_counter()
        answer: dict[str, float] = {}
        if request["do"] == "load":
            runtime = kind(folder / path.format(size), threads)
            runtime.prompt(random.integers(3, 500, 16))
        elif request["do"] == "prompt" and runtime is not None:
            runtime.prompt(random.integers(3, 500, request["count"]))
        elif request["do"] == "steps" and runtime is not None:
            for _ in range(request["count"]):
                runtime.step()
        elif request["do"] == "stream":
            answer["rate"] = _stream_rate()
        elif request["do"] == "peak":
            answer["bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        answer["seconds"] = time.perf_counter() - begin
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
