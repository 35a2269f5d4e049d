"""``smelt.Threefry2x32``, the generator of JAX's random numbers."""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.nest import collapse
from smelt.operators.threefry2x32 import GROUPS, PARITY, ROTATIONS


@kernel("smelt::Threefry2x32", kinds=frozenset({"int"}))
def threefry(cx: KernelContext) -> None:
    """Write one loop over all elements with all rounds, which compilers vectorize."""
    results = [cx.output(i) for i in range(2)]
    shape = results[0].shape
    reads = [cx.input(i).broadcast(shape) for i in range(4)]
    sizes, walks = collapse(shape, [*(result.access() for result in results), *reads])
    names = [f"i{dim}" for dim in range(len(sizes))]
    first, second, *counters = (walk.at(names) for walk in walks)
    with cx.body.loops(names, sizes):
        for name, word in zip(("k0", "k1", "x", "y"), counters, strict=True):
            cx.body.line(f"{'const ' if name[0] == 'k' else ''}uint32_t {name} = {word};")
        cx.body.lines(_rounds())
        cx.body.line(f"{first} = x;")
        cx.body.line(f"{second} = y;")


def _rounds() -> str:
    """Return the C statements that encrypt the words ``x`` and ``y`` with the
    key ``k0``, ``k1``."""
    lines = [f"const uint32_t k2 = k0 ^ k1 ^ {PARITY}u;", "x += k0;", "y += k1;"]
    for group in range(GROUPS):
        for bits in ROTATIONS[group % 2]:
            lines += ["x += y;", f"y = (y << {bits} | y >> {32 - bits}) ^ x;"]
        lines += [f"x += k{(group + 1) % 3};", f"y += k{(group + 2) % 3} + {group + 1}u;"]
    return "\n".join(lines)
