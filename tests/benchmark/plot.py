"""A plot of cost against size, both logarithmic, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from xml.sax.saxutils import escape

__all__ = ["svg"]

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 60, 110, 20, 50
COLOURS = ("#c0392b", "#e67e22", "#7f8c8d", "#2471a3", "#1e8449", "#7d3c98", "#b7950b", "#117a65")
UNITS = ((1e6, "MB"), (1e3, "KB"), (1.0, "B"))


def svg(series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Lines through (bytes of debug information, milliseconds of CPU), one for each tool."""
    points = [point for line in series.values() for point in line]
    if not points:
        raise ValueError("nothing to plot")
    xs, ys = _decades([x for x, _ in points]), _decades([y for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (log10(x) - xs[0]) / (xs[1] - xs[0])
        up = (log10(y) - ys[0]) / (ys[1] - ys[0])
        width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        return round(LEFT + across * width, 1), round(HEIGHT - BOTTOM - up * height, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for power in range(xs[0], xs[1] + 1):
        x, low = place(10.0**power, 10.0 ** ys[0])
        parts.append(f'<path d="M{x} {TOP}V{low}" stroke="#ddd"/>')
        parts.append(_text(x, low + 16, _bytes(10.0**power), "middle"))
    for power in range(ys[0], ys[1] + 1):
        x, y = place(10.0 ** xs[0], 10.0**power)
        parts.append(f'<path d="M{x} {y}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(_text(x - 6, y + 4, f"{10.0**power:g} ms", "end"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "debug information", "middle"))
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [place(x, y) for x, y in sorted(line)]
        path = "L".join(f"{x} {y}" for x, y in places)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places]
        label = TOP + 16 * (number + 1)
        side = WIDTH - RIGHT + 12
        parts.append(f'<circle cx="{side}" cy="{label - 4}" r="4" fill="{colour}"/>')
        parts.append(_text(side + 8, label, name, "start"))
    return "\n".join([*parts, "</svg>\n"])


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low = floor(log10(min(values)))
    return low, max(low + 1, ceil(log10(max(values))))


def _bytes(value: float) -> str:
    size, unit = next((size, unit) for size, unit in UNITS if value >= size)
    return f"{value / size:g} {unit}"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
