"""Format the facts of a model as titled sections of text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from smelt.cli.layout import printable, prose, table, width

if TYPE_CHECKING:
    import onnx_ir as ir

    from smelt.inspection import Facts
    from smelt.inspection.polynomial import Polynomial
    from smelt.inspection.symbols import Symbol

SHOWN = 5
"""How many weights are shown, the largest first; ``--list`` has all."""

PIPED = 100
"""Width of a line if the output is no terminal."""

INDENT = 2
"""Spaces before the lines of a section."""

NAMES = 3
"""How many dims are named in place of a long formula."""

ENDS = 6
"""How many operators of a long chain are shown at each end."""

UNITS = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
TERMS = 2
"""How many terms of a formula are shown."""

WIDEST = 32
"""Longest formula in characters; in place of a longer one, the dims it depends on are shown."""


def sections(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the title and the text of each section."""
    model = facts.model
    name = model.graph.name or "(no name)"
    yield (
        f"{printable(name)}  (IR version {model.ir_version}, from {printable(producer(model))})",
        "",
    )
    interface = facts.interface
    for word, ports in (("inputs", interface.inputs), ("outputs", interface.outputs)):
        yield word, _table([(port.name, str(port)) for port in ports]) or "none"
    symbols = [*map(_symbol, facts.symbols), *_computed(facts)]
    if symbols:
        yield "symbolic dims", _table(symbols)
    domains = {**{name or "ai.onnx": 0 for name in model.opset_imports}, **facts.domains}
    versions = {name or "ai.onnx": version for name, version in model.opset_imports.items()}
    rows = [(d, f"opset {versions.get(d, '?')}", f"{n:,} nodes") for d, n in domains.items()]
    yield "domains", _table(rows)
    yield f"operators ({sum(facts.operators.values()):,} nodes)", _operators(facts)
    yield from _total(facts)
    yield from _functions(facts)
    if facts.chains:
        depth = f"depth {len(facts.chains[0]):,}, the longest chain of nodes"
        yield depth, prose(_chain(facts.chains[0]), (width() or PIPED) - INDENT)
    yield from _quantization(facts)
    yield from _parameters(facts)
    if facts.problem:
        yield f"shapes are those that the model declares: {printable(facts.problem)}", ""


def _symbol(symbol: Symbol) -> tuple[str, str]:
    """Return the name of a symbolic dim, and in words what its size depends on.

    That is a dim of inputs, a formula of other dims, or the values of a tensor.
    """
    if not symbol.inputs:
        if symbol.size:
            return symbol.name, f"is {symbol.size}, in {', '.join(symbol.outputs)}"
        return symbol.name, f"depends on values, of {', '.join(symbol.outputs)}"
    outputs = f"; in {', '.join(symbol.outputs)}" if symbol.outputs else ""
    return symbol.name, f"from {', '.join(symbol.inputs)}{outputs}"


def _computed(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield one row with the invented names of dims, if formulas contain any.

    Shape inference invents a name for a size that the model computes and does not name.
    """
    from smelt.ir.symbolic_dims.invented_dims import invented_in

    names = {
        name
        for symbol in facts.total.flops.symbols | facts.total.bytes.symbols
        for name in invented_in(symbol)
    }
    if names:
        ordered = sorted(names, key=lambda name: (len(name), name))
        shown = ", ".join(ordered[:SHOWN]) + (", ..." if len(ordered) > SHOWN else "")
        yield shown, "unnamed sizes that the model computes"


def _table(rows: Sequence[tuple[object, ...]], header: tuple[str, ...] = ()) -> str:
    """Return a table whose width leaves room for the indentation of a section."""
    cells = [tuple(c if isinstance(c, int) else printable(c) for c in row) for row in rows]
    return table(cells, header, (width() or PIPED) - INDENT)


def _operators(facts: Facts) -> str:
    """Return the table of operators: nodes, MACs, FLOPs and bytes moved."""
    rows = []
    for name, item in facts.work_by_operator.items():
        macs, flops, moved = (_amount(amount) for amount in (item.macs, item.flops, item.bytes))
        flops = flops if not item.unknown else f"{flops}, {item.unknown} not counted"
        rows.append((name, item.nodes, macs, flops, moved))
    return _table(rows, ("operator", "nodes", "MACs", "FLOPs", "bytes moved")) if rows else "none"


def _total(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the section on the work of all nodes.

    If the amounts are formulas of symbolic dims, its last row has ``--dim`` options that turn them
    into numbers.
    """
    work = facts.total
    amounts = {"MACs": work.macs, "FLOPs": work.flops, "bytes moved": work.bytes}
    rows = [(unit, _amount(amount)) for unit, amount in amounts.items()]
    names = sorted(work.flops.names | work.bytes.names)
    known = {symbol.name for symbol in facts.symbols if symbol.inputs}
    named = [name for name in names if name in known]
    if named:
        rows.append(("for numbers", " ".join(f"--dim {printable(name)}=1" for name in named)))
    yield "all nodes", _table(rows)


def _functions(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the section on functions, if there are any."""
    if facts.functions:
        rows = [(f.name, f"{f.nodes} nodes", f"{f.calls} calls") for f in facts.functions]
        yield "functions, whose nodes are counted above as often as they run", _table(rows)


def _quantization(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the section about quantized nodes and weights, if there are any."""
    from smelt.inspection.quantized import bits_counted

    counts = bits_counted(facts.quantized)
    if counts or facts.quantized_weights:
        rows = [(text, f"{count:,} nodes") for text, count in counts.items()]
        quantized = len(facts.quantized_weights)
        rows.append(("weights", f"{quantized:,} of {len(facts.weights):,}"))
        yield "quantization", _table(rows)


def _parameters(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the section on weights: totals, then the largest ones."""
    count, size = sum(w.elements for w in facts.weights), sum(w.bytes for w in facts.weights)
    rows: list[tuple[object, ...]] = [
        (w.name, w.type, w.elements, w.bytes, f"{w.share_of(size):.1%}")
        for w in facts.weights[:SHOWN]
    ]
    if len(facts.weights) > SHOWN:
        rows.append((f"and {len(facts.weights) - SHOWN:,} others (--list weights)", "", "", "", ""))
    yield f"parameters {count:,} in {size:,} bytes", _table(rows)


def _chain(chain: list[ir.Node]) -> str:
    """Return the operators of a chain as text; of a long chain, the first and the last ones."""
    from smelt.ir.text import operator

    names = [printable(operator(node)) for node in chain]
    if len(names) > 2 * ENDS:
        names = [*names[:ENDS], f"... {len(names) - 2 * ENDS:,} more ...", *names[-ENDS:]]
    return " -> ".join(names)


def _amount(amount: Polynomial) -> str:
    """Return an amount as text: ``4.09 G``, the leading terms of a formula, or the dims in it."""
    if amount.value is None:
        terms = amount.texts()
        more = f" + {len(terms) - TERMS} terms" if len(terms) > TERMS else ""
        formula = " + ".join(terms[:TERMS]) + more
        return formula if len(formula) <= WIDEST else f"depends on {_some_dims(amount.names)}"
    for size, letter in UNITS:
        if amount.value >= size:
            return f"{amount.value / size:.3g} {letter}"
    return str(amount.value)


def _some_dims(dims: Collection[str]) -> str:
    """Return at most ``NAMES`` of ``dims`` that the model names, and the number of other dims."""
    from smelt.ir.symbolic_dims.invented_dims import invented_in

    named = sorted(name for name in dims if not invented_in(name))[:NAMES]
    others = len(dims) - len(named)
    counted = f"{others} {'other ' if named else ''}size{'s' if others > 1 else ''}"
    return ", ".join([*named, counted] if others else named)


def producer(model: ir.Model) -> str:
    """Return the name and version of the program that wrote the model, or ``?``."""
    return " ".join(filter(None, (model.producer_name, model.producer_version))) or "?"
