"""Write a nest as C, with the vectors of GNU C."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from smelt.loops import nest
from smelt.loops.operators import LANES, ONE
from smelt.program.run_sizes import Dim, Size, same

VECTORS = {LANES: "vec"}
MASKS = {LANES: "mask", ONE: "int"}
"""The C types of vectors, and of the variables that record NaN, by width."""


class Body(Protocol):
    """What the printer writes into: a line, or a block around further lines."""

    def line(self, text: str) -> None:
        """Add one line."""

    def block(self, head: str) -> AbstractContextManager[None]:
        """Put lines between ``head {`` and ``}``."""

    def shared_loop(
        self, var: str, stop: int | str, start: int | str = 0, step: int | str = 1
    ) -> AbstractContextManager[None]:
        """Put lines into a loop whose iterations are split among the shards."""


def print_nest(statements: Iterable[nest.Statement], body: Body) -> None:
    """Write the statements of a nest."""
    for statement in statements:
        _print(statement, body)


def _print(statement: nest.Statement, body: Body) -> None:
    """Write one statement."""
    match statement:
        case nest.For():
            _print_loop(statement, body)
        case nest.If(condition, then, otherwise):
            text = condition if isinstance(condition, str) else value_text(condition)
            with body.block(f"if ({text})"):
                print_nest(then, body)
            if otherwise:
                with body.block("else"):
                    print_nest(otherwise, body)
        case nest.When(condition, then, otherwise):
            body.line(f"#if {condition}")
            print_nest(then, body)
            body.line("#else")
            print_nest(otherwise, body)
            body.line("#endif")
        case nest.Index() | nest.Array() | nest.Declare() | nest.Lines():
            _print_variable(statement, body)
        case nest.Keep(name):
            body.line(f"KEEP_IN_REGISTER({name});")
        case nest.Assign(name, value):
            text = _bare(value) if isinstance(value, int | Size) else value_text(value)
            body.line(f"{name} = {text};")
        case nest.RecordNaN(name, "", width):
            body.line(f"{MASKS[width]} {name} = {'0' if width == ONE else '{ 0 }'};")
        case nest.RecordNaN(name, of, width):
            cast = "" if width == ONE else f"({MASKS[width]})"
            body.line(f"{name} |= {cast}({of} != {of});")
        case nest.IfNaN(flags, then):
            _print_if_nan(flags, then, body)
        case nest.Store():
            _print_store(statement, body)


def _print_loop(loop: nest.For, body: Body) -> None:
    """Write a loop."""
    name, step = loop.name, loop.step
    if loop.short:
        body.line("SHORT_LOOP")
    if loop.shared:
        head = body.shared_loop(name, _index(loop.stop), _index(loop.start), _index(step))
    else:
        advance = f"++{name}" if same(step, 1) else f"{name} += {_bare(step)}"
        start, stop = _bare(loop.start), _bare(loop.stop)
        head = body.block(f"for (ptrdiff_t {name} = {start}; {name} < {stop}; {advance})")
    with head:
        print_nest(loop.body, body)


def _print_variable(made: nest.Index | nest.Array | nest.Declare | nest.Lines, body: Body) -> None:
    """Write a declaration; the constant that a vector starts from goes into each lane."""
    match made:
        case nest.Index(name, value, changes):
            body.line(f"{'' if changes else 'const '}ptrdiff_t {name} = {_bare(value)};")
        case nest.Array(name, type_, size, aligned):
            # Without alignment, a vector that is loaded may be spread over two stores and wait.
            where = " __attribute__((aligned(64)))" if aligned else ""
            body.line(f"{type_.name} {name}[{size}]{where};")
        case nest.Declare(name, nest.Constant() as start, _, width) if width != ONE:
            body.line(f"{VECTORS[width]} {name} = {{ 0 }};")
            if start.value != 0:
                body.line(f"{name} += {value_text(start)};")
        case nest.Declare(name, value, type_, width, changes):
            const, type_name = "" if changes else "const ", VECTORS.get(width, type_.name)
            body.line(f"{const}{type_name} {name} = {value_text(value)};")
        case nest.Lines(name, operator, operands, type_):
            names = [value_text(each) for each in operands]
            body.line(f"{type_.name} {name};")
            with body.block(""):
                for line in operator.statements(type_, *names):
                    body.line(line)
                body.line(f"{name} = {operator.text(ONE, type_, *names)};")


def _print_if_nan(
    flags: tuple[tuple[str, str], ...], then: tuple[nest.Statement, ...], body: Body
) -> None:
    """Write ``then`` for the case that a lane of ``flags`` is not 0."""
    body.line("int lost = 0;")
    for name, width in flags:
        if width == ONE:
            body.line(f"lost |= {name};")
            continue
        # A variable that is read by lane stays in memory, so this is another one.
        body.line(f"const {MASKS[width]} {name}_lanes = {name};")
        with body.block(f"for (ptrdiff_t j = 0; j < {width}; ++j)"):
            body.line(f"lost |= {name}_lanes[j];")
    with body.block("if (lost)"):
        print_nest(then, body)


def _print_store(store: nest.Store, body: Body) -> None:
    """Write a store, of a part of the vector if there is no room for the whole."""
    value, vector = value_text(store.value), VECTORS.get(store.width)
    pointer = f"{store.array} + {_index(store.at)}"
    if vector is None:
        body.line(f"{store.array}[{_bare(store.at)}] = {value};")
    elif store.room is None:
        body.line(f"*({vector} *)({pointer}) = {value};")
    else:
        body.line(f"if ({_bare(store.room)} >= {store.width})")
        body.line(f"    *({vector} *)({pointer}) = {value};")
        size = f"{store.type.size} * (size_t)({_bare(store.room)})"
        with body.block("else"):
            # Compilers keep a variable whose address is taken in memory, so this is another one.
            body.line(f"const {vector} last = {value};")
            body.line(f"memcpy({pointer}, &last, {size});")


def value_text(value: nest.Value) -> str:
    """Return a value as C, without parentheses around it."""
    match value:
        case nest.Name(name):
            return name
        case nest.Constant(number, type_):
            if not isinstance(number, Size):
                return type_.literal(number)
            return f"({type_.name}){_index(number)}"
        case nest.Read():
            return _read_text(value)
        case nest.Call(operator, operands, type_, width):
            return operator.text(width, type_, *(_operand_text(each) for each in operands))
        case nest.Row(function, array, at, count, type_):
            pointer = f"{array} + {_index(at)}"
            return function.text(ONE, type_, pointer, _index(count))


def _operand_text(value: nest.Value) -> str:
    """Return a value as C, an operator's result in parentheses: ``(v0 + v1)``."""
    text = value_text(value)
    return f"({text})" if isinstance(value, nest.Call) else text


def _read_text(read: nest.Read) -> str:
    """Return the C of a read; every second element is picked from two vectors."""
    if read.width == ONE:
        return f"{read.array}[{_bare(read.at)}]"
    vector, at = VECTORS[read.width], read.at
    if read.step == 1:
        return f"*(const {vector} *)({read.array} + {_index(at)})"
    odd = (at.terms.get((), 0) if isinstance(at, Size) else at) % 2
    low = f"{read.array} + {_index(at - odd)}"
    first_vector, second_vector = (
        f"*(const {vector} *)({low})",
        f"*(const {vector} *)({low} + {read.width})",
    )
    return f"{'ODDS' if odd else 'EVENS'}({first_vector}, {second_vector})"


def _index(value: Dim) -> str:
    """Return an index as an operand in C."""
    return str(value)


def _bare(value: Dim) -> str:
    """Return an index as C, without the parentheses around a whole sum: ``i + 1``."""
    text = str(value)
    return text[1:-1] if isinstance(value, Size) and text not in value.atoms else text
