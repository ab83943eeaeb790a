"""The stack check's patterns against a disassembler, on every function of real programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import capstone
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from fetchc.code.go_stack_check import after_stack_check, behind_bare_call, growth_start
from fetchc.target.machines import GoRules, Growth, StackCheck, convention
from tests.support.toolchains import ROOT, TOOLCHAINS

# Programs of the corpus, and the assemblers that come with the toolchains (many more functions).
PROGRAMS = {
    "corpus go1.15": (ROOT / "corpus/go/dnsforward/bin/go1.15", "go-x86_64-abi0"),
    "corpus go1.22": (ROOT / "corpus/go/dnsforward/bin/go1.22", "go-x86_64-regabi"),
    "corpus go1.27": (ROOT / "corpus/go/dnsforward/bin/go1.27", "go-x86_64-regabi"),
    "miekg go1.15": (ROOT / "corpus/go/miekg/bin/go1.15", "go-x86_64-abi0"),
    "asm 1.22": (TOOLCHAINS / "go-1.22.10/go/pkg/tool/linux_amd64/asm", "go-x86_64-regabi"),
    "asm 1.27": (TOOLCHAINS / "go-1.27.3/go/pkg/tool/linux_amd64/asm", "go-x86_64-regabi"),
}
CHECK_BYTES = 64
STEPS = {"mov", "lea", "cmp", "sub", "jb", "je", "jbe"}
LIMITS = (0x10, 0x18)  # g.stackguard0 and g.stackguard1


def stack_check(name: str) -> StackCheck:
    rules = convention(name).rules
    assert isinstance(rules, GoRules)
    assert rules.stack_check is not None
    return rules.stack_check


def functions(path: Path) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        symbols = elf.get_section_by_name(".symtab")
        text = elf.get_section_by_name(".text")
        if not isinstance(symbols, SymbolTableSection) or text is None:
            return
        code, base = text.data(), text["sh_addr"]
        found = {
            symbol["st_value"] - base: (symbol.name, symbol["st_size"])
            for symbol in symbols.iter_symbols()
            if symbol["st_info"]["type"] == "STT_FUNC"
        }
        for start, (name, size) in sorted(found.items()):
            if 0 <= start < len(code):
                yield name, code[start : start + min(CHECK_BYTES, size)]


def disassembler() -> capstone.Cs:
    made = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    made.detail = True
    return made


def by_disassembly(machine: capstone.Cs, code: bytes) -> int:
    """After the first jbe that follows a look at g's limit, with no other work before it."""
    limit = False
    for instruction in machine.disasm(code, 0):
        if instruction.mnemonic not in STEPS:
            return 0
        for operand in instruction.operands:
            if operand.type == capstone.x86.X86_OP_MEM:
                base = instruction.reg_name(operand.mem.base)
                limit |= base in ("r14", "rcx") and operand.mem.disp in LIMITS
        if instruction.mnemonic == "jbe":
            return instruction.address + instruction.size if limit else 0
    return 0


def wrong_answers(path: Path, name: str, check: StackCheck) -> tuple[Counter[int], list[str]]:
    machine = disassembler()
    counts: Counter[int] = Counter()
    wrong = []
    for symbol, code in functions(path):
        stack = name.endswith("abi0") or symbol.endswith(".abi0")
        used = stack_check("go-x86_64-abi0") if stack else check
        found = after_stack_check(code, used)
        counts[found] += 1
        if found != by_disassembly(machine, code):
            wrong.append(symbol)
    return counts, wrong


@pytest.mark.parametrize("label", PROGRAMS)
def test_patterns_agree_with_a_disassembler(label: str) -> None:
    path, name = PROGRAMS[label]
    if not path.exists():
        pytest.skip(f"no {path} here (.ci/setup brings the toolchains)")
    counts, wrong = wrong_answers(path, name, stack_check(name))
    if not counts:
        pytest.skip(f"{path} has no symbols")
    print(f"{label}: {counts.total()} functions, {counts.total() - counts[0]} with a check")
    assert not wrong
    assert counts.total() > 500
    assert counts.total() > 2 * counts[0]


@pytest.mark.parametrize("label", PROGRAMS)
def test_nothing_of_the_caller_is_overwritten(label: str) -> None:
    """What is stepped over writes neither the stack pointer nor an argument's register."""
    path, name = PROGRAMS[label]
    if not path.exists():
        pytest.skip(f"no {path} here (.ci/setup brings the toolchains)")
    machine = disassembler()
    stepped = 0
    for symbol, code in functions(path):
        stack = name.endswith("abi0") or symbol.endswith(".abi0")
        allowed = {"rflags", "r12", "r14"} | ({"rcx", "rax", "rsi"} if stack else set())
        check = stack_check("go-x86_64-abi0" if stack else name)
        end = after_stack_check(code, check)
        starts = {0}
        for instruction in machine.disasm(code[:end], 0):
            written = {instruction.reg_name(n) for n in instruction.regs_access()[1]}
            assert written <= allowed, (symbol, instruction)
            starts.add(instruction.address + instruction.size)
        assert end in starts, symbol
        stepped += end > 0
    if not stepped:
        pytest.skip(f"{path} has no symbols")


@pytest.mark.parametrize("broken", ["a sequence is missing", "a length is wrong"])
def test_a_wrong_pattern_is_noticed(broken: str) -> None:
    path, name = PROGRAMS["corpus go1.27"]
    check = stack_check(name)
    if broken == "a sequence is missing":
        check = StackCheck(check.sequences[:1] + check.sequences[2:])
    else:
        lengthened = tuple(
            tuple(type(e)(e.prefix, type(e.size)(e.size + 1)) for e in encodings)
            for encodings in check.sequences[0]
        )
        check = StackCheck((lengthened, *check.sequences[1:]))
    assert wrong_answers(path, name, check)[1]


@pytest.mark.parametrize("name", ["go-x86_64-abi0", "go-x86_64-regabi"])
def test_truncated_code_has_no_check(name: str) -> None:
    check = stack_check(name)
    for sequence in check.sequences:
        code = b"".join(e[0].prefix + bytes(e[0].size - len(e[0].prefix)) for e in sequence)
        assert after_stack_check(code, check) == len(code)
        assert after_stack_check(code + b"\xc3", check) == len(code)
        for size in range(len(code)):
            assert after_stack_check(code[:size], check) == 0


def test_other_first_comparisons_are_no_stack_check() -> None:
    # cmd/asm: encodeI2_1921_16To32Bit starts with cmp $3,%eax; jbe.
    assert after_stack_check(bytes.fromhex("83f803760590"), stack_check("go-x86_64-regabi")) == 0
    # runtime.decoderune stores a parameter first.
    code = bytes.fromhex("48894424084839cb0f8634010000")
    assert after_stack_check(code, stack_check("go-x86_64-regabi")) == 0


def growth(name: str) -> Growth:
    found = stack_check(name).growth
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "code", "start"),
    [
        ("go-x86_64-regabi", "493b66107642", 0x48),  # cmp 0x10(%r14),%rsp; jbe
        ("go-x86_64-regabi", "493b66100f8600010000", 0x10A),  # a far jump
        ("go-aarch64-regabi", "900b40f9f18303d13f0210eb69030054", 0x78),
        ("go-riscv64-regabi", "03b30d01930301f363667300", 12),  # the jump is over it
        ("go-ppc64le-regabi", "1000deea18ffe13a40b8367c10008041", 16),
        ("go-x86_64-regabi", "4883ec10", 0),  # no check
        ("go-x86_64-abi0", "64488b0c25f8ffffff483b61107610", 0),  # no arguments in registers
    ],
)
def test_where_the_stack_is_let_grow(name: str, code: str, start: int) -> None:
    assert growth_start(bytes.fromhex(code), stack_check(name)) == start


@pytest.mark.parametrize(
    ("name", "code", "behind"),
    [
        ("go-x86_64-regabi", "e83bd5fdff", 5),  # call runtime.morestack_noctxt
        ("go-x86_64-regabi", "6690e83bd5fdff", 7),
        ("go-x86_64-regabi", "4889442408e83bd5fdff", 0),  # mov %rax,0x8(%rsp)
        ("go-x86_64-regabi", "f20f11442408e83bd5fdff", 0),  # movsd %xmm0,0x8(%rsp)
        ("go-aarch64-regabi", "e3031eaa6994ff97", 8),
        ("go-aarch64-regabi", "e00700f9e3031eaa3294ff97", 0),
        ("go-riscv64-regabi", "ef925ed6", 4),
        ("go-riscv64-regabi", "2ae4ef92fecd", 0),
        ("go-ppc64le-regabi", "a602a87c0d15fe4b", 8),
        ("go-ppc64le-regabi", "200061f8a602a87c", 0),
    ],
)
def test_whether_registers_are_kept(name: str, code: str, behind: int) -> None:
    assert behind_bare_call(bytes.fromhex(code), growth(name)) == behind
