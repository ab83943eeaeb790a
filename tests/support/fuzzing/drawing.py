"""Damage drawn at random: bytes of anything, and fields where what they mean is known.

A field (``Site``) is overwritten by a number that its kind makes likely to matter: a reference by
the place of another entry, a form by another form, a count by a huge one. Fields of DWARF come
from pyelftools, which shares nothing with the reader that is tested.
"""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from tests.support.assembler import uleb
from tests.support.fuzzing.edits import Edit, content, headers

__all__ = ["Site", "Target", "draw"]

HUGE = (0, 1, 2, 3, 4, 7, 8, 0x10, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000,
        0xFFFFFFF0, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
BYTES = (0, 1, 0x7F, 0x80, 0xFF)
LEB_FORMS = ("DW_FORM_udata", "DW_FORM_sdata", "DW_FORM_ref_udata", "DW_FORM_strx", "DW_FORM_addrx",
             "DW_FORM_loclistx", "DW_FORM_rnglistx", "DW_FORM_GNU_addr_index")  # fmt: skip
BLOCKS = ("DW_FORM_exprloc", "DW_FORM_block", "DW_FORM_block1", "DW_FORM_block2", "DW_FORM_block4")
ENTRIES = 6000  # of a section: more make a base slow to draw from, and nothing else


@dataclass(frozen=True)
class Site:
    """``size`` bytes at ``at`` hold a number, one of LEB128 where ``leb``; ``likely`` ones."""

    at: int
    size: int
    leb: bool = False
    likely: tuple[int, ...] = ()


@dataclass(frozen=True)
class Target:
    """Where damage is done: a section of a file, or bytes of it from ``start`` to ``end``."""

    file: str
    section: str = ""
    start: int = 0
    end: int | None = None


def draw(source: random.Random, files: dict[str, bytes], targets: Sequence[Target]) -> list[Edit]:
    """A few changes, most often a single one."""
    edits = []
    taken: list[tuple[str, str, int, int]] = []
    first = source.choice(targets)
    # Offsets in a file hold only where none of its sections has moved.
    alike = [one for one in targets if bool(one.section) == bool(first.section)]
    for number in range(source.choice((1, 1, 1, 2, 3))):
        edit = _one(source, files, source.choice(alike) if number else first)
        end = edit.at + max(len(edit.was), 1)
        place = edit.file, edit.section
        # Where one change moves what is after it, the next would meet other bytes.
        if any((f, s) == place and (at < end and edit.at < e) for f, s, at, e in taken):
            continue
        taken.append((*place, edit.at, end))
        edits.append(edit)
    # From the end to the front: a change of length leaves what is before it in place.
    return sorted(edits, key=lambda edit: (edit.file, edit.section, -edit.at))


def _one(source: random.Random, files: dict[str, bytes], target: Target) -> Edit:
    held = _held(files[target.file], target.section)
    sites = _sites(files[target.file], target.section)
    if sites and source.random() < 0.7:
        site = source.choice(sites)
        now = _number(source, site)
        return Edit(target.file, target.section, site.at, held[site.at : site.at + site.size], now)
    end = len(held) if target.end is None else min(target.end, len(held))
    at = source.randrange(target.start, max(end, target.start + 1))
    was, now = _bytes(source, held, at, end, target.start)
    return Edit(target.file, target.section, at, was, now)


@lru_cache(maxsize=128)
def _held(raw: bytes, section: str) -> bytes:
    return content(raw, section)


def _number(source: random.Random, site: Site) -> bytes:
    likely = bool(site.likely) and source.random() < 0.75
    value = source.choice(site.likely) if likely else source.choice((*HUGE, source.getrandbits(16)))
    if source.random() < 0.1:
        value = -value
    if not site.leb:
        return (value & (1 << 8 * site.size) - 1).to_bytes(site.size, "little")
    kind = source.randrange(12)
    if kind == 0:
        return b"\x80" * site.size  # goes on into what follows
    if kind == 1:
        return b"\xff" * source.choice((9, 10, 19, 40)) + b"\x7f"
    value &= (1 << 64) - 1
    written = uleb(value, site.size)
    return written if kind == 2 else uleb(value & (1 << 7 * site.size) - 1, site.size)


def _bytes(
    source: random.Random, held: bytes, at: int, end: int, start: int
) -> tuple[bytes, bytes]:
    kind = source.randrange(9)
    if kind <= 1:
        was = held[at : at + 1]
        return was, bytes([(was or b"\0")[0] ^ 1 << source.randrange(8)])
    if kind == 2:
        return held[at : at + 1], bytes([source.choice((*BYTES, source.randrange(256)))])
    width = source.choice((1, 2, 4, 8))
    was = held[at : min(at + width, end)]
    if kind == 3:
        return was, (source.choice(HUGE) & (1 << 64) - 1).to_bytes(8, "little")[: len(was)]
    if kind == 4:  # another number of the same place
        other = start + (source.randrange(max(end - start, 1)) // width * width)
        return was, held[other : other + len(was)].ljust(len(was), b"\0")
    if kind == 5:  # close to what it was: an offset into the midst of something
        near = int.from_bytes(was, "little") + source.choice((-8, -4, -1, 1, 4, 8))
        return was, (near & (1 << 8 * len(was)) - 1).to_bytes(len(was), "little")
    if kind == 6:
        was = held[at : min(at + source.choice((9, 24)), end)]
        return was, source.choice((b"\x80", b"\xff")) * len(was)
    if kind == 7:
        return held[at : min(at + source.randrange(1, 9), end)], b""
    count = source.randrange(1, 33)
    return b"", held[at : min(at + count, end)]


@lru_cache(maxsize=128)
def _sites(raw: bytes, section: str) -> tuple[Site, ...]:
    if section == ".debug_abbrev":
        return tuple(_abbreviations(content(raw, section)))
    if section in (".debug_info", ".debug_types"):
        return tuple(_entries(raw, section))
    if not section:
        return tuple(_of_file(raw))
    return ()


def _of_file(raw: bytes) -> list[Site]:
    # The fields of the headers of an ELF file.
    if raw[:6] != b"\x7fELF\x02\x01":
        return []
    places = [(4, 1), (5, 1), (16, 2), (18, 2), (24, 8), (32, 8), (40, 8), (48, 4)]
    places += [(at, 2) for at in range(52, 64, 2)]
    count = int.from_bytes(raw[56:58], "little")
    likely = (*[one.offset for one in headers(raw).values()], len(raw), len(raw) - 1)
    for number in range(count):
        at = 64 + 56 * number
        places += [(at, 4), (at + 4, 4), *[(at + 8 * n, 8) for n in range(1, 7)]]
    for header in headers(raw).values():
        at = header.header_at
        places += [(at, 4), (at + 4, 4), (at + 40, 4), (at + 44, 4)]
        places += [(at + 8 + 8 * n, 8) for n in range(4)] + [(at + 48, 8), (at + 56, 8)]
    return [Site(at, size, False, likely) for at, size in places if at + size <= len(raw)]


def _abbreviations(held: bytes) -> list[Site]:
    # Code, tag, children, pairs of attribute and form; numbers seen elsewhere are likely.
    found: dict[str, list[tuple[int, int]]] = {"code": [], "tag": [], "attribute": [], "form": []}
    flags: list[int] = []
    at = 0
    while at < len(held):
        code, size = _leb(held, at)
        found["code"].append((at, size))
        at += size
        if not code:
            continue
        _, size = _leb(held, at)
        found["tag"].append((at, size))
        flags.append(at + size)
        at += size + 1
        while at < len(held):
            attribute, size = _leb(held, at)
            found["attribute"].append((at, size))
            form, more = _leb(held, at + size)
            found["form"].append((at + size, more))
            at += size + more
            if form == 0x21:  # DW_FORM_implicit_const
                at += _leb(held, at)[1]
            if not attribute and not form:
                break
    sites = [Site(at, 1, False, (0, 1, 2)) for at in flags]
    for places in found.values():
        likely = tuple(dict.fromkeys(_leb(held, at)[0] for at, _ in places))
        sites += [Site(at, size, True, likely) for at, size in places if size]
    return sites


def _leb(held: bytes, at: int) -> tuple[int, int]:
    value = size = 0
    while at + size < len(held):
        byte = held[at + size]
        value |= (byte & 0x7F) << 7 * size
        size += 1
        if byte < 0x80:
            break
    return value, size


def _entries(raw: bytes, section: str) -> list[Site]:
    elf: Any = ELFFile(io.BytesIO(raw))
    sites: list[Site] = []
    references: list[tuple[int, int, bool, int]] = []
    offsets: list[int] = []
    try:
        dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
        units = dwarf.iter_CUs() if section == ".debug_info" else dwarf.iter_TUs()
        for unit in units:
            start = unit.cu_offset
            sites += [Site(start, 4), Site(start + 4, 2, False, (1, 2, 3, 4, 5, 6))]
            sites += [Site(at, 1) for at in range(start + 6, start + 12)]
            for die in unit.iter_DIEs():
                offsets.append(die.offset - start)
                places = [one.offset for one in die.attributes.values()] + [die.offset + die.size]
                sites.append(Site(die.offset, max(1, min(places) - die.offset), True, (0, 1, 2, 3)))
                for one in die.attributes.values():
                    size = min([at for at in places if at > one.offset], default=0) - one.offset
                    if not 0 < size < 4096:
                        continue
                    leb = one.form in LEB_FORMS
                    if "_ref" in one.form:
                        references.append((one.offset, size, leb, die.offset - start))
                    elif one.form in BLOCKS:
                        sites.append(Site(one.offset, 1))
                        sites += [Site(one.offset + n, 1) for n in range(1, min(size, 12))]
                    elif leb or size <= 8:
                        sites.append(Site(one.offset, size, leb))
                if len(offsets) > ENTRIES:
                    break
    except (ELFError, AttributeError, KeyError):
        pass  # it reads less than we do, and what it has read is enough
    others = tuple(random.Random(len(offsets)).sample(offsets, min(60, len(offsets))))
    sites += [Site(at, size, leb, (*others, own, own)) for at, size, leb, own in references]
    return sites
