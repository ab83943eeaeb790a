"""Where thread-local variables are: what the program itself computes; what is not certain."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from fetchc.debuginfo.open_file import open_binary
from fetchc.program.entities import Absent, Place, ThreadLocal
from fetchc.quantities import Address, ByteOffset
from tests.support.toolchains import require

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="wrfsbase of x86-64")

NAMES = ("first", "aligned", "last", "zeros", "letters")
SOURCE = """
#include <stdio.h>
__thread long first = 1;
static __thread _Alignas(%d) char aligned = 2;
__thread short last = 3;
static __thread int zeros[5];
__thread char letters[%d];
#ifdef WRITES
void write_base(void *to) { __asm__ volatile("wrfsbase %%0" :: "r"(to)); }
#endif
int main(void) {
  char *pointer = __builtin_thread_pointer();
  printf("%%ld %%ld %%ld %%ld %%ld\\n", (char *)&first - pointer, &aligned - pointer,
         (char *)&last - pointer, (char *)zeros - pointer, letters - pointer);
}
"""
LIBRARY = """
static __thread long padding = 1, counter = 2;
long *in_library(int at) { return at ? &padding : &counter; }
"""
PREEMPTED = """
static __thread long own = 1;
__thread long shared = 2;
long both(void) { return own++ + shared++; }
"""
# The linker leaves out a variable, and writes the place of the first one for it.
LEFT_OUT = """
__thread long first = 1, unused = 2;
long never(void) { return unused; }
int main(void) { return first++; }
"""


def built(folder: Path, source: str, *flags: str) -> Path:
    require("gcc")
    (folder / "tls.c").write_text(source)
    command = ["gcc", "-g", "-O1", "-w", "-o", "tls", "tls.c", *flags]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "tls"


def rows(*command: str | Path) -> list[list[str]]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return [line.split() for line in done.stdout.splitlines()]


def place(binary: Path, name: str) -> Place:
    program = open_binary(str(binary))
    (variable,) = program.global_variables(name, None)
    return program.place(variable, None, Address(0))


@pytest.mark.parametrize(
    ("alignment", "letters", "flags"),
    [(1, 61, ("-static",)), (64, 3, ("-no-pie",)), (256, 1, ("-pie",))],
)
def test_the_distance_is_what_the_program_computes(
    alignment: int, letters: int, flags: tuple[str, ...], tmp_path: Path
) -> None:
    binary = built(tmp_path, SOURCE % (alignment, letters), *flags)
    (printed,) = rows(binary)
    found = [place(binary, name) for name in NAMES]
    assert found == [ThreadLocal(ByteOffset(int(offset))) for offset in printed]
    others = ThreadLocal(ByteOffset(int(printed[0]) + alignment))
    assert found[0] != others


def test_a_library_counts_from_what_its_loader_writes(tmp_path: Path) -> None:
    library = built(tmp_path, LIBRARY, "-shared", "-fPIC", "-ftls-model=initial-exec")
    relocations = [row for row in rows("readelf", "-rW", library) if "R_X86_64_TPOFF64" in row]
    words = {int(row[0], 16): int(row[3], 16) for row in relocations}
    offsets = {row[-1]: int(row[0], 16) for row in rows("nm", library) if len(row) == 3}
    for name in ("padding", "counter"):
        found = place(library, name)
        assert isinstance(found, ThreadLocal)
        assert found.word is not None
        assert found.offset == offsets[name] - words[found.word]


@pytest.mark.parametrize(
    ("source", "flags", "name", "why"),
    [
        (
            PREEMPTED,
            ("-shared", "-fPIC", "-ftls-model=initial-exec"),
            "shared",
            "may use another file's variable of that name",
        ),
        (LIBRARY, ("-shared", "-fPIC"), "counter", "only `__tls_get_addr` knows"),
        (
            LEFT_OUT,
            ("-fdata-sections", "-ffunction-sections", "-Wl,--gc-sections"),
            "unused",
            "no symbol says that the linker kept it",
        ),
        (SOURCE % (1, 1), ("-DWRITES", "-mfsgsbase"), "last", "without the kernel (wrfsbase)"),
    ],
)
def test_what_is_not_certain_is_absent(
    source: str, flags: tuple[str, ...], name: str, why: str, tmp_path: Path
) -> None:
    found = place(built(tmp_path, source, *flags), name)
    assert isinstance(found, Absent)
    assert (found.kind, why in found.reason) == ("thread-local", True), found
