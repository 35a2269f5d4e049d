"""``loop_text(seed)``: ONNX text of a random model around loops whose states change their sizes."""

from __future__ import annotations

from random_graphs.sized_moves import BRANCH, FLAT, compared, cut
from random_graphs.sized_text import (
    CONSTANTS,
    EDGES,
    OPSET,
    Move,
    Writer,
    draw_moves,
    typed,
)

ROWS = ["float[N,3] x", "float[2,3] x", "float[1,1] x", "float[N,M] x", "float[3,N] x"]


def _branches(w: Writer) -> None:
    """Two results that may differ in sizes, by a size or a counter."""
    if not w.scope.flags or w.rng.random() < 0.5:
        compared(w)
    flag = w.rng.choice(w.scope.flags[-2:])
    texts = []
    for branch in ("then_branch", "else_branch"):
        with w.inner([], [], []) as scope:
            draw_moves(w, BRANCH, w.rng.randint(1, 3))
            result, name = w.do(f"Identity({w.any_float()})"), w.name("g")
        texts.append(f"{branch} = {name} () => ({typed(w, result)}) {{ {' '.join(scope.lines)} }}")
    w.float(f"If({flag})<{', '.join(texts)}>")


def _rows(w: Writer) -> None:
    """A Scan over the rows or columns of a matrix, with a state and what each row gives."""
    x, axis = w.do(f"Tanh({w.any_float()})"), w.rng.choice([0, 1])
    state, row, result = w.name("s"), w.name("x"), w.name("y")
    start = w.do(f"Squeeze({w.first(x, axis)}, v{axis})")
    with w.inner([], [], []) as scope:
        size = w.do(f"Cast<to=1>({w.rng.choice([w.do(f'Size({row})'), w.size()])})")
        after = w.do(f"{w.rng.choice(['Max', 'Min', 'Sub'])}({state}, {row})")
        w.do(f"Tanh({after})")
        each, out = w.do(f"Mul({row}, {size})"), w.name("o")
        scope.lines.append(f"{out} = Identity({each})")
        ended = w.do(f"Tanh({after})")
    body = (
        f"{w.name('g')} (float[] {state}, float[] {row}) => "
        f"(float[{w.name('D')}] {ended}, float[{w.name('D')}] {out}) "
        f"{{ {' '.join(scope.lines)} }}"
    )
    last = w.name("e")
    attributes = f"body = {body}, num_scan_inputs = 1, scan_input_axes = [{axis}]"
    w.scope.lines.append(f"{last}, {result} = Scan({start}, {x})<{attributes}>")
    w.scope.floats += [w.do(f"Unsqueeze({last}, v0)"), result]


def _loop(w: Writer) -> None:
    """States of every kind, what each round gives, and a condition."""
    deep = len(w.scopes) > 1
    starts = [w.any_float() for _ in range(w.rng.randint(1, 1 if deep else 3))]
    counts = [w.any_number()] if w.rng.random() < 0.6 else []
    states, numbers = [w.name("s") for _ in starts], [w.name("n") for _ in counts]
    turn, going = w.name("i"), w.name("c")
    with w.inner(states, [turn, *numbers], [going]) as scope:
        scope.floats += states  # likely to be read, as they are what may change
        draw_moves(w, BODY if not deep else [*FLAT, _branches], w.rng.randint(2, 6))
        kept = w.rng.random() < 0.15
        after = [
            w.do(f"Identity({w.rng.choice(w.scopes[-2].floats)})")  # replaced by what is captured
            if w.rng.random() < 0.08
            else cut(w, state if kept else w.any_float())
            for state in states
        ]
        counted = [w.do(f"Mod({w.do(f'Add({n}, {w.size()})')}, k7)") for n in numbers]
        given = []
        if w.rng.random() < 0.5:
            given.append((w.do(f"Cast<to=1>({w.size()})"), "float"))
        if w.rng.random() < 0.2:
            given.append((w.do(f"Identity({w.any_number()})"), "int64"))
        on = w.do(f"And({going}, {_condition(w, turn)})")
    before = [typed(w, state) for state in states] + [f"int64 {n}" for n in numbers]
    ends = [typed(w, each) for each in after] + [f"int64 {n}" for n in counted]
    ends += [f"{kind} {name}" for name, kind in given]
    body = (
        f"{w.name('g')} (int64 {turn}, bool {going}{''.join(f', {b}' for b in before)}) "
        f"=> (bool {on}, {', '.join(ends)}) {{ {' '.join(scope.lines)} }}"
    )
    results = [w.name("l") for _ in (*after, *counted, *given)]
    trips = w.rng.choice(["k2", "k3", "k1", "k0"] if deep else ["k2", "k3", "k4", "k5", "k1", "k0"])
    if w.rng.random() < 0.3:
        trips = w.do(f"Squeeze({w.small(w.size())})")
    flag = w.rng.choice(["t", "", *w.scope.flags])
    called = ", ".join([trips, flag, *starts, *counts])
    w.scope.lines.append(f"{', '.join(results)} = Loop({called})<body = {body}>")
    w.scope.floats += results[: len(after)]
    w.scope.numbers += results[len(after) : len(after) + len(counted)]
    for result, (_, kind) in zip(results[len(after) + len(counted) :], given, strict=True):
        row = result if kind == "float" else w.do(f"Cast<to=1>({result})")
        if not deep:
            w.outputs.append(row)


def _condition(w: Writer, turn: str) -> str:
    kind = w.rng.random()
    if kind < 0.3:
        return "t"
    if kind < 0.5:
        return w.do(f"Less({turn}, {w.rng.choice(EDGES[1:])})")
    compared(w)
    return w.scope.flags[-1]


def _gathered(w: Writer) -> None:
    """A loop that puts matrices of other sizes each round into a sequence."""
    start, sequence = w.any_float(), w.do("SequenceEmpty<dtype=1>()")
    turn, going, state, kept = w.name("i"), w.name("c"), w.name("s"), w.name("q")
    with w.inner([state], [turn], [going]) as scope:
        draw_moves(w, [*FLAT, _branches], w.rng.randint(1, 4))
        after = cut(w, w.any_float())
        one = w.do(f"ReduceSum({w.do(f'Tanh({after})')}, v1)")
        more = w.do(f"SequenceInsert({kept}, {one})")
        on = w.do(f"Identity({going})")
    body = (
        f"{w.name('g')} (int64 {turn}, bool {going}, float[] {state}, seq(float[]) {kept}) => "
        f"(bool {on}, float[] {after}, seq(float[]) {more}) {{ {' '.join(scope.lines)} }}"
    )
    last, every = w.name("l"), w.name("q")
    trips = w.rng.choice(["k1", "k2", "k3"])
    w.scope.lines.append(f"{last}, {every} = Loop({trips}, t, {start}, {sequence})<body = {body}>")
    w.scope.floats += [last, w.do(f"ConcatFromSequence<axis=0>({every})")]
    w.number(f"SequenceLength({every})")


def _function(w: Writer) -> None:
    """A function with a loop in it and an attribute, called twice, on matrices of other sizes.

    It shares no name with the model: ONNX Runtime takes a name in a loop of a function for the
    value of the model that has it.
    """
    name = w.name("F")
    inside = Writer(w.rng.getrandbits(32), f"{name}_")
    inside.scopes[0].floats.append("given")
    _loop(inside)
    last = inside.scopes[0].floats[-1]
    lines = [f"{c} = Constant<value = {_tensor(text)}>()" for c, text in CONSTANTS.items()]
    lines += [*inside.scopes[0].lines, f"given_back = Concat<axis: int = @axis>({last}, {last})"]
    w.functions.append(
        f'<domain: "drawn", opset_import: ["" : {OPSET}]>\n'
        f"{name} <axis>(given) => (given_back) {{\n  " + "\n  ".join(lines) + "\n}"
    )
    for axis in (0, 1):
        w.float(f"drawn.{name}<axis={axis}>({w.any_float()})")


def _tensor(declared: str) -> str:
    """``int64[1] v1 = {1}`` without its name."""
    kind, _, rest = declared.partition(" ")
    return f"{kind} {rest.partition('= ')[2]}"


BODY: list[Move] = [*FLAT, _branches, _branches, _rows, _loop, _loop]
MOVES: list[Move] = [*FLAT[:8], compared, _rows, _branches, _function, _loop]


def loop_text(seed: int) -> str:
    """A model with one loop or more; equal seeds give equal texts."""
    w = Writer(seed)
    x, y = w.rng.choice(ROWS), w.rng.choice(ROWS).replace(" x", " y")
    w.scope.floats += ["x", "y", "weight"]
    w.scope.numbers.append("n")
    draw_moves(w, MOVES, w.rng.randint(0, 2))
    w.rng.choice([*[_loop] * 6, _gathered, _function])(w)
    draw_moves(w, MOVES, w.rng.randint(0, 2))
    number = w.do(f"Cast<to=1>({w.any_number()})")
    w.outputs += [*w.rng.sample(w.scope.floats[-3:], 2), number]
    results = [w.do(f"Identity({each})") for each in dict.fromkeys(w.outputs)]
    imports = f'"" : {OPSET}' + (', "drawn" : 1' if w.functions else "")
    return "\n".join(
        [
            f"<ir_version: 10, opset_import: [{imports}]>",
            f"g ({x}, {y}, int64 n) => ({', '.join(f'float[] {each}' for each in results)})",
            f"<{', '.join(CONSTANTS.values())}>",
            "{",
            *(f"  {line}" for line in w.scope.lines),
            "}",
            *w.functions,
        ]
    )
