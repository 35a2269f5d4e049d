"""A server under load: requests a second and latencies, smelt beside ONNX Runtime.

    python -m bench.server MODEL.onnx [--size B=1 --size S=128] [--clients 8] [--threads 2]
                           [--seconds 5] [--rounds 3]

Each runtime is a server of its own (``http.server`` with a thread for each connection), which has
one session for all clients. The clients are threads of another process that keep their connections
and send the same arrays. The servers take turns; the clients of one rest while the other's send.
A round's figures are requests a second, and the median and 99th percentile of the latency in ms.
The last line has the geometric means over the rounds, as ratios to ONNX Runtime.
"""

from __future__ import annotations

import argparse
import http.client
import io
import multiprocessing
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import geometric_mean, quantiles
from typing import Any

import numpy as np

RUNTIMES = ("ONNX Runtime", "smelt")
FIGURES = ("requests/s", "median ms", "p99 ms")


def _session(runtime: str, path: Path, threads: int) -> Any:
    """Return a session of ``runtime``, at full speed for further calls of shapes that it ran."""
    if runtime == "smelt":
        import smelt.onnxruntime as ort
    else:
        import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    if runtime == "smelt":
        options.add_session_config_entry("smelt.engine", "native")
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _packed(arrays: Mapping[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def serve(runtime: str, path: Path, threads: int, ready: Connection) -> None:
    """Serve the model for ever; ``ready`` gets the port."""
    session = _session(runtime, path, threads)
    names = [output.name for output in session.get_outputs()]

    class Handler(BaseHTTPRequestHandler):
        """Answers a request, whose body is an ``npz`` of the inputs, by one of the outputs."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with np.load(io.BytesIO(body)) as feed:
                results = session.run(None, dict(feed))
            answer = _packed(dict(zip(names, results, strict=True)))
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        """Lets all clients connect at once: a refused connection is tried again after a second."""

        daemon_threads = True
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), Handler)
    ready.send(server.server_address[1])
    server.serve_forever()


def load(port: int, body: bytes, clients: int, seconds: float) -> tuple[float, float, float]:
    """Return ``FIGURES`` of so many clients that send ``body`` for so many seconds."""
    end = time.perf_counter() + seconds
    latencies: list[list[float]] = [[] for _ in range(clients)]

    def client(taken: list[float]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while (begin := time.perf_counter()) < end:
            connection.request("POST", "/", body)
            response = connection.getresponse()
            response.read()
            assert response.status == 200
            taken.append(time.perf_counter() - begin)
        connection.close()

    begin = time.perf_counter()
    threads = [threading.Thread(target=client, args=(taken,)) for taken in latencies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = [1e3 * latency for taken in latencies for latency in taken]
    cuts = quantiles(every, n=100, method="inclusive")
    return len(every) / (time.perf_counter() - begin), cuts[49], cuts[98]


def measure(
    path: Path, sizes: Mapping[str, int], clients: int, threads: int, seconds: float, rounds: int
) -> dict[str, list[tuple[float, float, float]]]:
    """Return ``FIGURES`` of each runtime and round."""
    import smelt
    from smelt.runtime.inputs import random_inputs

    model = smelt.load(path)
    arrays = random_inputs(model, dict(sizes))
    feed = dict(zip((str(v.name) for v in model.graph.inputs), arrays, strict=True))
    body = _packed(feed)
    context = multiprocessing.get_context("spawn")
    ports, processes = {}, []
    for runtime in RUNTIMES:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=serve, args=(runtime, path, threads, sender), daemon=True)
        process.start()
        processes.append(process)
        ports[runtime] = receiver.recv()
        load(ports[runtime], body, clients, min(seconds, 2.0))  # the first call may compile
    figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in RUNTIMES}
    for _ in range(rounds):
        for runtime in RUNTIMES:
            figures[runtime].append(load(ports[runtime], body, clients, seconds))
    for process in processes:
        process.kill()
        process.join()
    return figures


def main() -> None:
    """Print a line for each runtime and round, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--size", action="append", default=[])
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sizes = {name: int(n) for name, _, n in (each.partition("=") for each in options.size)}
    figures = measure(
        *(options.model, sizes, options.clients, options.threads),
        *(options.seconds, options.rounds),
    )
    for runtime, rows in figures.items():
        for row in rows:
            shown = (f"{name} {value:.1f}" for name, value in zip(FIGURES, row, strict=True))
            print(f"{runtime}: {', '.join(shown)}")
    pairs = list(zip(figures["smelt"], figures["ONNX Runtime"], strict=True))
    for at, name in enumerate(FIGURES):
        ratio = geometric_mean(own[at] / other[at] for own, other in pairs)
        print(f"{name} over ONNX Runtime: {ratio:.2f}")


if __name__ == "__main__":
    main()
