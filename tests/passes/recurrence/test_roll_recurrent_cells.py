"""Cells that are written out step by step become one operator; similar graphs stay."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from rewrites import run_pass

from smelt.ir import provenance, text
from smelt.passes.recurrence.roll_recurrent_cells import roll_recurrent_cells
from smelt.runtime.runner import open_runner

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEP = {
    "LSTM": """
        a@ = Gemm<transB=1>(x@, w, b) r@ = Gemm<transB=1>(h~, u, v) s@ = Add(a@, r@)
        i@, f@, g@, o@ = Split<axis=1, num_outputs=4>(s@) i1@ = Sigmoid(i@) f1@ = Sigmoid(f@)
        g1@ = Tanh(g@) o1@ = Sigmoid(o@) k@ = Mul(f1@, c~) m@ = Mul(i1@, g1@) c@ = Add(k@, m@)
        t@ = Tanh(c@) h@ = Mul(o1@, t@)
    """,
    "GRU": """
        a@ = Gemm<transB=1>(x@, w, b) r@ = Gemm<transB=1>(h~, u, v)
        ar@, az@, an@ = Split<axis=1, num_outputs=3>(a@)
        rr@, rz@, rn@ = Split<axis=1, num_outputs=3>(r@)
        p@ = Add(ar@, rr@) p1@ = Sigmoid(p@) z@ = Add(az@, rz@) z1@ = Sigmoid(z@)
        q@ = Mul(p1@, rn@) n@ = Add(an@, q@) n1@ = Tanh(n@) d@ = Sub(h~, n1@) e@ = Mul(d@, z1@)
        h@ = Add(n1@, e@)
    """,
    "RNN": """
        a@ = Gemm<transB=1>(x@, w, b) r@ = Gemm<transB=1>(h~, u, v) s@ = Add(a@, r@) h@ = Tanh(s@)
    """,
}


def written_out(
    kind: str,
    *,
    order: tuple[int, ...] = (0, 1, 2, 3),
    stacked: bool = True,
    change: tuple[str, str] | None = None,
    more: str = "",
    outputs: str = "",
) -> ir.Model:
    """Return steps over ``x[:, t]`` for t in ``order``; ``change`` replaces a text in the third
    step."""
    lines, width = [], 3 * GATES[kind]
    for place, t in enumerate(order):
        step = STEP[kind].replace("@", str(place + 1)).replace("~", str(place))
        if place == 2 and change is not None:
            assert change[0] in step
            step = step.replace(*change)
        lines.append(f"j{place} = Constant<value_int={t}>()")
        lines.append(f"x{place + 1} = Gather<axis=1>(x, j{place}) {step}")
    steps = len(order)
    if stacked:
        names = [f"h{order.index(t) + 1}" for t in sorted(order)]
        puts = " ".join(f"e{name} = Unsqueeze({name}, one)" for name in names)
        end = f"one = Constant<value_ints=[1]>() {puts} "
        end += f"y = Concat<axis=1>({', '.join(f'e{name}' for name in names)})"
    else:
        end = f"y = Neg(h{steps})"
    shape = f"float[B,{steps},3]" if stacked else "float[B,3]"
    memory = ", float[B,3] c0" if kind == "LSTM" else ""
    constants = [("w", (width, 2)), ("u", (width, 3)), ("b", (width,)), ("v", (width,))]
    if change is not None:
        constants += [("w2", (width, 2))]
    constants += [("peep", (3,))] if "peep" in str(change) else []
    given = "".join(f", float[{','.join(map(str, dims))}] {name}" for name, dims in constants)
    model = text.parse(
        f"g (float[B,4,2] x, float[B,3] h0{memory}{given}) => ({shape} y{outputs}) "
        f"{{ {' '.join(lines)} {end} {more} }}",
        18,
    )
    numbers = np.random.default_rng(0)
    for value in list(model.graph.inputs):
        if value.name in dict(constants):
            model.graph.inputs.remove(value)
            array = numbers.normal(size=dict(constants)[value.name]).astype(np.float32)
            value.const_value = ir.tensor(array, name=value.name)
            model.graph.register_initializer(value)
    return model


def rolled(model: ir.Model) -> list[str]:
    """Return the operators after the pass; checks equal results and names the recurrent
    operator."""
    before = open_runner(model.clone())
    numbers = np.random.default_rng(1)
    feeds = [
        numbers.normal(size=[2 if not isinstance(d, int) else d for d in value.shape]).astype(
            np.float32
        )
        for value in model.graph.inputs
    ]
    run_pass(roll_recurrent_cells, model)
    for one, other in zip(before(*feeds), open_runner(model)(*feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-6)
    return [node.op_type for node in model.graph]


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("stacked", [True, False], ids=["all states", "the last state"])
@pytest.mark.parametrize(
    "order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 2, 3)], ids=["forward", "reverse", "a part"]
)
def test_steps_become_one_operator(kind: str, stacked: bool, order: tuple[int, ...]) -> None:
    model = written_out(kind, order=order, stacked=stacked)
    operators = rolled(model)
    assert operators.count(kind) == 1
    assert "Sigmoid" not in operators
    assert "Gemm" not in operators
    (node,) = (node for node in model.graph if node.op_type == kind)
    reverse = node.attributes.get_string("direction", "forward") == "reverse"
    assert reverse == (order[0] > order[1])


@pytest.mark.parametrize("total", [1.0, 2.0])
def test_a_gru_may_blend_its_states_by_one_minus_the_gate(
    total: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = STEP["GRU"].partition("d@ =")[0] + (
        f"k@ = Constant<value_float={total}>() d@ = Sub(k@, z1@) e@ = Mul(d@, n1@) "
        "i@ = Mul(z1@, h~) h@ = Add(e@, i@)"
    )
    monkeypatch.setitem(STEP, "GRU", step)
    assert rolled(written_out("GRU")).count("GRU") == (total == 1)


@pytest.mark.parametrize("kind", GATES)
def test_the_source_of_many_results_is_collected_once(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each state that is read makes a Gather; all steps are the source of each."""
    visited: list[ir.Node] = []
    origin_of = provenance.origin_of
    monkeypatch.setattr(
        provenance, "origin_of", lambda node: (visited.append(node), origin_of(node))[1]
    )
    counts = []
    for steps in (3, 6, 9):
        order = tuple(range(steps))
        outputs = "".join(f", float[B,3] h{step}" for step in order[1:])
        model = written_out(kind, order=order, outputs=outputs)
        model.graph.inputs[0].shape = ir.Shape(["B", steps, 2])
        visited.clear()
        run_pass(roll_recurrent_cells, model)
        assert [node.op_type for node in model.graph].count("Gather") >= steps - 1
        counts.append(len(visited))
    assert counts[2] - counts[1] <= 1.2 * (counts[1] - counts[0])


def test_memory_that_begins_with_one_zero_is_left_out() -> None:
    """JAX writes ``zeros`` of a symbolic size in this way."""
    model = written_out("LSTM")
    (memory,) = (value for value in model.graph.inputs if value.name == "c0")
    model.graph.inputs.remove(memory)
    memory.const_value, memory.shape = ir.tensor(np.float32(0), name="c0"), ir.Shape([])
    model.graph.register_initializer(memory)
    assert "LSTM" in rolled(model)
    (node,) = (node for node in model.graph if node.op_type == "LSTM")
    assert [value is None for value in node.inputs[4:]] in ([True, False, True], [True, False])


def test_two_steps_stay() -> None:
    assert "LSTM" not in rolled(written_out("LSTM", order=(0, 1)))


STAY = {
    "a gate that is read": {"more": "z = Neg(o12)", "outputs": ", float[B,3] z"},
    "memory that is read between": {"more": "z = Neg(c2)", "outputs": ", float[B,3] z"},
    "a step left out": {"order": (0, 1, 3)},
    "a step twice": {"order": (0, 1, 1)},
    "other weights": {"change": ("(x3, w, b)", "(x3, w2, b)")},
    "another activation": {"change": ("g13 = Tanh(g3)", "g13 = Sigmoid(g3)")},
    "another gate": {"change": ("k3 = Mul(f13, c2)", "k3 = Mul(i13, c2)")},
    "another sequence": {"change": (
        "a3 = Gemm<transB=1>(x3,", "n = Neg(x) n3 = Gather<axis=1>(n, j2) a3 = Gemm<transB=1>(n3,")},
    "a scale": {"change": ("a3 = Gemm<transB=1>", "a3 = Gemm<transB=1, alpha=2.0>")},
    "an older state": {"change": ("(h2, u, v)", "(h1, u, v)")},
    "older memory": {"change": ("Mul(f13, c2)", "Mul(f13, c1)")},
    "peepholes": {"change": ("f13 = Sigmoid(f3)",
                             "p3 = Mul(c2, peep) l3 = Add(f3, p3) f13 = Sigmoid(l3)")},
}  # fmt: skip


@pytest.mark.parametrize("case", STAY)
def test_steps_that_form_no_recurrent_layer_stay(case: str) -> None:
    options = {"order": (0, 1, 2), **STAY[case]}
    operators = rolled(written_out("LSTM", stacked=False, **options))
    assert "LSTM" not in operators


def test_doubles_stay() -> None:
    """ONNX Runtime supports some of these operators in float32 only."""
    model = written_out("RNN")
    for value in (*model.graph.inputs, *model.graph.initializers.values()):
        if value.const_value is not None:
            value.const_value = ir.tensor(value.const_value.numpy().astype(np.float64))
        value.type = ir.TensorType(ir.DataType.DOUBLE)
    for node in model.graph:
        for value in node.outputs:
            if value.dtype == ir.DataType.FLOAT:
                value.type = ir.TensorType(ir.DataType.DOUBLE)
    run_pass(roll_recurrent_cells, model)
    assert "RNN" not in [node.op_type for node in model.graph]
