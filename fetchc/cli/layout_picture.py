"""``fetchc types --format svg``: the layout of a type as a picture that a page can embed.

Eight bytes a row, as memory has them; what overlaps (a union's members, bases, variants) is drawn
below each other in its rows. Whole rows within one member are shortened to one. The picture needs
nothing beside it, has a title and a description for screen readers, and follows the reader's
light or dark theme.
"""

from __future__ import annotations

from fetchc.cli.svg import document, escaped
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fetchc.driver.type_layouts import Layout

__all__ = ["MOST_ROWS", "Part", "parts", "picture"]

MOST_ROWS = 4096
_ROW_BITS = 64
_BIT, _HEIGHT, _LEFT, _RIGHT, _TOP = 9, 26, 64, 116, 44  # pixels
_CHARACTER = 7.3  # pixels of a character of the font
_COLORS = 6

_STYLE = """
text{font:12px ui-monospace,monospace;fill:#1b1f24}
.t{font-size:14px;font-weight:bold}.o{fill:#57606a;text-anchor:end}.l{fill:#57606a}
rect{stroke:#57606a;stroke-width:1}.h{fill:url(#hole)}.hl{stroke:#8c959f}
.c0{fill:#cfe3fb}.c1{fill:#d6f0d2}.c2{fill:#fbe3c8}.c3{fill:#e7dbf7}.c4{fill:#cdeef0}.c5{fill:#f8d7de}
.line{stroke:#cf222e;stroke-width:2;stroke-dasharray:6 3}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.o,.l{fill:#9198a1}rect{stroke:#9198a1}.hl{stroke:#6e7681}
.c0{fill:#1c3a5e}.c1{fill:#1f4423}.c2{fill:#5a3a14}.c3{fill:#3f2c5f}.c4{fill:#164a4e}.c5{fill:#5a2430}
.line{stroke:#ff7b72}}
""".replace("\n", "")


class Part(Record):
    """A member or a hole in bits of the object; ``color`` is -1 of a hole."""

    name: str
    type: str
    start: int
    end: int
    color: int


def parts(layout: Layout, spell: Callable[[str], str]) -> list[Part]:
    """The members and holes of a layout, with those of its variants; some have no size."""
    found: list[Part] = []
    listed = [(row, "") for row in layout.rows]
    listed += [(row, f"{one.name}.") for one in layout.variants for row in one.rows]
    for row, before in listed:
        start, size = 8 * row.offset, 8 * (row.size or 0)
        if row.bits is not None:
            start, size = row.bits.offset, row.bits.width
        name = "(hole)" if row.name is None else before + (row.name or "(anonymous)")
        color = -1 if row.name is None else len(found) % _COLORS
        found.append(Part(name, spell(row.type), start, start + size, color))
    return found


def picture(layout: Layout, line_bytes: int, spell: Callable[[str], str]) -> str:
    """The SVG of a layout. ``line_bytes`` is the size of a cache line, ``spell`` shortens a type.

    Raises ValueError where it has nothing to draw, or more than :data:`MOST_ROWS` rows.
    """
    shown = parts(layout, spell)
    if not shown or not layout.size:
        raise ValueError(f"`{spell(layout.name)}` has no members to draw")
    rows = list(_rows(shown, 8 * layout.size, 8 * line_bytes))
    if len(rows) > MOST_ROWS:
        raise ValueError(f"`{spell(layout.name)}` takes {len(rows):,} rows, more than {MOST_ROWS}")
    drawn, y, crossed = [], _TOP, 0
    for start, end, lanes in rows:
        if start // (8 * line_bytes) > crossed:
            crossed = start // (8 * line_bytes)
            right = _LEFT + _ROW_BITS * _BIT
            drawn.append(f'<path class="line" d="M{_LEFT} {y}H{right}"/>')
            drawn.append(f'<text class="l" x="{right + 6}" y="{y + 4}">cache line {crossed}</text>')
        drawn.append(f'<text class="o" x="{_LEFT - 8}" y="{y + 17}">{start // 8:#x}</text>')
        for lane in lanes:
            for part in lane:
                drawn += _box(part, start, end, y)
            y += _HEIGHT
    width, height = _LEFT + _ROW_BITS * _BIT + _RIGHT, y + 12
    lines = -(-layout.size // line_bytes)
    name = spell(layout.name)
    title = f"{name} ({layout.kind}, {layout.size} bytes, {_many(lines, 'cache line')})"
    return document(
        f"Layout of {title}",
        "; ".join(map(_in_words, shown)),
        (width, height),
        [
            '<defs><pattern id="hole" width="6" height="6" patternUnits="userSpaceOnUse">'
            '<path class="hl" d="M0 6L6 0"/></pattern></defs>',
            f'<text class="t" x="{_LEFT}" y="26">{escaped(title)}</text>',
            *drawn,
        ],
        _STYLE,
    )


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _in_words(part: Part) -> str:
    size = part.end - part.start
    what = f"{part.name} {part.type}".rstrip()
    if size % 8 or part.start % 8:
        return f"bit {part.start}: {what}, {_many(size, 'bit')}"
    return f"byte {part.start // 8}: {what}, {_many(size // 8, 'byte')}"


def _rows(shown: list[Part], bits: int, line: int) -> Iterator[tuple[int, int, list[list[Part]]]]:
    # Start and end in bits, and the parts of a row in lanes without overlap. Shortened rows end
    # where a cache line does, or are some lines as a whole.
    sized = [part for part in shown if part.end > part.start]
    ordered = sorted(sized, key=lambda part: (part.start, -part.end))
    start, first = 0, 0
    while start < bits:
        # Those that ended are behind: parts are looked at once, but for long ones.
        inside = [p for p in ordered[first:] if p.start < start + _ROW_BITS and p.end > start]
        end = start + _ROW_BITS
        if len(inside) == 1 and inside[0].start <= start:
            whole = inside[0].end // _ROW_BITS * _ROW_BITS
            later = min([p.start for p in ordered[first:] if p.start > start], default=whole)
            end = max(end, min(whole, later // _ROW_BITS * _ROW_BITS))
            if end - start > line and not start % line:
                end = end // line * line
            else:
                end = min(end, (start // line + 1) * line)
        lanes: list[list[Part]] = []
        for part in inside:
            lane = next((one for one in lanes if one[-1].end <= part.start), None)
            if lane is None:
                lanes.append([part])
            else:
                lane.append(part)
        yield start, end, lanes or [[]]
        start = end
        while first < len(ordered) and ordered[first].end <= start:
            first += 1


def _box(part: Part, start: int, end: int, y: int) -> Iterator[str]:
    left, right = max(part.start, start), min(part.end, end)
    if end - start > _ROW_BITS:  # several rows in one: it fills them
        left, right = start, start + _ROW_BITS
    x, width = _LEFT + (left - start) * _BIT, (right - left) * _BIT
    style = "h" if part.color < 0 else f"c{part.color}"
    yield f"<g><title>{escaped(_in_words(part))}</title>"
    yield f'<rect class="{style}" x="{x}" y="{y}" width="{width}" height="{_HEIGHT}"/>'
    more = f"  … to {end // 8:#x}" if end - start > _ROW_BITS else ""
    label = f"{part.name} {part.type}".rstrip() + more if part.start >= start or more else "…"
    room = int((width - 8) / _CHARACTER)
    texts: Iterable[str] = (label, part.name, part.name[: max(0, room - 1)] + "…")
    text = next((one for one in texts if len(one) <= room), "")
    yield f'<text x="{x + 4}" y="{y + 17}">{escaped(text)}</text></g>'
