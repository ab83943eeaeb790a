"""isal and zlib inflate the same bytes, and refuse the same streams."""

from __future__ import annotations

import mmap
import sys
import zlib
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.debuginfo.elf import compressed
from fetchc.debuginfo.elf.compressed import ZlibInflater, deflate_library
from fetchc.diag.diagnostic import DebugInfoError

LARGE = 1 << 22  # bytes of a section that isal is imported for
WORDS = [b"", b"DW_TAG", b"\0\0\0\1", b"get", bytes(range(256)), b"a" * 300]


def _isal() -> ModuleType:
    found = deflate_library(LARGE)
    if found is zlib:
        pytest.skip("isal is not installed: it has wheels for x86-64 and aarch64")
    return found


def _read(library: ModuleType, stream: bytes, size: int, steps: list[int]) -> bytes | None:
    # The whole content, asked for in steps; None where it is refused.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compressed, "deflate_library", lambda size: library)
        with mmap.mmap(-1, max(len(stream), 1)) as mapped:
            mapped[: len(stream)] = stream
            try:
                inflater = ZlibInflater("file", ".debug_info", mapped, 0, len(stream), size)
                for step in [*steps, size]:
                    inflater.upto(min(step, size))
            except DebugInfoError:
                return None
            return bytes(inflater.view(0, size))


CONTENT = st.lists(st.sampled_from(WORDS) | st.binary(max_size=40), min_size=1).map(
    lambda parts: b"".join(parts) * 40
)
STEPS = st.lists(st.integers(0, 1 << 16), max_size=4)


@given(CONTENT, st.integers(0, 9), STEPS)
def test_both_inflate_a_stream_as_far_as_asked(
    content: bytes, level: int, steps: list[int]
) -> None:
    stream = zlib.compress(content, level)
    assert _read(_isal(), stream, len(content), steps) == content
    assert _read(zlib, stream, len(content), steps) == content


DAMAGE = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=3)


@given(CONTENT, st.integers(1, 9), DAMAGE, st.integers(0, 12), st.integers(-2, 2))
def test_both_refuse_the_same_damage(
    content: bytes, level: int, damage: list[tuple[int, int]], cut: int, more: int
) -> None:
    stream = bytearray(zlib.compress(content, level))
    for at, value in damage:
        stream[at % len(stream)] = value
    del stream[len(stream) - cut :]
    size = max(0, len(content) + more)
    found = _read(_isal(), bytes(stream), size, [])
    assert found == _read(zlib, bytes(stream), size, [])
    assert found in (None, content)


def test_a_difference_is_noticed() -> None:
    stream = zlib.compress(b"abc" * 100)
    assert _read(_isal(), stream, 300, []) != _read(zlib, stream, 299, [])


def test_a_small_section_imports_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "isal.isal_zlib", raising=False)
    assert deflate_library(1 << 16) is zlib
    assert "isal.isal_zlib" not in sys.modules


def test_zlib_inflates_where_isal_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "isal.isal_zlib", raising=False)
    monkeypatch.setitem(sys.modules, "isal", None)
    assert deflate_library(LARGE) is zlib
