"""The live harness itself, with fetch-args that were written by hand from the structures' layouts.

So a failure of the other live tests is fetchc's, not the harness's: here known-good fetch-args
give what the program prints, wrong ones are seen to fail, and nothing stays behind.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from fetchc.ir.fetch import Decode
from tests.live.reading import read, same
from tests.support.programs import calls, fixture
from tests.support.tracefs import Refused, Session, require_uprobes

pytestmark = pytest.mark.live

Row = tuple[str, str, Decode, str | None]

U16, S32, S64, U64 = (
    Decode("integer", 16),
    Decode("integer", 32, signed=True),
    Decode("integer", 64, signed=True),
    Decode("integer", 64),
)
BOOL, TEXT, WORDS = Decode("bool", 8), Decode("text"), Decode("text", 64)

# (expression, body, decoding, body of the length): R stands for the place of r.
MSG = [
    ("r->Question[0].Name", "+0(+0(+40(R))):x64[4]", WORDS, "+8(+40(R))"),
    ("r->Question[1].Name", "+0(+24(+40(R))):x64[4]", WORDS, "+32(+40(R))"),
    ("r->Question[0].Qtype", "+16(+40(R)):u16", U16, None),
    ("r->Question[1].Qtype", "+40(+40(R)):u16", U16, None),
    ("len(r->Question)", "+48(R)", U64, None),
    ("r->Id", "+0(R):u16", U16, None),
    ("r->Rcode", "+24(R):s64", S64, None),
    ("r->Compress", "+32(R):u8", BOOL, None),
]
FLAGS = [
    ("b->one", "+0(%di):b1@0/8", Decode("integer", 1), None),
    ("b->five", "+0(%di):b5@1/8", Decode("integer", 5, signed=True), None),
    ("b->seventeen", "+0(%di):b17@6/32", Decode("integer", 17), None),
    ("p->value", "+1(%si):s32", S32, None),
    ("p->row", "+5(%si):s16[3]", Decode("integer", 16, True, 3), None),
]
CHAIN = [
    ("head->next->next->value", "+0(+8(+8(%di))):s32", S32, None),
    ("head->label", "+0(+16(%di)):string", TEXT, None),
    ("words[2]", "+0(+16(%si)):string", TEXT, None),
    ("text", "+0(%dx):string", TEXT, None),
    ("rows[1][1].i", "+28(%cx):s32", S32, None),
]
KNOWN = [
    ("go/dnsforward/go1.15", "main.(*server).handleRequest", "+32(%sp)", MSG),
    ("go/miekg/go1.15", "main.(*server).handleRequest", "+32(%sp)", MSG),
    ("go/dnsforward/go1.22", "main.(*server).handleRequest", "%di", MSG),
    ("go/dnsforward/go1.27", "main.(*server).handleRequest", "%di", MSG),
    ("go/miekg/go1.27", "main.(*server).handleRequest", "%di", MSG),
    ("c/layouts/gcc-O0-dwarf4", "flags", "", FLAGS),
    ("c/layouts/gcc-O2-dwarf5", "flags", "", FLAGS),
    ("c/layouts/clang-O2-dwarf5", "chain", "", CHAIN),
    ("c/layouts/gcc-O2-dwarf5-nopie", "chain", "", CHAIN),
]


@pytest.fixture
def session() -> Iterator[Session]:
    require_uprobes()
    with Session() as session:
        yield session


def place_of(path: Path, symbol: str) -> tuple[int, bytes]:
    """File offset of a symbol and the first bytes of its code."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        found = table.get_symbol_by_name(symbol)
        assert found, f"no symbol {symbol} in {path}"
        address = found[0]["st_value"]
        for segment in elf.iter_segments("PT_LOAD"):
            if segment["p_vaddr"] <= address < segment["p_vaddr"] + segment["p_filesz"]:
                offset: int = address - segment["p_vaddr"] + segment["p_offset"]
                file.seek(offset)
                return offset, file.read(64)
    raise AssertionError(f"{symbol} is in no segment")


def behind_stack_check(code: bytes) -> int:
    """Length of the stack check, as both Go conventions write it for a frame that is not huge."""
    for check in (b"\x64\x48\x8b\x0c\x25\xf8\xff\xff\xff\x48\x3b\x61\x10", b"\x49\x3b\x66\x10"):
        if code.startswith(check):
            jump = code[len(check) :]
            if jump[:1] == b"\x76":  # jbe rel8
                return len(check) + 2
            if jump[:2] == b"\x0f\x86":  # jbe rel32
                return len(check) + 6
    # A frame over 128 bytes: compares an address below the stack pointer.
    for start, lea, compare in (
        (9, b"\x48\x8d\x44\x24", b"\x48\x3b\x41\x10"),  # rax of 1.15
        (9, b"\x48\x8d\x84\x24", b"\x48\x3b\x41\x10"),
        (0, b"\x4c\x8d\x64\x24", b"\x4d\x3b\x66\x10"),  # r12 of the register convention
        (0, b"\x4c\x8d\xa4\x24", b"\x4d\x3b\x66\x10"),
    ):
        at = start + (8 if lea[2] & 0x80 else 5)  # displacement of 32 or 8 bits
        if code[start:].startswith(lea) and code[at:].startswith(compare):
            return at + 4 + (2 if code[at + 4] == 0x76 else 6)
    raise AssertionError(f"no stack check in {code.hex(' ')}")


def mistakes(
    session: Session,
    name: str,
    function: str,
    table: Sequence[Row],
    shift: int = 0,
) -> list[str]:
    """Run a fixture under one probe and say what differs; ``shift`` makes offsets wrong."""
    path = fixture(name)
    offset, code = place_of(path, function)
    if name.startswith("go/"):
        offset += behind_stack_check(code)
    arguments = []
    for number, (_, body, _, length) in enumerate(table):
        arguments.append(f"a{number}={body}")
        if length is not None:
            arguments.append(f"a{number}_len={length}")
    session.add(f"p:{session.group}/ev {path}:{offset + shift:#x} {' '.join(arguments)}")
    printed = [call for call in calls(session.run([path])) if call.function == function]
    hits = session.hits("ev")
    assert len(printed) >= 3
    if len(hits) != len(printed):
        return [f"{len(hits)} hits of {len(printed)} calls"]
    wrong = []
    for call, hit in zip(printed, hits, strict=True):
        for number, (expression, body, decode, length) in enumerate(table):
            size = int(hit.values[f"a{number}_len"], 16) if length is not None else None
            got = read(hit.values[f"a{number}"], decode, size)
            if not same(got, call.values[expression], decode):
                wrong.append(f"{expression} {body}: {got!r} is not {call.values[expression]!r}")
    return wrong


@pytest.mark.parametrize(("name", "function", "root", "table"), KNOWN)
def test_known_good_fetchargs_give_what_the_program_prints(
    session: Session,
    name: str,
    function: str,
    root: str,
    table: Sequence[Row],
) -> None:
    placed = [
        (expression, body.replace("R", root), decode, length and length.replace("R", root))
        for expression, body, decode, length in table
    ]
    assert mistakes(session, name, function, placed) == []


def test_a_wrong_offset_is_seen(session: Session) -> None:
    wrong = [("p->value", "+2(%si):s32", S32, None)]
    found = mistakes(session, "c/layouts/gcc-O2-dwarf5", "flags", wrong)
    assert len(found) == 3


def test_a_wrong_sign_is_seen(session: Session) -> None:
    wrong = [("b->five", "+0(%di):b5@1/8", Decode("integer", 5), None)]
    found = mistakes(session, "c/layouts/gcc-O2-dwarf5", "flags", wrong)
    assert found[0].endswith("16 is not -16")


def test_the_first_instruction_of_go_counts_calls_twice(session: Session) -> None:
    """Why fetchc probes after the stack check; were it gone, that test would prove nothing."""
    path = fixture("go/dnsforward/go1.27")
    offset, code = place_of(path, "main.burn")
    session.add(f"p:{session.group}/first {path}:{offset:#x} sp=%sp")
    session.add(f"p:{session.group}/behind {path}:{offset + behind_stack_check(code):#x} sp=%sp")
    printed = [call for call in calls(session.run([path])) if call.function == "main.burn"]
    assert len(session.hits("behind")) == len(printed)
    assert len(session.hits("first")) > len(printed)


def test_a_refused_definition_says_why(session: Session) -> None:
    path = fixture("c/layouts/gcc-O2-dwarf5")
    with pytest.raises(Refused, match="Invalid register name"):
        session.add(f"p:{session.group}/ev {path}:0x1000 a=%rdi")


def test_a_program_not_started_here_leaves_no_trace(session: Session) -> None:
    path = fixture("c/layouts/gcc-O2-dwarf5")
    offset, _ = place_of(path, "triple")
    session.add(f"p:{session.group}/ev {path}:{offset:#x} n=%di:s32")
    session.enable()
    subprocess.run([path], stdout=subprocess.DEVNULL, check=True)
    assert session.hits("ev") == []


def test_nothing_stays_behind_when_a_test_fails() -> None:
    require_uprobes()
    path = fixture("c/layouts/gcc-O2-dwarf5")
    offset, _ = place_of(path, "triple")
    tracing = Path("/sys/kernel/tracing")

    def fail(session: Session) -> None:
        session.add(f"p:{session.group}/ev {path}:{offset:#x} n=%di:s32")
        session.enable()
        assert session.group in (tracing / "uprobe_events").read_text()
        raise LookupError("a test that fails")

    with Session() as session, pytest.raises(LookupError):
        fail(session)
    assert session.group not in (tracing / "uprobe_events").read_text()
    assert not (tracing / "instances" / session.group).exists()
