"""Unsigned integers of 32 and 64 bits are computed with int32 digits of 16 bits, bit for bit."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from rewrites import check_unchanged, run_pass

import smelt
from smelt.ir import scope, text
from smelt.passes.precision.split_unsigned import split_unsigned
from smelt.runtime.runner import open_runner

UNSIGNED = (ir.DataType.UINT32, ir.DataType.UINT64)
PIPELINE = "fixpoint(split-unsigned,dead-code-elimination){max=9}"
EDGES = [0, 1, 255, 65535, 65536, 65537, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Random uint32, half of them near a power of 65536."""
    rng = np.random.default_rng(seed)
    random, edges = rng.integers(0, 2**32, shape), rng.choice(EDGES, shape)
    return np.where(rng.random(shape) < 0.5, random, edges).astype(np.uint32)


INPUTS = {
    "x": ("uint32[3,4]", numbers(3, 4)),
    "z": ("uint32[4]", numbers(4, seed=1)),
    "n": ("uint32[4]", np.array([0, 9, 16, 31], np.uint32)),
    "i": ("int32[5]", np.array([-1, -65536, 7, -(2**31), 2**31 - 1], np.int32)),
    "l": ("int64[6]", np.array([-1, -65536, 2**40 + 7, 5, -(2**63), 2**63 - 1])),
    "f": ("float[6]", np.array([0, 0.9, 65535.9, 65536, 4e9, -0.5], np.float32)),
    "h": ("float16[2]", np.array([3.7, 65504], np.float16)),
    "b": ("uint8[2]", np.array([0, 255], np.uint8)),
    "c": ("bool[3,4]", numbers(3, 4, seed=2) % 2 == 0),
}
CONSTANTS = (
    "<uint32 zero = {0}, uint32 seven = {7}, uint32 thousand = {1000}, uint32 bytes = {16711935},"
    " uint32 low = {511}, uint32 ones = {4294967295}, uint32 wide = {65537}, uint32 half = {1073741824},"
    " uint32 huge = {3000000000}, uint32 nine = {9}, uint32 sixteen = {16}, uint32 last = {31},"
    " uint32 up = {13}, uint32 down = {19}, uint64 word = {32}, uint64 long = {50},"
    " int64[1] k = {2}, int64[4] pads = {1, 0, 0, 2}, int64[2] axes = {1, 0}, int64[1] first = {0},"
    " int64[2] shape = {2, 6}, int64[2,1] rows = {0, 2}, uint32[2,4] updates = {1, 2, 3, 4, 5, 6, 7, 4294967295}>"
)
SHIFTS = [
    f'y@ = BitShift <direction = "{direction}"> (x, {by})'
    for by in ("zero", "nine", "sixteen", "last", "n")
    for direction in ("LEFT", "RIGHT")
]
LONG = "p@ = Cast <to = 13> (x) q@ = Cast <to = 13> (z)"
SAME = {
    "sums": [f"y@ = {op}(x, z)" for op in ("Add", "Sub", "Mul")],
    "the least and the greatest": [f"y@ = {op}(x, z)" for op in ("Max", "Min")],
    "bits": [f"y@ = Bitwise{op}(x, z)" for op in ("And", "Or", "Xor")],
    "bits of constants": [
        f"y@ = Bitwise{op}({operands})"
        for op in ("And", "Or", "Xor")
        for operands in ("x, zero", "low, x", "x, bytes", "x, ones")
    ],
    "all bits inverted": ["y@ = BitwiseNot(x)"],
    "shifts": SHIFTS,
    "a rotation": [
        'p@ = BitShift <direction = "LEFT"> (x, up) q@ = BitShift <direction = "RIGHT"> (x, down)'
        " y@ = BitwiseOr(p@, q@)"
    ],
    "quotients": [
        f"y@ = {op}(x, {divisor})"
        for op, divisors in (("Div", "seven wide half z"), ("Mod", "thousand wide huge"))
        for divisor in divisors.split()
    ],
    "a computed divisor with few bits": [
        "p@ = BitwiseAnd(z, low) q@ = Max(p@, seven) y@ = Mod(x, q@)"
    ],
    "choices": ["y@ = Where(c, x, z)"],
    "moves": [
        "y@ = Transpose(x)",
        "y@ = Reshape(x, shape)",
        "y@ = Concat <axis = 0> (x, x)",
        "y@ = Pad(x, pads, ones)",
        "y@ = Gather(x, rows)",
        "y@ = ScatterND(x, rows, updates)",
        "y@, y_@ = Split <axis = 1, num_outputs = 2> (x)",
    ],
    "the high half of a product": [
        f'{LONG} r@ = Mul(p@, q@) s@ = BitShift <direction = "RIGHT"> (r@, word) y@ = Cast <to = 12> (s@)'
    ],
    "numbers of 64 bits": [
        f'{LONG} r@ = Mul(p@, q@) s@ = Add(r@, p@) u@ = Sub(s@, q@) t@ = BitShift <direction = "RIGHT"> (u@, long)'
        " y@ = Cast <to = 12> (t@)",
        f"{LONG} r@ = Mul(p@, q@) s@ = Mod(r@, word) y@ = Cast <to = 12> (s@)",
    ],
    "numbers of other types": [f"y@ = Cast <to = 12> ({name})" for name in "ilfhb"]
    + ["y@ = Cast <to = 12> (c)", "p@ = Cast <to = 13> (i) y@ = Cast <to = 12> (p@)"],
}
OTHER = {
    "comparisons": [
        ("bool", f"y@ = {op}(x, z)")
        for op in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")
    ],
    "casts": [
        (kind, f"y@ = Cast <to = {to}> (x)")
        for kind, to in (
            *(("float", 1), ("uint8", 2), ("int8", 3), ("uint16", 4), ("int16", 5)),
            *(("bool", 9), ("float16", 10), ("double", 11)),
        )
    ],
    "small numbers in other types": [
        (kind, f'p@ = BitShift <direction = "RIGHT"> (x, nine) y@ = Cast <to = {to}> (p@)')
        for kind, to in [("float", 1), ("int32", 6), ("int64", 7)]
    ],
    "the order of numbers": [
        ("int64", "p@ = Cast <to = 7> (x) v@, y@ = TopK(p@, k)"),
        ("int64", "p@ = Cast <to = 7> (x) y@ = ArgMin(p@)"),
    ],
    "sizes": [("int64", "y@ = Shape(x)")],
}


def merged(rows: list[tuple[str, str]]) -> str:
    """One graph of all rows, so that one session runs them; ``@`` becomes the number of the row."""
    inputs = ", ".join(f"{kind} {name}" for name, (kind, _) in INPUTS.items())
    outputs = ", ".join(f"{kind} y{number}" for number, (kind, _) in enumerate(rows))
    nodes = " ".join(row.replace("@", str(number)) for number, (_, row) in enumerate(rows))
    return f"g ({inputs}) => ({outputs}) {CONSTANTS} {{ {nodes} }}"


def unsigned_operators(model: ir.Model) -> set[str]:
    """The operators that read or return unsigned numbers, without Casts from and to int32."""
    found = set()
    for node in scope.nodes(model):
        types = {value.dtype for value in (*node.inputs, *node.outputs) if value is not None}
        is_port = node.op_type == "Cast" and types == {ir.DataType.UINT32, ir.DataType.INT32}
        if types.intersection(UNSIGNED) and not is_port:
            found.add(node.op_type)
    return found


def check_same(graph: str) -> None:
    """The split model gives the same bits, and computes no unsigned numbers."""
    source = text.parse(graph, 21)
    split = smelt.optimize(source, pipeline=PIPELINE)
    assert unsigned_operators(split) == set()
    given = [INPUTS[value.name or ""][1] for value in source.graph.inputs]
    results = zip(open_runner(split)(*given), open_runner(source)(*given), strict=True)
    for output, (found, expected) in zip(source.graph.outputs, results, strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, err_msg=output.name)


ROWS = {**{name: [("uint32", row) for row in rows] for name, rows in SAME.items()}, **OTHER}


@pytest.mark.parametrize("name", ROWS)
def test_the_same_bits(name: str) -> None:
    check_same(merged(ROWS[name]))


CONTROL = {
    "states and results of a loop": (
        "int64 n = {3}, bool t = {1}",
        "y, r = Loop(n, t, x) <body = b (int64 j, bool d, uint32[3,4] s) => (bool e, uint32[3,4] o, uint32[3,4] q)"
        " { e = Identity(d) o = Mul(s, z) q = Add(o, s) }>",
    ),
    "a state that the body returns unchanged": (
        "int64 n = {2}, bool t = {1}",
        "y, r = Loop(n, t, x) <body = b (int64 j, bool d, uint32[3,4] s) => (bool e, uint32[3,4] s, uint32[3,4] q)"
        " { e = Identity(d) q = BitwiseXor(z, s) }>",
    ),
    "scanned rows": (
        "uint32 unused = {0}",
        "y, r = Scan <num_scan_inputs = 1, body = b (uint32[4] s, uint32[4] v) => (uint32[4] o, uint32[4] q)"
        " { o = Add(s, v) q = BitwiseXor(o, z) }> (z, x)",
    ),
    "branches": (
        "bool t = {1}",
        "d = Identity(t) y = If(d) <then_branch = a () => (uint32[3,4] p) { p = Add(x, z) },"
        " else_branch = e () => (uint32[3,4] q) { q = Identity(x) }> r = BitwiseNot(y)",
    ),
}


@pytest.mark.parametrize("name", CONTROL)
def test_subgraphs_hold_the_bits_in_int32(name: str) -> None:
    constants, nodes = CONTROL[name]
    outputs = (
        "uint32[A,B] y, uint32[C,D] r" if "Loop" not in nodes else "uint32[A,B] y, uint32[N,A,B] r"
    )
    outputs = outputs.replace("[A,B] y", "[4] y") if "Scan" in nodes else outputs
    check_same(f"g (uint32[3,4] x, uint32[4] z) => ({outputs}) <{constants}> {{ {nodes} }}")


def test_random_numbers_are_computed_without_a_loop() -> None:
    graph = (
        "g (uint32[3,4] x, uint32[4] z) => (uint32[3,4] a, uint32[3,4] b) <uint32 k = {7}>"
        " { a, b = smelt.Threefry2x32(k, k, x, z) }"
    )
    check_same(graph)
    split = smelt.optimize(text.parse(graph, 21), pipeline=PIPELINE)
    assert not {"Loop", "BitwiseOr", "Threefry2x32"} & {node.op_type for node in split.graph}


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, nodes = ["x", "z", "seven", "ones", "bytes"], []
    for number in range(12):
        operator = rng.choice(["Add", "Sub", "Mul", "BitwiseXor", "BitwiseOr", "BitwiseAnd", "Max"])
        left, right = rng.choice(values, 2)
        row = f"v{number} = {operator}({left}, {right})"
        if number % 3 == 2:
            by, direction = rng.choice(["nine", "up", "down"]), rng.choice(["LEFT", "RIGHT"])
            row = f'v{number} = BitShift <direction = "{direction}"> ({left}, {by})'
        nodes.append(row)
        values.append(f"v{number}")
    total = " ".join(f"t{i + 1} = Add(t{i}, v{i})" for i in range(12))
    check_same(
        f"g (uint32[3,4] x, uint32[4] z) => (uint32[A,B] t12) {CONSTANTS}"
        f" {{ t0 = Identity(x) {' '.join(nodes)} {total} }}"
    )


KEPT = {
    "integers with a sign": "g (int32[3] x, int64[3] z) => (int32[3] y) { y = Add(x, x) }",
    "bytes": "g (uint8[3] x) => (uint8[3] y) { y = BitwiseNot(x) }",
    "an input that is cast": "g (uint32[3] x) => (int32[3] y) { y = Cast <to = 6> (x) }",
    "an output that was cast": "g (int32[3] x) => (uint32[3] y) { y = Cast <to = 12> (x) }",
    "an operator without a row": "g (uint32[3] x) => (uint32[1] y) { y = ReduceSum(x) }",
    "an input of 64 bits": "g (uint64[3] x) => (uint64[3] y) { y = Add(x, x) }",
    "an int64 beyond int32": "g (uint32[3] x) => (int64[3] y) { y = Cast <to = 7> (x) }",
    "a scatter that adds": "g (uint32[3] x, int64[1,1] i, uint32[1] u) => (uint32[3] y)"
    ' { y = ScatterND <reduction = "add"> (x, i, u) }',
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept(name: str) -> None:
    check_unchanged(split_unsigned, KEPT[name], opset=21)


def test_a_node_without_a_row_reads_unsigned_numbers_as_before() -> None:
    graph = (
        "g (uint32[3,4] x, uint32[4] z) => (uint32[1,1] y, uint32[3,4] p)"
        " { s = Add(x, z) y = ReduceSum(s) p = Mul(s, s) }"
    )
    model = text.parse(graph, 21)
    stats = run_pass(split_unsigned, model)
    assert unsigned_operators(model) == {"Add", "ReduceSum"}
    assert ("split_unsigned", "ReduceSum has no row") in stats.missed
