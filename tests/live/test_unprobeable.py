"""Which instructions the running kernel sets uprobes on, and which it then runs as they are.

Every instruction is put into a program that only waits. Whether a breakpoint is where a probe was
asked for is read from the memory of the process.
"""

from __future__ import annotations

import platform
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fetchc.code.uprobe_instructions import unprobeable
from fetchc.target.machines import table
from tests.support.toolchains import require
from tests.support.tracefs import Session, require_uprobes

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64"),
]

SLOT = 32  # bytes from one instruction to the next
BREAKPOINT = 0xCC
PREFIXES = (0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3)
# REX2: refused for kernels whose decoder does not know it.
NEWER = 0xD5
# Of AMD alone, and not in the kernel's tables: extrq, and the fused products of four operands.
UNKNOWN = ("extrq", "vpermil2", "vfmadd", "vfmsub", "vfnmadd", "vfnmsub")


def codes() -> Iterator[bytes]:
    for opcode in range(256):
        yield bytes([opcode, 0xC0])
        yield bytes([opcode, 0x05])
        yield bytes([0x0F, opcode, 0xC0])
        yield bytes([0x66, 0x0F, opcode, 0xC0])
        for prefix in PREFIXES:
            yield bytes([prefix, opcode, 0xC0])
        if opcode not in PREFIXES:
            yield bytes([0x48, opcode, 0xC0])
        for kind in range(4):  # none, 66, f3, f2
            yield bytes([0xC5, 0xF8 | kind, opcode, 0xC0])
            yield bytes([0xC4, 0xE2, 0x78 | kind, opcode, 0xC0])
            yield bytes([0xC4, 0xE3, 0x78 | kind, opcode, 0xC0])
            yield bytes([0x62, 0xF1, 0x7C | kind, 0x48, opcode, 0xC0])
            yield bytes([0x62, 0xF2, 0x7C | kind, 0x48, opcode, 0xC0])
    for register in range(8):
        yield bytes([0x8E, 0xC0 | register << 3])
        yield bytes([0xC4, 0xE2, 0x79, 0x8E, register << 3])


def build(folder: Path, slots: Sequence[bytes]) -> tuple[Path, int]:
    lines = [".globl main", "main: push %rbx", "mov $1,%edi", "lea main(%rip),%rsi"]
    lines += ["mov $1,%edx", "call write", "1: call pause", "jmp 1b", f".balign {SLOT}"]
    lines += [".globl table", "table:"]
    lines += [f".byte {','.join(str(byte) for byte in slot)}" for slot in slots]
    (folder / "all.s").write_text("\n".join([*lines, '.section .note.GNU-stack,""', ""]))
    program = folder / "all"
    command = ["gcc", "-no-pie", "all.s", "-o", "all"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return program, symbol(program, "table")


def symbol(program: Path, name: str) -> int:
    listed = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    (found,) = [line.split()[0] for line in listed.splitlines() if line.endswith(f" {name}")]
    return int(found, 16)


LOADED = 0x400000  # where ld puts a program that is not position-independent


def memory(program: Path, address: int, size: int) -> bytes:
    with subprocess.Popen([program], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.read(1)  # it runs: all of it is mapped
            with open(f"/proc/{process.pid}/mem", "rb", 0) as file:
                file.seek(address)
                return file.read(size)
        finally:
            process.kill()


def test_the_table_is_the_kernels(tmp_path: Path) -> None:
    require_uprobes()
    require("gcc")
    capstone = pytest.importorskip("capstone", reason="no disassembler")
    wanted = [code for code in dict.fromkeys(codes()) if code[0] != BREAKPOINT]
    slots = [code.ljust(16, b"\0").ljust(SLOT, b"\x90") for code in wanted]
    program, start = build(tmp_path, slots)
    with Session() as session:
        for number in range(len(slots)):
            # Few events of many probes: they are made and taken away faster.
            place = f"{program}:{start - LOADED + SLOT * number:#x}"
            session.add(f"p:{session.group}/e{number // 256} {place}")
        session.enable()
        seen = memory(program, start, SLOT * len(slots))
    disassembler = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    rules = table("arch/x86_64")["uprobes"]
    wrong, taken, refused = [], 0, 0
    for number, slot in enumerate(slots):
        is_set = seen[SLOT * number] == BREAKPOINT
        found = unprobeable(slot, rules)
        said = found is None or found.harmful
        taken, refused = taken + (is_set and said), refused + (not is_set and not said)
        if is_set == said or NEWER in slot[:2]:
            continue
        instruction = next(disassembler.disasm(slot, 0), None)
        # What is no instruction, the kernel does not decode either.
        if is_set or (instruction is not None and not instruction.mnemonic.startswith(UNKNOWN)):
            wrong.append(slot[:8].hex())
    assert wrong == []
    assert taken > 2000
    assert refused > 2000


# Each leaves a value in xmm0 of which the low half is printed; long code after, so that running on
# in the kernel's copy of 16 bytes is noticed.
VECTORS = {
    "store": ("c5 fa 7f 00", True),  # vmovdqu %xmm0,(%rax)
    "equal": ("c5 f1 74 c1", True),  # vpcmpeqb %xmm1,%xmm1,%xmm0
    "either": ("c5 f1 eb c1", True),  # vpor %xmm1,%xmm1,%xmm0
    "subtract": ("c5 f9 e8 c1", True),  # vpsubsb %xmm1,%xmm0,%xmm0
    "compare": ("c5 f0 c2 c1 00", True),  # vcmpeqps %xmm1,%xmm1,%xmm0
    "product": ("c4 e2 f1 9d c1", True),  # vfnmadd132sd %xmm1,%xmm1,%xmm0
    "add": ("c5 f1 d4 c1", False),  # vpaddq: never set
    "sum": ("c5 f0 58 c1", None),  # vaddps: nothing is wrong with it
}


def vectors(folder: Path) -> Path:
    lines = [".globl main", "main: push %rbx", "sub $64,%rsp"]
    for name, (code, _) in VECTORS.items():
        listed = ",".join(f"0x{byte}" for byte in code.split())
        lines += ["movabs $0x0101010101010101,%rdx", "movq %rdx,%xmm1", "vpxor %xmm0,%xmm0,%xmm0"]
        lines += ["movq $7,(%rsp)", "mov %rsp,%rax", f".globl at_{name}", f"at_{name}:"]
        lines += [f".byte {listed}", *["lea 0(,%rsi,1),%rsi"] * 4]
        lines += ["movq %xmm0,%rsi", "mov (%rsp),%rdx", "lea text(%rip),%rdi", "xor %eax,%eax"]
        lines += ["call printf"]
    lines += ["xor %eax,%eax", "add $64,%rsp", "pop %rbx", "ret"]
    lines += ['text: .asciz "%lx %lx\\n"', '.section .note.GNU-stack,""', ""]
    (folder / "vectors.s").write_text("\n".join(lines))
    command = ["gcc", "-no-pie", "vectors.s", "-o", "vectors"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "vectors"


def output(session: Session, program: Path) -> str:
    try:
        return session.run([program])
    except subprocess.CalledProcessError as killed:
        return signal.Signals(-killed.returncode).name


@pytest.mark.parametrize("name", VECTORS)
def test_what_a_probe_does_to_vector_instructions(tmp_path: Path, name: str) -> None:
    require_uprobes()
    require("gcc")
    features = Path("/proc/cpuinfo").read_text().split()
    if "avx2" not in features or "fma" not in features:
        pytest.skip("the processor has no AVX2 and FMA")
    program = vectors(tmp_path)
    code, harmful = VECTORS[name]
    alone = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    with Session() as session:
        place = symbol(program, f"at_{name}") - LOADED
        session.add(f"p:{session.group}/e {program}:{place:#x}")
        probed = output(session, program)
        hits = len(session.hits("e"))
    found = unprobeable(bytes.fromhex(code), table("arch/x86_64")["uprobes"])
    assert (None if found is None else found.harmful) == harmful
    assert (probed != alone) == (harmful is True)
    assert hits == (0 if harmful is False else 1)
