"""Random damage to the protobuf of a model, such as a broken exporter or an attacker writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple, TypeAlias

import onnx
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message

EXTREME_INTS = (
    *(0, 1, -1, 2, 3, 7, 13, 64, 65, 255, -128, 2**31 - 1, -(2**31), 2**31, 2**40),
    *(2**62, -(2**62), 2**63 - 1, -(2**63), 1 - 2**63),
)
EXTREME_FLOATS = (0.0, -0.0, -1.0, 1e30, -1e30, 1e-40, float("nan"), float("inf"), float("-inf"))
WORDS = (
    *("", "x", "y", "w", "ai.onnx", "Relu", "Reshape", "Einsum", "Loop", "Cast", "Transpose"),
    *("Slice", "TopK", "Resize", "axis", "pads", "SAME_UPPER", "ij,jk->ik", "N*M+1", "N/0"),
)
INTS = (Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_UINT64)
FLOATS = (Field.TYPE_FLOAT, Field.TYPE_DOUBLE)
TEXTS = (Field.TYPE_STRING, Field.TYPE_BYTES)


class Place(NamedTuple):
    """The position of a value in a protobuf: a field that is set, or item ``index`` of a repeated one."""

    owner: Message
    field: Field
    index: int | None

    def __str__(self) -> str:
        item = "" if self.index is None else f"[{self.index}]"
        return f"{self.owner.DESCRIPTOR.name}.{self.field.name}{item}"

    def get(self) -> Any:
        value = getattr(self.owner, self.field.name)
        return value if self.index is None else value[self.index]

    def set(self, value: Any) -> None:
        if self.index is None:
            setattr(self.owner, self.field.name, value)
        else:
            getattr(self.owner, self.field.name)[self.index] = value


Mutation: TypeAlias = Callable[[list[Place], Random], str]


def mutate(model: onnx.ModelProto, random: Random) -> str:
    """Change ``model`` in one to three places; returns what was done."""
    done = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        done.append(random.choice(MUTATIONS)(list(_places(model)), random))
    return "; ".join(done)


def cut(data: bytes, random: Random) -> bytes:
    """Return ``data`` cut short, or with one bit flipped."""
    position = random.randrange(len(data))
    if random.random() < 0.5:
        return data[:position]
    turned = bytes([data[position] ^ 1 << random.randrange(8)])
    return data[:position] + turned + data[position + 1 :]


def _places(root: Message) -> Iterator[Place]:
    pending = [root]
    while pending:
        owner = pending.pop()
        for field, value in owner.ListFields():
            items = enumerate(value) if field.is_repeated else [(None, value)]
            for index, item in items:
                yield Place(owner, field, index)
                if field.type == Field.TYPE_MESSAGE:
                    pending.append(item)


def _pick(places: list[Place], random: Random, *types: int) -> Place | None:
    """A place of one of ``types``, any if none is given; each field of the format is as likely as
    any other, however many nodes or numbers a model has."""
    found: dict[str, list[Place]] = {}
    for place in places:
        if not types or place.field.type in types:
            found.setdefault(place.field.full_name, []).append(place)
    return random.choice(found[random.choice(list(found))]) if found else None


def _drop(places: list[Place], random: Random) -> str:
    place = _pick(places, random)
    if place is None:
        return "nothing"
    if place.index is None or random.random() < 0.3:
        place.owner.ClearField(place.field.name)
        return f"drop {place.owner.DESCRIPTOR.name}.{place.field.name}"
    del getattr(place.owner, place.field.name)[place.index]
    return f"drop {place}"


def _repeat(places: list[Place], random: Random) -> str:
    place = _pick([place for place in places if place.index is not None], random)
    if place is None:
        return "nothing"
    getattr(place.owner, place.field.name).append(place.get())
    return f"repeat {place}"


def _change_number(places: list[Place], random: Random) -> str:
    place = _pick(places, random, *INTS, *FLOATS, Field.TYPE_ENUM)
    if place is None:
        return "nothing"
    if place.field.type == Field.TYPE_ENUM:
        place.set(random.choice(place.field.enum_type.values).number)
    elif place.field.type in FLOATS:
        place.set(random.choice(EXTREME_FLOATS))
    else:
        try:
            place.set(random.choice(EXTREME_INTS))
        except ValueError:  # The field has 32 bits, or no sign.
            place.set(random.choice((0, 1, 3, 2**31 - 1)))
    return f"{place} = {place.get()}"


def _swap_names(places: list[Place], random: Random) -> str:
    names = [place for place in places if place.field.type == Field.TYPE_STRING]
    if len(names) < 2:
        return "nothing"
    first, second = _pick(names, random), random.choice(names)
    assert first is not None
    one, other = first.get(), second.get()
    first.set(other)
    second.set(one)
    return f"swap {first} {one!r} and {second} {other!r}"


def _change_text(places: list[Place], random: Random) -> str:
    place = _pick(places, random, *TEXTS)
    if place is None:
        return "nothing"
    word: Any = random.choice(WORDS)
    place.set(word.encode() if place.field.type == Field.TYPE_BYTES else word)
    return f"{place} = {word!r}"


def _truncate(places: list[Place], random: Random) -> str:
    place = _pick(places, random, *TEXTS)
    if place is None:
        return "nothing"
    value = place.get()
    place.set(value[: random.randrange(len(value))] if value else value)
    return f"truncate {place}"


def _retype(places: list[Place], random: Random) -> str:
    """Another type of an attribute, with or without a value of that type."""
    attributes = [place.get() for place in places if place.field.name == "attribute"]
    attributes = [item for item in attributes if isinstance(item, onnx.AttributeProto)]
    if not attributes:
        return "nothing"
    attribute = random.choice(attributes)
    if random.random() < 0.3:
        attribute.type = random.choice(onnx.AttributeProto.AttributeType.values())
    else:
        value = random.choice((0, -1, 2**63 - 1, 0.5, "a", [1], [0.5], ["a"], [2**62, -(2**63)]))
        attribute.CopyFrom(onnx.helper.make_attribute(attribute.name, value))
    return f"retype {attribute.name!r}: {attribute.type}"


MUTATIONS: tuple[Mutation, ...] = (
    *(_drop, _drop, _repeat, _change_number, _change_number, _change_number),
    *(_swap_names, _change_text, _truncate, _retype),
)
