"""A call takes the planned memory, its results, and at most 1 MiB more."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
from sampling import sampled

from smelt.targets.base import Artifact
from smelt.targets.host.kernels.elementwise import BLOCK, in_blocks

ROWS, COLUMNS = 256, 1536
MIB = 1 << 20
X = "float[256,1536] x"
UNARY = (
    *("Exp", "Tanh", "Sigmoid", "Erf", "Relu", "Softplus", "Softsign", "Selu", "Elu", "LeakyRelu"),
    *("HardSigmoid", "HardSwish", "Mish", "Gelu", "Celu", "ThresholdedRelu", "Softmax", "Round"),
)
GRAPHS = {
    **{op: f"g ({X}) => (float[256,1536] y) {{ y = {op}(x) }}" for op in UNARY},
    "PRelu": f"g ({X}, float[1536] w) => (float[256,1536] y) {{ y = PRelu(x, w) }}",
    "Where": f"g ({X}, bool[256,1] w) => (float[256,1536] y) {{ y = Where(w, x, x) }}",
    "Add": f"g ({X}, float[256,1] w) => (float[256,1536] y) {{ y = Add(x, w) }}",
    "MatMul": f"g ({X}, float[1536,64] w) => (float[256,64] y) {{ y = MatMul(x, w) }}",
    "a chain": f"""g ({X}, float[1536,1536] w) => (float[256,1536] y) {{
        a = MatMul(x, w) b = Gelu(a) c = Add(b, x) y = Mish(c) }}""",
    "ReduceSum": f"g ({X}) => (float[1,1] y) {{ y = ReduceSum<keepdims=1>(x) }}",
    "Transpose": f"g ({X}) => (float[1536,256] y) {{ y = Transpose(x) }}",
}


@pytest.mark.parametrize("engine", ["numpy"], indirect=True)
@pytest.mark.parametrize("graph", sampled(GRAPHS.values(), 5), ids=GRAPHS)
def test_a_call_allocates_its_results_and_little_more(compile_host, graph: str) -> None:
    """The arena exists before the call, because it belongs to the artifact."""
    artifact = compile_host(graph)
    rng = np.random.default_rng(0)
    inputs = [
        rng.random(value.shape.numpy()).astype(value.dtype.numpy())
        for value in artifact.model.graph.inputs
    ]
    results = artifact(*inputs)
    returned = sum(array.nbytes for array in results)
    del results
    gc.collect()
    # Whatever other threads allocate meanwhile is counted, too, so one of some runs has to do.
    peaks = (peak_of(artifact, inputs) for _ in range(4))
    assert any(peak <= returned + MIB for peak in peaks)


def peak_of(artifact: Artifact, inputs: list[np.ndarray]) -> int:
    """Return the most bytes that a call allocates at once."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        artifact(*inputs)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before


def test_blocks_cover_every_element_once() -> None:
    count = BLOCK + 7
    operands = {
        "flat": [(count,), (count,)],
        "rows": [(3, count), (3, 1), (3, count)],
        "a vector beside rows": [(5, count), (count,), (5, count)],
        "a number": [(2, 1, count), (), (2, 1, count)],
        "a long dim within": [(1, 2, count), (2, 1), (1, 2, count)],
    }
    for shapes in operands.values():
        out = np.zeros(shapes[-1], np.int32)
        given = [
            np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape) + number
            for number, shape in enumerate(shapes[:-1])
        ]
        sizes: list[int] = []

        def add(*arrays: np.ndarray) -> None:
            sizes.append(arrays[-1].size)  # noqa: B023
            arrays[-1][...] += sum(arrays[:-1])

        in_blocks(add, [*given, out])
        np.testing.assert_array_equal(out, sum(given) + np.zeros_like(out))
        assert sum(sizes) == out.size
        assert max(sizes) <= BLOCK


def test_a_transposed_operand_is_cut_as_the_result() -> None:
    x = np.arange(2 * BLOCK, dtype=np.float32).reshape(256, -1).T
    out = np.empty(x.shape, np.float32)
    in_blocks(lambda a, to: np.copyto(to, a + 1), [x, out])
    np.testing.assert_array_equal(out, x + 1)
