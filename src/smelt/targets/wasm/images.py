"""Image inputs that also take bytes: the C that turns pixels into the floats of a model.

A pixel has 1, 3 or 4 channels (grey, RGB, RGBA as of a canvas); the fourth is left out, and a model
of one channel gets the luminance of colours (ITU-R BT.601).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.native.types import C_TYPES
from smelt.program.instruction import Program, Slot
from smelt.program.run_sizes import highest
from smelt.targets.wasm.options import Options, refused

MOST_CHANNELS = 4
FLOAT = C_TYPES[ir.DataType.FLOAT]


@dataclass(frozen=True)
class Image:
    """An image input: its number among the inputs, the largest batch, and the layout of an image.

    ``most`` is the largest number of images. The layout is NCHW if ``is_channels_first``, else
    NHWC. ``gains`` and ``offsets`` have one number per channel: a value is
    ``pixel * gain + offset``.
    """

    number: int
    most: int
    height: int
    width: int
    channels: int
    is_channels_first: bool
    gains: tuple[float, ...]
    offsets: tuple[float, ...]

    @property
    def buffer(self) -> str:
        """The name of the exported buffer of pixels."""
        return f"pixels{self.number}"

    @property
    def function(self) -> str:
        """The name of the exported function that converts them."""
        return f"image{self.number}"

    @property
    def buffer_bytes(self) -> int:
        """The bytes of the buffer: those of the most pixels with the most channels."""
        return self.most * self.height * self.width * MOST_CHANNELS

    def text(self) -> str:
        """Return the C of the function; ``count`` is the number of pixels.

        ::

            int image0(int channels, int count)
            {
                static const float gain[] = { 3.9e-03f }, offset[] = { 0.0e+00f };
                float *const to = (float *)input0;
                for (int p = 0; p < count; ++p) {
                    const unsigned char *const from = pixels0 + p * channels;
                    const float grey = from[0];
                    to[p / 64 * 64 + p % 64] = grey * gain[0] + offset[0];
        """
        plane, c = self.height * self.width, self.channels
        luminance = "channels == 1 ? from[0] : .299f * from[0] + .587f * from[1] + .114f * from[2]"
        value = luminance if c == 1 else "from[channels == 1 ? 0 : c]"
        place = f"p / {plane} * {c * plane} + c * {plane} + p % {plane}"
        place = place if self.is_channels_first else f"p * {c} + c"
        lists = (", ".join(map(FLOAT.literal, each)) for each in (self.gains, self.offsets))
        gains, offsets = lists
        head = f"int {self.function}(int channels, int count)"
        return f"""{head};
{head}
{{
    static const float gain[] = {{ {gains} }}, offset[] = {{ {offsets} }};
    float *const to = (float *)input{self.number};
    for (int p = 0; p < count; ++p) {{
        const unsigned char *const from = {self.buffer} + p * channels;
        for (int c = 0; c < {c}; ++c)
            to[{place}] = ({value}) * gain[c] + offset[c];
    }}
    return 0;
}}
"""

    def to_json(self) -> Mapping[str, object]:
        """Return what the JavaScript knows about the image."""
        channels_first = [self.channels, self.height, self.width]
        shape = channels_first if self.is_channels_first else [*channels_first[1:], self.channels]
        return {"pixels": self.height * self.width, "channels": self.channels, "shape": shape}


def images_of(options: Options, program: Program) -> list[Image]:
    """Return the image inputs that the option ``images`` names.

    Raises UsageError E660 for a name that is no image input, and for a wrong number of means.
    """
    names = [name for name in options.images.split(",") if name]
    by_name = {program.slots[slot].name: i for i, slot in enumerate(program.inputs)}
    images = []
    for name in names:
        if name not in by_name:
            known = ", ".join(by_name)
            raise refused(f"images={name!r}", f"the inputs are {known}", "name one of these")
        number = by_name[name]
        images.append(_image(options, name, number, program.slots[program.inputs[number]]))
    return images


def _image(options: Options, name: str, number: int, slot: Slot) -> Image:
    """Return input ``number``, called ``name``, as an image; raises UsageError E660 if it is no
    image.
    """
    most, *rest = map(highest, slot.sizes) if len(slot.shape) == 4 else (0,)
    is_fixed = all(isinstance(dim, int) for dim in slot.shape[1:])
    first = bool(rest) and rest[0] in (1, 3)
    if (
        not is_fixed
        or slot.dtype != ir.DataType.FLOAT
        or not (first or (rest and rest[2] in (1, 3)))
    ):
        why = "an image is of float[N,C,H,W] or float[N,H,W,C] with 1 or 3 channels"
        raise refused(f"images={name!r}", why, "name another input, or leave the option out")
    channels = rest[0] if first else rest[2]
    height, width = rest[1:] if first else rest[:2]
    means = _numbers(options, "image_mean", channels, 0.0)
    deviations = _numbers(options, "image_std", channels, 1.0)
    gains = tuple(options.image_scale / deviation for deviation in deviations)
    offsets = tuple(-mean / deviation for mean, deviation in zip(means, deviations, strict=True))
    return Image(number, most, height, width, channels, first, gains, offsets)


def _numbers(options: Options, option: str, count: int, default: float) -> Sequence[float]:
    """Return ``count`` numbers of an option such as ``0.485,0.456,0.406``."""
    text = getattr(options, option)
    try:
        numbers = [float(part) for part in text.split(",")] if text else [default]
    except ValueError:
        numbers = []
    numbers = numbers * count if len(numbers) == 1 else numbers
    if len(numbers) != count or (option == "image_std" and 0.0 in numbers):
        raise _wrong_numbers(option, text, count)
    return numbers


def _wrong_numbers(option: str, text: str, count: int) -> UsageError:
    """Return the error for a list that is not ``count`` numbers."""
    why = f"the image has {count} channels, and the option one number for all or for each"
    return refused(f"{option}={text!r}", why, f"give {count} numbers with commas between them")
