"""Random fetches, sound and unsound, and the memory they run on."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from fetchc.conformance.machine import Memory
from fetchc.ir.arithmetic import Number
from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Deref,
    ElementAddress,
    Fetch,
    Image,
    Immediate,
    Part,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Store,
    Term,
    Text,
    Value,
    Word,
)
from fetchc.ir.term_operators import Numeral, calculate, fails_where, negated

# Pages that a process may map where it likes; the strings end with their page.
DATA, TEXT, BIAS = 0x10000, 0x20E00, 0xF000
PAGE = 4096
WIDTHS = (8, 16, 32, 64)

offsets = st.one_of(
    st.sampled_from((0, 8, 16, 24, 40, -8)),
    st.integers(-300, 300),
    st.integers(-(2**31), 2**31 - 1),
)
# What does not fit: silently cut by the kernel, to be refused here.
wild_offsets = st.one_of(offsets, st.integers(-(2**40), 2**40))


def bases(returning: bool = False, bias: int = BIAS) -> st.SearchStrategy[Value]:
    """The bottoms of chains; the ``@`` forms come with their load."""
    plain: list[st.SearchStrategy[Value]] = [
        st.builds(Register, st.sampled_from(("di", "si", "ax", "r8", "sp"))),
        st.just(StackPointer()),
        st.builds(StackEntry, st.integers(0, 40)),
        st.builds(
            Immediate, st.one_of(st.integers(-(2**63), 2**64 - 1), st.integers(DATA, DATA + 999))
        ),
        st.builds(Deref, st.builds(Absolute, st.integers(DATA - 8, DATA + 999)), st.just(0)),
        st.builds(
            Deref, st.builds(Image, st.integers(DATA - 8 - bias, DATA + 999 - bias)), st.just(0)
        ),
    ]
    if returning:
        plain.append(st.just(ReturnValue()))
    return st.one_of(*plain)


@st.composite
def chains(
    draw: st.DrawFn, returning: bool = False, wild: bool = False, longest: int = 5, bias: int = BIAS
) -> Value:
    """A base below up to ``longest`` dereferences."""
    value = draw(bases(returning, bias))
    used = wild_offsets if wild else offsets
    for offset in draw(st.lists(used, max_size=longest)):
        value = Deref(value, offset, draw(st.sampled_from((False, False, False, True))))
    return value


@st.composite
def elements(draw: st.DrawFn, bias: int = BIAS) -> Fetch:
    """Fetches by an index that varies, mostly below the number of elements."""
    begin = st.one_of(
        st.builds(Register, st.sampled_from(("di", "si"))),
        st.builds(Image, st.just(DATA - bias)),
        st.builds(Deref, st.just(Register("di")), st.sampled_from((0, 8, 4096))),
    )
    number = st.builds(
        Part, st.just(Register("si")), st.integers(0, 80), st.sampled_from((1, 2, 4))
    )
    index = calculate("and", draw(number), draw(st.sampled_from((7, 63, 0xFFFF))))
    count: Term = draw(st.one_of(st.just(8), number))
    moved = calculate("mul", index, draw(st.sampled_from((1, 8, 24))))
    address = Numeral(calculate("add", draw(begin), moved), Number(64, False))
    beyond = negated(calculate("lt", index, count))
    value: Value = ElementAddress(fails_where(beyond, address, None).term)
    for offset in draw(st.lists(offsets, max_size=3)):
        value = Deref(value, offset)
    return Fetch(value, draw(stores() if isinstance(value, Deref) else st.just(Word())))


@st.composite
def bit_fields(draw: st.DrawFn, wild: bool = False) -> Bits:
    """Bits of a container; ``wild`` ones may lie outside."""
    container = draw(st.sampled_from(WIDTHS))
    if wild:
        return Bits(draw(st.integers(0, 70)), draw(st.integers(0, 70)), container)
    width = draw(st.integers(1, container))
    return Bits(width, draw(st.integers(0, container - width)), container)


def stores(wild: bool = False) -> st.SearchStrategy[Store]:
    """Every type a program's probe can have; ``wild`` ones break its rules."""
    elements: st.SearchStrategy[Scalar | Char | Bits | Text] = st.one_of(
        st.builds(Scalar, st.sampled_from(("u", "s", "x")), st.sampled_from(WIDTHS)),
        st.just(Char()),
        bit_fields(wild),
        st.builds(Text, st.booleans()),
    )
    counts = st.integers(-1, 70) if wild else st.integers(1, 6)
    return st.one_of(st.just(Word()), elements, st.builds(Array, elements, counts))


def fetches(
    returning: bool = False, wild: bool = False, longest: int = 5, bias: int = BIAS
) -> st.SearchStrategy[Fetch]:
    """Fetches; those of ``wild`` break rules now and then, the others only that of the base."""
    random = st.builds(Fetch, chains(returning, wild, longest, bias), stores(wild))
    return st.one_of(random, random, random, st.builds(Fetch, st.just(Comm()), stores(wild)))


def memory(seed: int) -> tuple[Memory, dict[str, int]]:
    """A region full of pointers to itself and to strings, a region of strings, and registers.

    Some pointers are NULL or lead nowhere, and the last text has no NUL.
    """
    random = Random(seed)
    words = []
    for _ in range(128):
        data = DATA + random.randrange(0, 1024, 8)
        text = TEXT + random.randrange(512)
        wrong = random.choice((0, 0xDEAD0000, TEXT + 511, random.getrandbits(64)))
        words.append(random.choice((data, data, data, text, wrong)))
    data_bytes = b"".join([word.to_bytes(8, "little") for word in words])
    text_bytes = bytes([random.choice(b'\0abcdefgh\xe9"\\') for _ in range(511)]) + b"z"
    registers = {name: DATA + random.randrange(0, 512, 8) for name in ("di", "si", "r8", "sp")}
    registers["ax"] = random.choice((0, DATA, random.getrandbits(64)))
    pages = {DATA: data_bytes.ljust(PAGE, b"\0"), TEXT & -PAGE: text_bytes.rjust(PAGE, b"\0")}
    return Memory(pages), registers
