"""Reductions whose axes are an input of the model.

The output has the sizes that the model declares. A check before the run refuses axes that lead to
others.
"""

from __future__ import annotations

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.nest import index
from smelt.native.kernels.reduce import Reducer
from smelt.native.kernels.reduction_table import TABLES, Reduction
from smelt.program.instruction import DYNAMIC_REDUCE

LOG_SUM_EXP = Reduction("(-INFINITY)", "log_add_exp_@t({a}, {v})")


def _refuse(instance: Instance) -> str | None:
    """Return why the instruction is refused, None if it is supported."""
    op, type_ = str(instance.instruction.attributes["reduction"]), instance.type(0)
    if op not in TABLES[type_.kind] and not (op == "ReduceLogSumExp" and type_.kind == "float"):
        return f"{op} takes no {type_.name}"
    if instance.instruction.inputs[1] not in instance.program.inputs:
        return "axes that are neither constant nor an input of the model"
    if 0 in instance.shape(0) and op == "ReduceMean" and type_.kind == "int":
        return "the mean of an empty tensor of integers"
    return None


@kernel(DYNAMIC_REDUCE, kinds=ANY, refuse=_refuse)
def dynamic_reduce(cx: KernelContext) -> None:
    """Write the accumulation of each element into the output, by strides that are 0 along reduced
    dims.

    ```
    const ptrdiff_t count = strides_3x2x3_by_1_int64_t(x1, stride);
    for (ptrdiff_t i0 = 0; i0 < 3; ++i0) ...
        const ptrdiff_t o = i0 * stride[0] + i1 * stride[1] + i2 * stride[2];
        y0[o] = y0[o] + v * v;
    ```
    """
    op, type_ = str(cx.instruction.attributes["reduction"]), cx.type(0)
    source, axes, output, body = cx.input(0), cx.input(1), cx.output(), cx.body
    rank, keep = len(source.shape), bool(cx.int("keepdims"))
    strides = cx.call(*_strides(source.shape, axes.size, axes.type.name, cx.int("noop")))
    fits = cx.call(*_fits(strides, source.shape, output.shape, axes.type.name, keep))
    cx.require(fits, 1)
    if op == "ReduceLogSumExp":
        cx.call(f"log_add_exp_{type_.name}", _log_add_exp(type_.name, type_.f))
    table = LOG_SUM_EXP if op == "ReduceLogSumExp" else TABLES[type_.kind][op]
    reducer = Reducer(cx, table, 0)
    reducer.count = f"({type_.name})count"
    names = [f"i{dim}" for dim in range(rank)]
    body.line(f"ptrdiff_t stride[{max(rank, 1)}];")
    body.line(f"const ptrdiff_t count = {strides}({axes.name}, stride);")
    with body.loop("o", output.size):
        body.line(f"{output.name}[o] = {reducer.start};")
    with body.loops(names, source.shape):
        at = " + ".join(f"{name} * stride[{dim}]" for dim, name in enumerate(names)) or "0"
        body.line(f"const ptrdiff_t o = {at};")
        body.line(f"const {type_.name} v = {source.name}[{index(source.strides, names)}];")
        body.line(f"{output.name}[o] = {reducer.step(f'{output.name}[o]', 'v')};")
    if table.final != "{a}":
        with body.loop("o", output.size):
            body.line(f"{output.name}[o] = {reducer.final(f'{output.name}[o]')};")
    body.line("(void)count;")


def _strides(shape: tuple[int, ...], axes: int, word: str, noop: int) -> tuple[str, str]:
    """Return name and text of a function of ``(axes, stride)`` that fills in the output strides.

    The function returns the number of elements that are reduced to one, -1 for an axis out of
    range.
    """
    rank = len(shape)
    sizes = ", ".join(map(str, shape or (1,)))
    name = f"strides_{'x'.join(map(str, shape))}_by_{axes}_{word}" + ("_noop" if noop else "")
    every = int(axes == 0 and not noop)
    lines = [
        f"static ptrdiff_t {name}(const {word} *axes, ptrdiff_t *stride)",
        "{",
        f"    static const ptrdiff_t size[] = {{{sizes}}};",
        "    ptrdiff_t count = 1, step = 1;",
        f"    for (ptrdiff_t d = 0; d < {rank}; ++d)",
        f"        stride[d] = {1 - every};",
        f"    for (ptrdiff_t j = 0; j < {axes}; ++j) {{",
        f"        const ptrdiff_t a = (ptrdiff_t)axes[j] + (axes[j] < 0 ? {rank} : 0);",
        f"        if (a < 0 || a >= {rank})",
        "            return -1;",
        "        stride[a] = 0;",
        "    }",
        f"    for (ptrdiff_t d = {rank - 1}; d >= 0; --d) {{",
        "        count *= stride[d] ? 1 : size[d];",
        "        stride[d] *= step;",
        "        step *= stride[d] && size[d] ? size[d] : 1;",
        "    }",
        "    (void)axes;",
        "    return count;",
        "}",
    ]
    return name, "\n".join(lines) + "\n"


def _fits(
    strides: str, shape: tuple[int, ...], output: tuple[int, ...], word: str, keep: bool
) -> tuple[str, str]:
    """Return name and text of a function that is true if the axes lead to the
    sizes of the output."""
    rank, output_rank = len(shape), len(output)
    name = f"{strides}_to_{'x'.join(map(str, output))}" + ("_kept" if keep else "")
    sizes, results = (", ".join(map(str, dims or (1,))) for dims in (shape, output))
    checks = f"    for (ptrdiff_t d = 0; d < {rank}; ++d)\n"
    if keep:
        checks += "        if (result[d] != (stride[d] ? size[d] : 1))\n            return 0;\n"
        end = "1"
    else:
        checks += (
            "        if (stride[d] && "
            f"(at >= {output_rank} || result[at++] != size[d]))\n            return 0;\n"
        )
        end = f"at == {output_rank}"
    text = (
        f"static int {name}(const {word} *axes)\n{{\n"
        f"    static const ptrdiff_t size[] = {{{sizes}}}, result[] = {{{results}}};\n"
        f"    ptrdiff_t stride[{max(rank, 1)}], at = 0;\n"
        f"    if ({strides}(axes, stride) < 0)\n        return 0;\n"
        f"{checks}    (void)size;\n    (void)result;\n    (void)at;\n    return {end};\n}}\n"
    )
    return name, text


def _log_add_exp(word: str, f: str) -> str:
    """Return the C function of ``log(exp(a) + exp(v))``."""
    return (
        f"static {word} log_add_exp_{word}({word} a, {word} v)\n{{\n"
        "    if (v != v || a == -INFINITY)\n        return v;\n"
        "    if (a != a || v == -INFINITY || a == INFINITY)\n        return a;\n"
        f"    return a > v ? a + log1p{f}(exp{f}(v - a)) : v + log1p{f}(exp{f}(a - v));\n}}\n"
    )
