"""The interface of kernels that emit C, and the table of kernels by instruction."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

import numpy as np

from smelt.native.emit.writer import Writer
from smelt.native.kernels.instance import Instance, static
from smelt.native.kernels.nest import broadcast_strides, row_major
from smelt.native.kernels.operand import Operand
from smelt.native.kernels.support import keep_support
from smelt.native.repeated import is_repeated, without_repeats
from smelt.native.types import C_TYPES, CType
from smelt.program.run_sizes import Size, highest, lowest, same
from smelt.program.storage import Needs
from smelt.registry import Registry, modules_of, owner_of
from smelt.runtime.c_library import ERROR_SIZE


@dataclass
class KernelContext(Instance):
    """The context in which a kernel writes its C function.

    ``in_place`` are the inputs that the first output overwrites. An operand becomes a parameter of
    the function when the kernel requests it.
    """

    in_place: frozenset[int] = frozenset()
    body: Writer = field(default_factory=lambda: Writer(1))
    parameters: dict[str, str] = field(default_factory=dict)
    """The declaration of each parameter, in order of the first request."""
    arguments: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The argument of each parameter: ``(kind, position)`` with the kinds input, once, output,
    scratch, packed, size and extra."""
    support: dict[str, str] = field(default_factory=dict)
    """Functions that the body calls: text by name."""
    packed: list[tuple[np.ndarray, CType]] = field(default_factory=list)
    """Constants of this kernel, such as packed weights of the model."""
    scratch_type: str = ""
    requirements: list[tuple[str, int]] = field(default_factory=list)
    """Predicates on inputs of the model to check before a run, with the input's position."""
    defined_sizes: list[str] = field(default_factory=list)
    """The data-dependent sizes that the body computes, as C."""
    fails: int = 0
    """The error of a run in which the function returns nonzero; 0 if it never does."""
    body_names: tuple[str, ...] = ()
    """The C functions of the instruction's bodies, which take inputs, outputs and memory."""
    body_fails: tuple[int, ...] = ()
    """The error of a run in which each of them returns nonzero; 0 if it returns nothing."""
    extra_parameters: Mapping[str, str] = field(default_factory=dict)
    """Further C parameters of body functions: name to declaration."""

    computes_relu: bool = False
    """True if the kernel has called ``ends_in_relu``, and so computes that Relu."""
    is_trial: bool = False
    """True if the C is only checked and dropped: constants may then have any numbers."""
    rounds_each: bool = False
    """True if each operation must round by itself, for any compiler flags."""

    def input(self, position: int) -> Operand:
        """Return input ``position``, which must be present."""
        slot_number = self.instruction.inputs[position]
        operand = self._operand(f"x{position}", slot_number)
        if position in self.in_place:
            return replace(operand, name=self.output(0).name)
        declaration = f"const {operand.type.name} *restrict {operand.name}"
        self._parameter(operand.name, declaration, "input", position)
        return operand

    def strided_input(self, position: int) -> Operand:
        """Return input ``position`` with its strides, for kernels that read by strides.

        Strides are 0 along dims that a constant repeats; a Slice has the strides of its source.
        """
        number = self.instruction.inputs[position]
        if view := self.view(position):
            shape = static(self.program.slots[self.inputs_before_slices[position]])
            return replace(self.input(position), shape=shape, steps=view[1:], first=view[0])
        array, slot = self.program.constants.get(number), self.program.slots[number]
        if array is None or not is_repeated(array) or slot.dtype.bitwidth < 8:
            return self.input(position)
        shape = without_repeats(array).shape
        steps = broadcast_strides(shape, array.shape, row_major(shape))
        operand = Operand(f"r{position}", C_TYPES[slot.dtype], array.shape, steps)
        declaration = f"const {operand.type.name} *restrict {operand.name}"
        self._parameter(operand.name, declaration, "once", position)
        return operand

    def optional(self, position: int) -> Operand | None:
        """Return input ``position``, None if it is absent."""
        return self.input(position) if self.slot(position) is not None else None

    def output(self, position: int = 0) -> Operand:
        """Return output ``position``."""
        operand = self._operand(f"y{position}", self.instruction.outputs[position])
        declaration = f"{operand.type.name} *restrict {operand.name}"
        self._parameter(operand.name, declaration, "output", position)
        return operand

    def scratch(self, type_: CType) -> str:
        """Return the scratch space as an array of ``type_``."""
        self.scratch_type = type_.name
        self._parameter("scratch", f"{type_.name} *restrict scratch", "scratch", 0)
        return "scratch"

    def all_extra_arguments(self) -> str:
        """Return the extra arguments of a call of a body function, as C: ``, weights, status``."""
        for position, (name, declaration) in enumerate(self.extra_parameters.items()):
            self._parameter(name, declaration, "extra", position)
        return "".join(f", {name}" for name in self.extra_parameters)

    def require_nonempty(self, size: int) -> None:
        """Write C that ends the run if ``size`` is 0, unless its bounds exclude that."""
        if isinstance(cast(object, size), Size) and lowest(size) <= 0:
            self.may_fail()
            self.body.line(f"if ({size} <= 0)")
            self.body.line("    return 1;")

    def fail_if(self, condition: str) -> None:
        """Write C that sets ``*status`` if ``condition`` holds; nothing without a status."""
        if "status" in self.extra_parameters:
            self.all_extra_arguments()
            self.body.line(f"if ({condition}) *status = 1;")

    def constant(self, array: np.ndarray, type_: CType) -> str:
        """Return the C name of ``array``, a constant that the kernel made."""
        name = f"p{len(self.packed)}"
        self._parameter(name, f"const {type_.name} *restrict {name}", "packed", len(self.packed))
        self.packed.append((array, type_))
        return name

    def call(self, name: str, text: str) -> str:
        """Add the support function ``name``, which the body calls, and return its name."""
        keep_support(self.support, name, text)
        return name

    def require(self, function: str, position: int) -> None:
        """Require that ``function`` returns true for input ``position`` of the model, checked
        before a run.
        """
        self.requirements.append((function, position))

    def define_size(self, size: int, value: str) -> None:
        """Write C that defines the run-time size ``size`` as the C variable ``value``.

        The run ends if the value is out of bounds, or differs from a value computed earlier.

        ```
        if (count < 0 || count > 64)
            return 1;
        const ptrdiff_t dim2 = (ptrdiff_t)count;
        *defined_dim2 = dim2;
        ```
        """
        self.may_fail()
        if str(size) in self.defined_sizes or not self.defines(size):
            self.body.line(f"if ({value} != {size})")
            self.body.line("    return 1;")
            return
        bounds = (lowest(size), highest(size))
        self.body.line(f"if ({value} < {bounds[0]} || {value} > {bounds[1]})")
        self.body.line("    return 1;")
        declared = "" if str(size) in self.parameters else "const ptrdiff_t "
        self.body.line(f"{declared}{size} = (ptrdiff_t){value};")
        self.body.line(f"if (*defined_{size} >= 0 && *defined_{size} != {size})")
        self.body.line("    return 1;")
        self.body.line(f"*defined_{size} = {size};")
        self.defined_sizes.append(str(size))
        self._parameter(
            f"defined_{size}", f"ptrdiff_t *defined_{size}", "size", len(self.defined_sizes) - 1
        )

    def defines(self, size: int) -> bool:
        """True if this instruction is the first that computes the data-dependent ``size``."""
        program, step = self.program, self.instruction
        input_shapes = [program.slots[slot].shape for slot in step.inputs if slot >= 0]
        known = {atom for shape in input_shapes for dim in shape for atom in _c_names_in(dim)}
        return (
            any(same(each.size, size) for each in program.data_dependent_sizes)
            and str(size) not in known
        )

    def may_fail(self, error: int = ERROR_SIZE) -> None:
        """Declare that ``return 1`` in the body ends the run with ``error``."""
        self.fails = error

    def _operand(self, name: str, number: int) -> Operand:
        """Return the operand of slot ``number`` with the C name ``name``."""
        slot = self.program.slots[number]
        return Operand(name, C_TYPES[slot.dtype], static(slot))

    def declare_sizes(self) -> None:
        """Declare a parameter for each run-time size that the body reads."""
        read = set(re.findall(r"\bdim\d+\b", self.body.text())) - set(self.defined_sizes)
        for position, (name, declaration) in enumerate(self.extra_parameters.items()):
            if name in read:
                self._parameter(name, declaration, "extra", position)

    def _parameter(self, name: str, declaration: str, kind: str, position: int) -> None:
        """Declare a parameter and its argument, unless ``name`` is declared already."""
        self.parameters.setdefault(name, declaration)
        self.arguments.setdefault(name, (kind, position))


Emit: TypeAlias = Callable[[KernelContext], None]
NeedsRule: TypeAlias = Callable[[Instance], Needs]
Refuse: TypeAlias = Callable[[Instance], str | None]
Element: TypeAlias = Callable[[KernelContext], tuple[list[str], str]]
SupportsSideOperand: TypeAlias = Callable[[Instance, tuple[int, ...]], bool]


def _no_needs(instance: Instance) -> Needs:
    """Return no storage needs, the default of ``Kernel.needs``."""
    return Needs()


def _never_refused(instance: Instance) -> str | None:
    """Return None, the default of ``Kernel.refuse``: every instance is supported."""
    return None


def _never(instance: Instance, operand: tuple[int, ...]) -> bool:
    """Return False, the default of ``Kernel.supports_side_operand``."""
    return False


@dataclass(frozen=True)
class Kernel:
    """The functions that write one operator as C.

    - ``emit`` writes the body of the C function.
    - ``needs`` returns its storage needs. ``refuse`` returns why an instance is not supported.
    - ``kinds``: the element kinds of the first input.
    - ``element`` returns statements and a C expression of one element, with operands ``{0}``,
      ``{1}``...; it requests no parameters.
    - ``supports_side_operand``: True if the epilogue can read a side operand of a given shape.
    - ``shared``: the kernel has shared loops, whose shards have their own scratch space.
    """

    emit: Emit
    needs: NeedsRule = _no_needs
    refuse: Refuse = _never_refused
    kinds: frozenset[str] = frozenset({"float"})
    element: Element | None = None
    supports_side_operand: SupportsSideOperand = _never
    shared: bool = False


FLOAT = frozenset({"float"})
NUMBER = frozenset({"float", "int"})
ANY = frozenset({"float", "int", "bool"})


def _fill() -> None:
    """Import the modules that register kernels; ``foreign.py`` adds those of packages later."""
    modules_of("smelt.native.kernels")()


KERNELS: Registry[str, Kernel] = Registry("E651", lambda op: f"kernels of {op} that emit C", _fill)


def kernel(
    *ops: str,
    needs: NeedsRule = _no_needs,
    refuse: Refuse = _never_refused,
    kinds: frozenset[str] = FLOAT,
    element: Element | None = None,
    supports_side_operand: SupportsSideOperand = _never,
    shared: bool = False,
) -> Callable[[Emit], Emit]:
    """Register the decorated function as the kernel of ``ops``."""

    def decorate(emit: Emit) -> Emit:
        """Register ``emit`` for each operator."""
        for op in ops:
            registered = Kernel(emit, needs, refuse, kinds, element, supports_side_operand, shared)
            KERNELS.add(op, registered, owner_of(emit))
        return emit

    return decorate


def as_bytes(size: int) -> str:
    """Return a number of bytes as a C argument of memory functions; run-time ones get a cast."""
    return str(size) if isinstance(size, int) else f"(size_t){size}"


def _c_names_in(dim: object) -> tuple[str, ...]:
    """Return the C names in a run-time size; empty for a number."""
    return tuple(dim.atoms) if isinstance(dim, Size) else ()
