"""Points at instructions that uprobes do not take are refused, with one thing to do."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import fetchc
from fetchc.cli import main
from tests.support.toolchains import require

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64")

SOURCE = """\
long count;
__attribute__((noinline)) void bump(long by)
{
  __asm__ volatile("lock addq %1, %0" : "+m"(count) : "r"(by));
}
__attribute__((noinline)) void twice(long by)
{
  __asm__ volatile("nop\\n\\tlock addq %1, %0\\n\\tlock addq %1, %0" : "+m"(count) : "r"(by));
}
__attribute__((noinline)) void stores(void)
{
  __asm__ volatile("vzeroupper");
}
__attribute__((noinline)) void away(void *to)
{
  __asm__ volatile("nop\\n\\tnotrack jmp *%0" : : "r"(to));
}
static inline __attribute__((always_inline)) void inlined(long by)
{
  __asm__ volatile("lock subq %1, %0" : "+m"(count) : "r"(by));
}
__attribute__((noinline)) void outer(long by)
{
  inlined(by);
}
__attribute__((noinline)) void told(long by)
{
  __asm__ volatile("990: lock addq %1, %0\\n"
    ".pushsection .note.stapsdt,\\"\\",\\"note\\"\\n .balign 4\\n .4byte 992f-991f, 994f-993f, 3\\n"
    "991: .asciz \\"stapsdt\\"\\n992: .balign 4\\n993: .8byte 990b\\n .8byte 0\\n .8byte 0\\n"
    " .asciz \\"own\\"\\n .asciz \\"locked\\"\\n .asciz \\"-8@%%rdi\\"\\n994: .balign 4\\n"
    ".popsection" : "+m"(count) : "r"(by));
}
int main(int argc, char **argv)
{
  (void)argv;
  bump(argc); twice(argc); stores(); outer(argc); told(argc);
  if (argc > 9)
    away(argv);
  return (int)count;
}
"""


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    pytest.importorskip("capstone", reason="no disassembler")
    where = tmp_path_factory.mktemp("unprobeable")
    (where / "lock.c").write_text(SOURCE)
    command = ["gcc", "-g", "-O1", "-fcf-protection=none", "lock.c", "-o", "lock"]
    subprocess.run(command, cwd=where, check=True, timeout=60)
    return where / "lock"


def refusal(binary: Path, name: str | None, at: str | None = None, returns: bool = False) -> str:
    with pytest.raises(fetchc.CompileError) as caught:
        fetchc.open(str(binary)).probe(name, at=at, returns=returns, kernel="6.18")
    (found,) = caught.value.diagnostics
    assert found.code == "FC0515"
    return f"{found.message}; {found.help}"


POINTS = [
    ("bump", None, False),
    ("bump", None, True),
    ("bump", "+0", False),
    ("twice", "+1", False),
    ("bump", ":4", False),
    (None, "lock.c:4", False),
    ("inlined", None, False),
    ("own:locked", None, False),
]


@pytest.mark.parametrize(("name", "at", "returns"), POINTS)
def test_every_kind_of_point(binary: Path, name: str | None, at: str | None, returns: bool) -> None:
    said = refusal(binary, name, at, returns)
    assert f"of `{binary}` cannot be probed: it has the prefix `lock`; probe the next one" in said


def test_the_action_is_one_that_can_be_taken(binary: Path) -> None:
    program = fetchc.open(str(binary))
    for name, at, side in (("twice", "+1", "next"), ("away", "+1", "last")):
        said = refusal(binary, name, at)
        assert f"probe the {side} one" in said
        offset = said.partition("--at ")[2].rstrip("`")
        assert program.probe(name, at=offset, kernel="6.18").kind in ("offset", "entry")


def test_a_probe_that_would_change_the_program(binary: Path) -> None:
    with pytest.raises(fetchc.CompileError) as caught:
        fetchc.open(str(binary)).probe("stores", kernel="6.18")
    (found,) = caught.value.diagnostics
    assert found.notes == (
        "the kernel sets a probe there, but does not execute the instruction as written",
        "`trace --engine breakpoint` takes any instruction, of one process",
    )


def test_a_definition_by_hand(binary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = fetchc.open(str(binary))
    good, bad = program.probe("twice", kernel="6.18").offset, program.probe("twice").offset + 1
    assert main(["check", f"p:fetchc_a/b {binary}:{good:#x}"]) == 0
    capsys.readouterr()
    assert main(["check", f"p:fetchc_a/b {binary}:{bad:#x}"]) != 0
    assert "error[FC0515]: the instruction at `twice`+0x1" in capsys.readouterr().err


def test_questions_of_a_batch(binary: Path) -> None:
    question = json.dumps({"binary": str(binary), "function": "bump", "expressions": ["by"]})
    done = subprocess.run(
        [sys.executable, "-m", "fetchc", "compile", "--batch", "-"],
        input=question + "\n",
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "FC0515" in done.stdout


LEAVES = """\
__asm__(".globl first\\n.type first,@function\\nfirst: .byte 0x0f,0x1f,0x44,0,0\\n"
  "mov %rdi,-8(%rsp)\\n990: .byte 0x66,0x66,0x66,0x66,0x90\\nmov -8(%rsp),%rax\\nret\\n"
  ".size first,.-first\\n"
  ".globl loops\\n.type loops,@function\\nloops: .byte 0x0f,0x1f,0x44,0,8\\n"
  "1: dec %rdi\\njnz 1b\\nret\\n.size loops,.-loops\\n"
  ".globl cases\\n.type cases,@function\\ncases: .byte 0x0f,0x1f,0x44,0,8\\n"
  "mov (%rdi),%rax\\njmp *%rax\\n.size cases,.-cases\\n"
  ".globl pushes\\n.type pushes,@function\\npushes: .byte 0x0f,0x1f,0x44,0,8\\n"
  "push %rbx\\npop %rbx\\njmp *%rdi\\n.size pushes,.-pushes\\n");
__asm__(".pushsection .note.stapsdt,\\"\\",\\"note\\"\\n.balign 4\\n"
  ".4byte 992f-991f, 994f-993f, 3\\n"
  "991: .asciz \\"stapsdt\\"\\n992: .balign 4\\n993: .8byte 990b\\n .8byte 0\\n .8byte 0\\n"
  ".asciz \\"own\\"\\n .asciz \\"amid\\"\\n .asciz \\"8@%rdi\\"\\n994: .balign 4\\n.popsection");
int main(void) { return 0; }
"""


@pytest.fixture(scope="module")
def leaves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    pytest.importorskip("capstone", reason="no disassembler")
    where = tmp_path_factory.mktemp("leaves")
    (where / "leaves.c").write_text(LEAVES)
    command = ["gcc", "-O1", "leaves.c", "-o", "leaves"]
    subprocess.run(command, cwd=where, check=True, timeout=60)
    return where / "leaves"


@pytest.mark.parametrize("returns", [False, True])
def test_an_entry_on_a_nop_that_the_kernel_replaces(leaves: Path, returns: bool) -> None:
    program = fetchc.open(str(leaves))
    for name in ("first", "pushes"):
        moved, plain = [
            program.probe(name, returns=returns, kernel=version).address
            for version in ("6.18", "7.3")
        ]
        assert moved == plain + 5
    assert program.probe("first", kernel="6.17").kind == program.probe("first").kind == "entry"


def test_a_static_probe_on_one(leaves: Path) -> None:
    program = fetchc.open(str(leaves))
    moved, plain = [program.probe("own:amid", kernel=version) for version in ("6.18", "7.3")]
    assert (moved.kind, moved.address) == ("static", plain.address + 5)
    assert moved.compile("$arg1").fetcharg == plain.compile("$arg1").fetcharg == "%di:u64"


@pytest.mark.parametrize("name", ["loops", "cases"])
def test_a_place_that_is_reached_without_the_nop(leaves: Path, name: str) -> None:
    with pytest.raises(fetchc.CompileError) as caught:
        fetchc.open(str(leaves)).probe(name, kernel="6.18")
    (found,) = caught.value.diagnostics
    assert found.code == "FC0516"
    assert found.notes[1] == "a jump may lead to the instruction after it"


def test_an_address_on_such_a_nop(leaves: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = fetchc.open(str(leaves))
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe("first", at="+10", kernel="6.18")
    assert caught.value.diagnostics[0].help == "probe the instruction after it: `--at +0xf`"
    assert program.probe("first", at="+0xf", kernel="6.18").kind == "offset"
    for kernel, status in (("6.18", 1), ("7.3", 0), ("6.12", 0)):
        line = f"p:fetchc_a/b {leaves}:{program.probe('first', kernel='6.12').offset:#x}"
        assert main(["check", line, "--kernel", kernel]) == status
        said = capsys.readouterr()
        assert "accepted from 3.5 to 6.17 and from 7.3" in said.out
        assert ("error[FC0516]" in said.err) == bool(status)
