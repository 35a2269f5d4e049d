"""Reductions whose axes are an input of the model.

The output has the sizes that the model declares. A check before the run refuses axes that lead to
others.
"""

from __future__ import annotations

import math

from smelt.loops.algorithm import Algorithm, Axis, Buffer, Load, Stage
from smelt.loops.lower import lower
from smelt.loops.nest import If, Statement
from smelt.loops.printer import print_nest
from smelt.loops.schedule import Outermost
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.nest import Access
from smelt.native.kernels.reduce import arrays
from smelt.native.kernels.reduction_table import LOG_SUM_EXP, is_reduction, reduced
from smelt.program.instruction import DYNAMIC_REDUCE
from smelt.program.run_sizes import Dim, Size


def _refuse(instance: Instance) -> str | None:
    """Return why the instruction is refused, None if it is supported."""
    op, type_ = str(instance.instruction.attributes["reduction"]), instance.type(0)
    if not is_reduction(op, type_.kind):
        return f"{op} takes no {type_.name}"
    if instance.instruction.inputs[1] not in instance.program.inputs:
        return "axes that are neither constant nor an input of the model"
    if 0 in instance.shape(0) and op == "ReduceMean" and type_.kind == "int":
        return "the mean of an empty tensor of integers"
    return None


@kernel(DYNAMIC_REDUCE, kinds=ANY, refuse=_refuse)
def dynamic_reduce(cx: KernelContext) -> None:
    """Write a reduction whose sizes follow from the axes: each dim is kept, or reduced.

    ```
    ptrdiff_t kept[3];
    kept_of_3_by_1_int64_t(x1, kept);
    const ptrdiff_t kept0 = kept[0] ? 2 : 1, reduced0 = kept[0] ? 1 : 2;
    if (kept[2]) ...
    else
        for (ptrdiff_t i0 = 0; i0 < kept0; ++i0) ...
            for (ptrdiff_t k0 = 0; k0 < reduced0; ++k0) ...
                for (ptrdiff_t last = 0; last < 4; ++last)
                    a0 = x0[i0 * 12 + i1 * 4 + k0 * 12 + k1 * 4 + last] + a0;
    ```
    """
    source, axes, output, body = cx.input(0), cx.input(1), cx.output(), cx.body
    rank, keep = len(source.shape), bool(cx.int("keepdims"))
    kept = cx.call(*_kept_function(source.shape, axes.size, axes.type.name, cx.int("noop")))
    output_fits = cx.call(*_output_fits(kept, source.shape, output.shape, axes.type.name, keep))
    cx.require(output_fits, 1)
    body.line(f"ptrdiff_t kept[{max(rank, 1)}];")
    body.line(f"{kept}({axes.name}, kept);")
    for dim, size in enumerate(source.shape[:-1]):
        choices = f"kept[{dim}] ? {size} : 1, reduced{dim} = kept[{dim}] ? 1 : {size}"
        body.line(f"const ptrdiff_t kept{dim} = {choices};")
    print_nest(nest_of(cx), body)


def nest_of(cx: KernelContext) -> tuple[Statement, ...]:
    """Return the nests for a last dim that is kept, and for one that is reduced."""
    op, source = str(cx.attributes["reduction"]), cx.input(0)
    ends = arrays(cx, op)
    last_is_reduced = lower(_algorithm(cx, *ends, keeps_last=False))
    if not source.shape:
        return last_is_reduced
    schedule = () if op == LOG_SUM_EXP else (Outermost(ends[1].array),)
    last_is_kept = lower(_algorithm(cx, *ends, keeps_last=True), schedule)
    return (If(f"kept[{len(source.shape) - 1}]", last_is_kept, last_is_reduced),)


def _algorithm(cx: KernelContext, read: Access, result: Access, *, keeps_last: bool) -> Algorithm:
    """Return the reduction with two loops per dim: over the kept part, and over the reduced part.

    One of the two loops has one iteration, which C decides from the axes. The last dim, whose kind
    is known here, has one loop.
    """
    source, kept_axes, reduced_axes, index = cx.input(0), list[Axis](), list[Axis](), list[Dim]()
    for dim, size in enumerate(source.shape[:-1]):
        kept_axes.append(Axis(f"i{dim}", Size.named(f"kept{dim}", 0, max(size, 1))))
        reduced_axes.append(Axis(f"k{dim}", Size.named(f"reduced{dim}", 0, max(size, 1))))
        index.append(kept_axes[-1].at + reduced_axes[-1].at)
    for size in source.shape[-1:]:
        (kept_axes if keeps_last else reduced_axes).append(Axis("last", size))
        index.append(Axis("last", size).at)
    load = Load(Buffer(read.array, read.type, source.shape), tuple(index))
    count = math.prod(axis.extent for axis in reduced_axes)
    op = str(cx.attributes["reduction"])
    value = reduced(op, source.type, tuple(reduced_axes), load, count)
    to = Buffer(result.array, result.type, tuple(axis.extent for axis in kept_axes))
    return Algorithm((Stage(to, tuple(kept_axes), value),))


def _kept_function(shape: tuple[int, ...], axes: int, c_type: str, noop: int) -> tuple[str, str]:
    """Return name and text of a function of ``(axes, kept)`` that sets ``kept[d]`` for each dim.

    The function returns 0 for an axis out of range.
    """
    rank, reduces_all = len(shape), int(axes == 0 and not noop)
    name = f"kept_of_{rank}_by_{axes}_{c_type}" + ("_noop" if noop else "")
    lines = [
        f"static int {name}(const {c_type} *axes, ptrdiff_t *kept)",
        "{",
        f"    for (ptrdiff_t d = 0; d < {rank}; ++d)",
        f"        kept[d] = {1 - reduces_all};",
        f"    for (ptrdiff_t j = 0; j < {axes}; ++j) {{",
        f"        const ptrdiff_t a = (ptrdiff_t)axes[j] + (axes[j] < 0 ? {rank} : 0);",
        f"        if (a < 0 || a >= {rank})",
        "            return 0;",
        "        kept[a] = 0;",
        "    }",
        "    (void)axes, (void)kept;",
        "    return 1;",
        "}",
    ]
    return name, "\n".join(lines) + "\n"


def _output_fits(
    kept: str, shape: tuple[int, ...], output: tuple[int, ...], c_type: str, keep: bool
) -> tuple[str, str]:
    """Return name and text of a function of ``(axes)``: true if the output has its right sizes.

    Without ``keep``, ``at`` counts the output dims that were compared.
    """
    rank, output_rank = len(shape), len(output)
    sizes, results = (", ".join(map(str, dims or (1,))) for dims in (shape, output))
    name = f"{kept}_from_{'x'.join(map(str, shape))}_to_{'x'.join(map(str, output))}"
    checks = f"    for (ptrdiff_t d = 0; d < {rank}; ++d)\n"
    if keep:
        name += "_in_place"
        checks += "        if (result[d] != (kept[d] ? size[d] : 1))\n            return 0;\n"
        condition = "1"
    else:
        checks += (
            "        if (kept[d] && "
            f"(at >= {output_rank} || result[at++] != size[d]))\n            return 0;\n"
        )
        condition = f"at == {output_rank}"
    text = (
        f"static int {name}(const {c_type} *axes)\n{{\n"
        f"    static const ptrdiff_t size[] = {{{sizes}}}, result[] = {{{results}}};\n"
        f"    ptrdiff_t kept[{max(rank, 1)}], at = 0;\n"
        f"    if (!{kept}(axes, kept))\n        return 0;\n"
        f"{checks}    (void)size;\n    (void)result;\n    (void)at;\n    return {condition};\n}}\n"
    )
    return name, text
