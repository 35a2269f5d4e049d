"""Collect the functions, constants and calls of one generated library."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import numpy as np

from smelt.ir.tensors.packed import packed
from smelt.native.emit.body_function import body_text, error_of
from smelt.native.emit.names import comment
from smelt.native.emit.run_time import computes_nothing, emit, sizes_of
from smelt.native.emit.weights import Weight, digest
from smelt.native.emit.writer import Writer
from smelt.native.kernels import kernel_of
from smelt.native.kernels.kernel import KernelContext, as_bytes
from smelt.native.kernels.support import keep_support
from smelt.native.memory import needs_of
from smelt.native.packed_once import digest_in_file, in_file
from smelt.native.repeated import is_repeated, without_repeats
from smelt.native.sharing import part_function, parts_of
from smelt.native.types import C_TYPES, CType, from_bytes, typed_pointer
from smelt.program.instruction import Body, Instruction, Program
from smelt.program.memory import MemoryPlan
from smelt.program.run_sizes import same
from smelt.program.storage import Owner, Storage
from smelt.runtime.c_library import ERROR_SIZE

Constants: TypeAlias = Literal["objects", "blob", "table"]

WEIGHTS = {"blob": "const unsigned char *weights", "table": "const void *const *weights"}
STATUS = "int *status"
ROUNDS_EACH = """#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif
{}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
"""
"""Turns off contraction of a function in GCC. Other compilers contract within a statement at
most."""


class Unit:
    """One library under construction; equal functions and equal constants are stored once.

    - ``functions``, ``support``: C texts by name, in order of first use.
    - ``calls``: the lines of ``run``. ``called``: line number and function of each step.
    - ``checks``: conditions under which a run returns without a result; ``tests``: the functions
      that only they call. ``fails``: the error codes that calls may return.
    - ``parts``: the number of shards; ``part_functions`` compute them.
    - ``constants``: objects, or all in a ``blob`` or a ``table`` of pointers named ``weights``.
    - ``tells_status``: kernels report a missing result in ``*status``.
    """

    def __init__(
        self,
        prefix: str,
        program: Program,
        memory: MemoryPlan,
        *,
        constants: Constants = "objects",
        tells_status: bool = False,
        around: Unit | None = None,
        parts: int = 1,
        weights: dict[tuple[str, bytes], Weight] | None = None,
    ) -> None:
        """Emit the program, inside of the unit ``around`` if given; extend ``weights`` if given."""
        self.prefix, self.parts = prefix, parts
        self.part_functions: dict[str, str] = {}
        self.constants, self.tells_status = constants, tells_status
        self.extra_parameters = {"weights": WEIGHTS[constants]} if constants in WEIGHTS else {}
        if tells_status:
            self.extra_parameters["status"] = STATUS
        self.sizes: list[str] = [*(around.sizes if around else ()), *sizes_of(program)]
        self.extra_parameters |= {size: f"ptrdiff_t {size}" for size in self.sizes}
        self.program = program
        self.memory = memory
        self.functions: dict[str, str] = around.functions if around else {}
        self.support: dict[str, str] = around.support if around else {}
        own = {} if weights is None else weights
        self.weights: dict[tuple[str, bytes], Weight] = around.weights if around else own
        self.calls: list[str] = []
        self.called: dict[int, tuple[int, str]] = {}
        self.checks: list[str] = []
        self.tests: dict[str, str] = around.tests if around else {}
        self.fails: set[int] = set()
        self._name_of: dict[str, str] = around._name_of if around else {}
        self._open = list(program.conditions)
        computed = {str(each.size) for each in program.data_dependent_sizes}
        self._known = {size for size in self.sizes if size not in computed}
        self._check_sizes()
        for step, instruction in enumerate(program.instructions):
            self._add(step, instruction)
        for index, slot in memory.assignment.copies:
            self._add_copy(index, slot)

    def _add(self, step: int, instruction: Instruction) -> None:
        """Write the C of one instruction and its call, unless its result is a view or empty."""
        if needs_of(self.program, instruction).view_of is not None:
            return
        if computes_nothing(self.program, instruction):
            return
        bodies = [self._body(instruction, body) for body in instruction.bodies]
        cx = KernelContext(
            self.program,
            instruction,
            in_place=self._in_place(instruction),
            body_names=tuple(name for name, _ in bodies),
            body_fails=tuple(error for _, error in bodies),
            extra_parameters=self.extra_parameters,
        )
        parts = parts_of(self.program, instruction, self.parts)
        cx.body = Writer(1, parts)
        kernel = kernel_of(instruction.op)
        assert kernel is not None  # the schedule phase refused all others
        emit(kernel, cx)
        cx.declare_sizes()
        name, arguments = self._function_call(step, cx)
        self._support(cx)
        self._call(step, cx, name, arguments)

    def _function_call(self, step: int, cx: KernelContext) -> tuple[str, list[str]]:
        """Return the name of the function that the kernel wrote, and the arguments of its call."""
        body = cx.body.text()
        used = [name for name in cx.parameters if re.search(rf"\b{name}\b", body)]
        arguments = [self._argument(step, cx, *cx.arguments[name]) for name in used]
        # Two parameters with the same argument are aliases, so they must not be ``restrict``.
        declared = [
            cx.parameters[name].replace(
                "restrict ", "" if arguments.count(argument) > 1 else "restrict "
            )
            for name, argument in zip(used, arguments, strict=True)
        ]
        if cx.body.is_shared:
            declared.append("ptrdiff_t part")
            arguments.append("part")
        signature = ", ".join(declared) or "void"
        end = "    return 0;\n" if cx.fails else ""
        text = f"({signature})\n{{\n{body}{end}}}\n"
        name = self._function(
            cx.instruction, text, rounds_each=cx.rounds_each, fails=bool(cx.fails)
        )
        return name, arguments

    def _support(self, cx: KernelContext) -> None:
        """Keep the support functions of the kernel, and the conditions to check before a run."""
        required = {function for function, _ in cx.requirements}
        for support, text in cx.support.items():
            keep_support(self.tests if support in required else self.support, support, text)
        for function, position in cx.requirements:
            self.checks.append(f"!{function}({self._pointer(cx.instruction.inputs[position])})")

    def _call(self, step: int, cx: KernelContext, name: str, arguments: list[str]) -> None:
        """Append the call of the function to the lines of ``run``; shards are called through a
        task.
        """
        instruction = cx.instruction
        ops = " ".join([instruction.op, *(step.op for step in instruction.epilogue)])
        note = comment(f"{ops} {instruction.origin}")
        call = f"{name}({', '.join(arguments)})"
        if cx.fails:
            self.fails.add(cx.fails)
            call = f"if ({call} != 0) return {cx.fails}"
        if cx.body.is_shared:
            part = f"part_of_{step}"
            self.part_functions[part] = part_function(
                part, call, self.prefix, self.extra_parameters
            )
            call = f"{self.prefix}_share(&task, {part})"
        self.called[step] = len(self.calls), name
        self.calls.append(f"{call}; /* {step}: {note} */")
        self._known.update(cx.defined_sizes)
        self._check_sizes()

    def _check_sizes(self) -> None:
        """Append a check of each condition whose sizes are all known by now: a violation ends the
        run.
        """
        for condition in (each for each in self._open if each.read <= self._known):
            self.fails.add(ERROR_SIZE)
            self.calls.append(f"if ({condition.violation}) return {ERROR_SIZE};")
        self._open = [each for each in self._open if not each.read <= self._known]

    def _function(
        self,
        instruction: Instruction,
        text: str,
        kind: str = "",
        *,
        rounds_each: bool = False,
        fails: bool = False,
    ) -> str:
        """Return the name of the function with this text. A text that is new is added."""
        known = self._name_of.get(text)
        if known is not None:
            return known
        op = re.sub(r"\W", "", instruction.op.rpartition("::")[2])
        name = f"{op}{kind}_{len(self.functions)}"
        self._name_of[text] = name
        function = f"static {'int' if fails else 'void'} {name}{text}"
        self.functions[name] = ROUNDS_EACH.format(function) if rounds_each else function
        return name

    def _body(self, instruction: Instruction, body: Body) -> tuple[str, int]:
        """Return the name and the error code of a body's function; 0 if it cannot fail."""
        inner = Unit(
            self.prefix,
            body.program,
            body.plan,
            constants=self.constants,
            tells_status=self.tells_status,
            around=self,
        )
        error = error_of(instruction, inner)
        name = self._function(instruction, body_text(inner), "Body", fails=bool(error))
        return name, error

    def _storage(self, slot: int) -> Storage:
        """Return the storage of a slot that an earlier instruction wrote."""
        storage = self.memory.assignment.of_slot[slot]
        assert storage is not None  # every slot that is read was written
        return storage

    def _in_place(self, instruction: Instruction) -> frozenset[int]:
        """Return the positions of inputs that share storage with the first output."""
        target = self._storage(instruction.outputs[0])
        inputs = enumerate(instruction.inputs)
        return frozenset(i for i, slot in inputs if slot >= 0 and self._storage(slot) is target)

    def _argument(self, step: int, cx: KernelContext, kind: str, position: int) -> str:
        """Return the C expression of one argument of a kernel's call, an entry of ``cx.arguments``.

        ``kind`` is else the scratch memory, of which each shard uses a part of its own.
        """
        if kind == "input":
            return self._pointer(cx.instruction.inputs[position])
        if kind == "once":
            slot = cx.instruction.inputs[position]
            described = self.program.slots[slot]
            array = without_repeats(self.program.constants[slot])
            return self._constant(array, C_TYPES[described.dtype], described.name)
        if kind == "output":
            return self._pointer(cx.instruction.outputs[position])
        if kind == "extra":
            return list(self.extra_parameters)[position]
        if kind == "size":
            return f"&{cx.defined_sizes[position]}"
        if kind == "packed":
            array, type_ = cx.packed[position]
            return self._constant(array, type_, "packed for step " + str(step))
        storage = self.memory.assignment.scratch[step]
        assert storage is not None  # the kernel asked for it in its needs
        at = f"memory + {self.memory.offset_of(storage)}"
        if cx.body.is_shared:
            at += f" + part * {storage.size // cx.body.parts}"
        return f"({cx.scratch_type} *){from_bytes(at)}"

    def _pointer(self, slot: int, *, raw: bool = False) -> str:
        """Return the C pointer to the elements of a slot, untyped if ``raw``."""
        storage, c_type = self._storage(slot), C_TYPES[self.program.slots[slot].dtype]
        if storage.owner is Owner.CONSTANT:
            root = storage.index
            described = self.program.slots[root]
            array = packed(self.program.constants[root], described.dtype)
            return self._constant(array, C_TYPES[described.dtype], described.name)
        if storage.owner is Owner.INPUT:
            return typed_pointer(f"const {c_type.name} *", f"inputs[{storage.index}]", raw)
        if storage.owner is Owner.OUTPUT:
            return typed_pointer(f"{c_type.name} *", f"outputs[{storage.index}]", raw)
        at = from_bytes(f"memory + {self.memory.offset_of(storage)}")
        return typed_pointer(f"{c_type.name} *", at, raw)

    def _constant(self, array: np.ndarray, type_: CType, note: str) -> str:
        """Return the C pointer to a constant. A constant that is new is added to ``weights``."""
        contiguous = array if is_repeated(array) else np.ascontiguousarray(array)
        key = (type_.name, digest_in_file(array) or digest(array))
        if key not in self.weights:
            number, symbol = len(self.weights), f"{self.prefix}_weight_{len(self.weights)}"
            offset = next(reversed(self.weights.values())).end if self.weights else 0
            stored = in_file(contiguous, key[1])
            self.weights[key] = Weight(symbol, type_, stored, comment(note), offset, number)
        weight = self.weights[key]
        if self.constants == "table":
            return f"(const {type_.name} *)weights[{weight.number}]"
        if self.constants == "blob":
            return f"(const {type_.name} *)(const void *)(weights + {weight.offset})"
        return f"{weight.symbol}.values"

    def _add_copy(self, index: int, slot: int) -> None:
        """Append a memcpy of ``slot`` into output ``index``, unless it is empty."""
        size = self.program.slots[slot].nbytes
        if not same(size, 0):
            source = self._pointer(slot, raw=True)
            self.calls.append(
                f"memcpy(outputs[{index}], {source}, {as_bytes(size)}); /* output {index} */"
            )
