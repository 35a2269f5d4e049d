"""A U-Net with group norms and attention, as diffusion models have."""

from __future__ import annotations

import torch
from torch import nn

from bench.architectures.network import Network, Size


class _Residual(nn.Module):
    """Two convolutions behind group norms, as in the U-Nets of diffusion models."""

    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(4, into), nn.SiLU(), nn.Conv2d(into, out, 3, padding=1)
        )
        self.second = nn.Sequential(
            nn.GroupNorm(4, out), nn.SiLU(), nn.Conv2d(out, out, 3, padding=1)
        )
        self.skip = nn.Conv2d(into, out, 1) if into != out else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.skip(x) + self.second(self.first(x))


class _Pixels(nn.Module):
    """Attention between the pixels of an image."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, width, rows, columns = x.shape
        pixels = self.norm(x).reshape(batch, width, rows * columns).transpose(1, 2)
        mixed = self.attention(pixels, pixels, pixels, need_weights=False)[0]
        return x + mixed.transpose(1, 2).reshape(batch, width, rows, columns)


class _UNet(nn.Module):
    def __init__(self, width: int, heads: int, levels: int) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(levels)]
        self.begin = nn.Conv2d(3, width, 3, padding=1)
        pairs = list(zip([width, *widths], widths, strict=False))
        self.down = nn.ModuleList(_Residual(into, out) for into, out in pairs)
        self.middle = _Pixels(widths[-1], heads)
        self.up = nn.ModuleList(_Residual(2 * out, into) for into, out in reversed(pairs))
        self.end = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.begin(x)
        kept = []
        for block in self.down:
            kept.append(block(x))
            x = nn.functional.avg_pool2d(kept[-1], 2)
        x = self.middle(x)
        for block in self.up:
            x = nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat([x, kept.pop()], 1))
        return self.end(x)


def unet(size: Size) -> Network:
    model = _UNet(max(size.width // 2, 16), size.heads, 3 if size.layers is None else 2)
    image = torch.randn(2, 3, size.image, size.image)
    return Network(model, (image,), {"image": ("batch", None, None, None)})
