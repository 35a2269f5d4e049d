"""Moves without graphs inside: they change sizes, or ask for them."""

from __future__ import annotations

from random_graphs.sized_text import EDGES, LIMIT, Move, Writer


def _elementwise(w: Writer) -> None:
    x = w.any_float()
    w.float(
        w.rng.choice(
            [
                f"Tanh({x})",
                f"Neg({x})",
                f"Mul({x}, half)",
                f"Relu({x})",
                f"Sub({x}, {w.do(f'ReduceMean({x}, v{w.rng.choice([0, 1])})')})",
                f"Identity({x})",
                f"Cast<to=1>({w.do(f'Less({x}, half)')})",
            ]
        )
    )


def _scaled(w: Writer) -> None:
    """By a number that a size tells."""
    by = w.do(f"Cast<to=1>({w.do(f'Mod({w.size()}, k7)')})")
    w.float(f"Mul({w.do(f'Tanh({w.any_float()})')}, {by})")


def _arithmetic(w: Writer) -> None:
    op = w.rng.choice(["Add", "Sub", "Mul", "Max", "Min"])
    total = w.do(f"{op}({w.any_number()}, {w.any_number()})")
    w.number(f"Mod({total}, {w.rng.choice(EDGES[3:])})")


def _longer(w: Writer) -> None:
    x, axis = w.any_float(), w.rng.choice([0, 1])
    parts = [x, w.rng.choice([w.first(x, axis), x, w.do(f"Neg({w.first(x, axis)})")])]
    w.rng.shuffle(parts)
    w.float(f"Concat<axis={axis}>({', '.join(parts)})")


def _shorter(w: Writer) -> None:
    """One row or column less, down to one; or every second one."""
    x, axis = w.any_float(), w.rng.choice([0, 1])
    if w.rng.random() < 0.4:
        w.float(f"Slice({x}, v0, v{LIMIT}, v{axis}, v2)")
        return
    size = w.do(f"Shape<start={axis}, end={axis + 1}>({x})")
    start = w.do(f"Min({w.do(f'Sub({size}, v1)')}, v1)")
    w.float(f"Slice({x}, {start}, {size}, v{axis})")


def _turned(w: Writer) -> None:
    x = w.any_float()
    if w.rng.random() < 0.6:
        w.float(f"Transpose<perm=[1,0]>({x})")
    else:
        turned = w.do(f"Gather({w.do(f'Shape({x})')}, v10)")
        w.float(f"Reshape({x}, {turned})")


def _reshaped(w: Writer) -> None:
    x = w.any_float()
    sizes = w.rng.choice([("vm1", "v1"), ("v1", "vm1")])
    w.float(f"Reshape({x}, {w.do(f'Concat<axis=0>({sizes[0]}, {sizes[1]})')})")


def _expanded(w: Writer) -> None:
    one = w.do(f"ReduceSum({w.any_float()})")
    w.float(f"Expand({w.do(f'Tanh({one})')}, {w.shape()})")


def _filled(w: Writer) -> None:
    w.float(f"ConstantOfShape<value = float[1] {{0.75}}>({w.shape()})")


def _counted(w: Writer) -> None:
    """0, 1, 2... as many as a size."""
    up_to = w.do(f"Squeeze({w.small(w.size())})")
    row = w.do(f"Cast<to=1>({w.do(f'Range(k0, {up_to}, k1)')})")
    w.float(f"Unsqueeze({row}, v{w.rng.choice([0, 1])})")


def _repeated(w: Writer) -> None:
    w.float(f"Tile({w.any_float()}, {w.shape()})")


def _padded(w: Writer) -> None:
    pads = [w.small(w.size()), "v0", "v0", "v1"]
    w.rng.shuffle(pads)
    given = w.do(f"Concat<axis=0>({', '.join(pads)})")
    w.float(f"Pad({w.any_float()}, {given})")


def _picked(w: Writer) -> None:
    """The row or column that a size tells: the last one."""
    x, axis = w.any_float(), w.rng.choice([0, 1])
    size = w.do(f"Shape<start={axis}, end={axis + 1}>({x})")
    w.float(f"Gather<axis={axis}>({x}, {w.do(f'Sub({size}, v1)')})")


def _summed(w: Writer) -> None:
    x = w.any_float()
    w.float(f"Tanh({w.do(f'ReduceSum({x}, v{w.rng.choice([0, 1])})')})")


def _multiplied(w: Writer) -> None:
    x = w.do(f"Tanh({w.any_float()})")
    turned = w.do(f"Transpose<perm=[1,0]>({x})")
    w.float(f"Tanh({w.do(f'MatMul({x}, {turned})')})")


def compared(w: Writer) -> None:
    """A flag that a size decides."""
    op = w.rng.choice(["Less", "Equal", "Greater"])
    flag = w.do(f"{op}({w.size()}, {w.rng.choice([*EDGES[1:], w.any_number()])})")
    w.scope.flags.append(w.do(f"Not({flag})") if w.rng.random() < 0.3 else flag)


def _split(w: Writer) -> None:
    """The parts of a sequence, put together in another order, or counted."""
    x, axis = w.any_float(), w.rng.choice([0, 1])
    sequence = w.do(f"SplitToSequence<axis={axis}>({x}, {w.rng.choice(['k1', 'k2'])})")
    if w.rng.random() < 0.5:
        sequence = w.do(f"SequenceInsert({sequence}, {w.first(x, axis)})")
    if w.rng.random() < 0.5:
        w.number(f"SequenceLength({sequence})")
    w.float(f"ConcatFromSequence<axis={axis}>({sequence})")


def _optional(w: Writer) -> None:
    maybe = w.do(f"Optional({w.any_float()})")
    w.float(f"OptionalGetElement({maybe})")


def cut(w: Writer, x: str) -> str:
    """``x`` without what a round may have made of it beyond the limit."""
    ends, axes = w.do(f"Concat<axis=0>(v{LIMIT}, v{LIMIT})"), w.do("Concat<axis=0>(v0, v1)")
    return w.do(f"Slice({x}, {w.do('Concat<axis=0>(v0, v0)')}, {ends}, {axes})")


BRANCH: list[Move] = [
    *(_elementwise, _longer, _shorter, _turned, _scaled, _reshaped, _expanded, _picked),
]
FLAT: list[Move] = [
    *(_elementwise, _arithmetic, _longer, _longer, _shorter, _shorter, _turned, _turned),
    *(_scaled, _reshaped, _expanded, _filled, _counted, _repeated, _padded, _picked, _summed),
    *(_multiplied, compared, _split, _optional),
]
