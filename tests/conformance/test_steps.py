"""Cases are text, files or ModelProtos; a case may allow quantized outputs some steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.conformance import Case, conform
from smelt.errors import Mismatch
from smelt.ir import text
from smelt.runtime.runner import open_runner
from smelt.targets.base import Artifact, Limits, Plan, Target
from smelt.targets.registry import find_target

STEP = "s = Constant<value_float = 0.05>() z = Constant<value = int8 {3}>() "
BYTES = f"g (float[4] x) => (int8[4] y) {{ {STEP}y = QuantizeLinear(x, s, z) }}"
FLOATS = f"g (float[4] x) => (float[4] y) {{ {STEP}q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }}"
PLAIN = "g (float[4] x) => (float[4] y) { y = Exp(x) }"


def off_by(amount: float) -> Target:
    """A target whose results are ``amount`` larger than those of ONNX Runtime, until they saturate."""

    def emit(plan: Plan) -> Artifact:
        run = open_runner(plan.model)

        def load() -> Callable[..., list[np.ndarray]]:
            def shifted(*inputs: np.ndarray) -> list[np.ndarray]:
                return [(y + (y < 120) * amount).astype(y.dtype) for y in run(*inputs)]

            return shifted

        return Artifact("shifted", plan.model, {}, plan, {}, load)

    operators = frozenset(("", op) for op in ("QuantizeLinear", "DequantizeLinear", "Exp"))
    return Target(
        name="shifted", summary="wrong results", emit=emit, limits=Limits(operators=operators)
    )


@pytest.mark.parametrize(
    ("graph", "amount", "steps", "agrees"),
    [
        (BYTES, 1, 1, True),
        (BYTES, 2, 1, False),
        (BYTES, 1, 0, False),
        (FLOATS, 0.05, 1, True),
        (FLOATS, 0.1, 2, True),
        (FLOATS, 0.06, 1, False),
        (PLAIN, 0.05, 5, False),
    ],
)
def test_only_quantized_outputs_may_be_off_by_steps(
    graph: str, amount: float, steps: int, agrees: bool
) -> None:
    case = Case("rounds otherwise", graph, steps=steps)
    if agrees:
        assert conform(off_by(amount), case) == "agrees"
        return
    with pytest.raises(Mismatch) as error:
        conform(off_by(amount), case)
    assert error.value.code == "E705"


def test_a_case_is_a_file_or_a_model(tmp_path: Path) -> None:
    model = text.parse(
        "g (float16[2] x) => (float16[2] y) { c = Constant<value_float = 1.5>() h = Cast<to = 10>(c) y = Add(x, h) }"
    )
    smelt.save(model, tmp_path / "m.onnx")
    for graph in (tmp_path / "m.onnx", ir.to_proto(model)):
        assert conform(find_target("c"), Case("halves", graph)) == "agrees"
