"""Addresses of a process to functions, with and without its memory maps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fetchc.tracer.events import Event, Mapping, MappingChange, Plan
from fetchc.tracer.perf_ring import sampled_machines
from fetchc.tracer.stacks import Frame, Stacks, parse_maps
from fetchc.tracer.symbol_files import open_symbols
from fetchc.tracer.unwind import StackCopy
from tests.support.elfwriter import elf_file
from tests.support.programs import fixture

BINARY = fixture("c/layouts/gcc-O2-dwarf5")
PID = 4711
SHIFT = 0x5555_5555_4000


@pytest.fixture(name="code")
def code_() -> dict[str, int]:
    """Addresses as the file states them."""
    from fetchc.api.library import Program

    program = Program(str(BINARY))
    return {name: program.probe(name).address for name in ("visit", "chain", "main")}


def event(address: int, path: str = str(BINARY), pid: int = PID) -> Event:
    plan = Plan("g", "e", path, "visit", "entry", address, (), ())
    return Event(plan, pid, pid, "x", 0, 1.0, address + SHIFT, {}, ())


def maps_of(path: str, inode: int | None = None) -> str:
    if inode is None:
        real = path.removesuffix(" (deleted)")
        inode = os.stat(real).st_ino if os.path.exists(real) else 77
    symbols = open_symbols(str(BINARY))
    assert symbols is not None
    lines = []
    for segment in symbols.segments:
        start = (segment.address & ~0xFFF) + SHIFT
        end = (segment.address + segment.memory_size + 0xFFF & ~0xFFF) + SHIFT
        flags = "r-xp" if segment.flags & 1 else "r--p"
        lines.append(
            f"{start:x}-{end:x} {flags} {segment.offset & ~0xFFF:08x} 08:01 {inode} {path}"
        )
    lines.append("7f0000000000-7f0000001000 r-xp 00000000 00:00 0 [uprobes]")
    lines.append("7f0000002000-7f0000003000 r-xp 00000000 00:00 0 [vdso]")
    lines.append("7f0000004000-7f0000005000 r-xp 00000000 00:00 0")
    return "\n".join(lines) + "\n"


def test_frames_by_the_maps(tmp_path: Path, code: dict[str, int]) -> None:
    (tmp_path / str(PID)).mkdir()
    (tmp_path / str(PID) / "maps").write_text(maps_of(str(BINARY)))
    stacks = Stacks(str(tmp_path))
    addresses = [
        code["visit"] + SHIFT,
        code["main"] + 5 + SHIFT,
        0x7F0000000000,
        0x7F0000000083,
        0x7F0000002010,
        0x7F0000004010,
        0x10,
    ]
    shown = [str(each) for each in stacks.frames(event(code["visit"]), addresses)]
    assert shown == [
        f"visit+0x0 ({BINARY.name})",
        f"main+0x5 ({BINARY.name})",
        "[return probe]+0x0",
        "[uprobe]+0x83",
        "[unknown] 0x7f0000002010 ([vdso])",
        "[unknown] 0x7f0000004010",
        "[unknown] 0x10",
    ]
    assert stacks.name(PID, code["chain"] + SHIFT) == "chain"
    assert stacks.name(PID, code["chain"] + 1 + SHIFT) == "chain+0x1"
    assert stacks.name(PID, 0x10) is None


def test_names_of_a_process_that_ended_soon(tmp_path: Path, code: dict[str, int]) -> None:
    folder = tmp_path / str(PID)
    folder.mkdir()
    (folder / "maps").write_text(maps_of(str(BINARY)))
    stacks = Stacks(str(tmp_path))
    stacks.learn(PID)
    (folder / "maps").unlink()
    assert stacks.name(PID, code["chain"] + SHIFT) == "chain"
    assert stacks.name(PID + 1, code["chain"] + SHIFT) is None


def test_maps_are_read_again_after_a_while(
    tmp_path: Path, code: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / str(PID)
    folder.mkdir()
    (folder / "maps").write_text(maps_of(str(BINARY)))
    stacks = Stacks(str(tmp_path))
    assert stacks.name(PID, code["chain"] + SHIFT) == "chain"
    (folder / "maps").write_text(maps_of("/no/such/program"))
    assert stacks.name(PID, code["chain"] + SHIFT) == "chain"
    monkeypatch.setattr("fetchc.tracer.stacks._FRESH", -1.0)
    assert stacks.name(PID, code["chain"] + SHIFT) is None


def test_a_process_that_has_ended_still_shows_the_probed_file(
    tmp_path: Path, code: dict[str, int]
) -> None:
    stacks = Stacks(str(tmp_path))
    addresses = [code["visit"] + SHIFT, code["main"] + 9 + SHIFT, 0x7F0000000000]
    shown = [each.function for each in stacks.frames(event(code["visit"]), addresses)]
    assert shown == ["visit", "main", None]


def test_a_process_that_became_another_program_is_looked_at_again(
    tmp_path: Path, code: dict[str, int]
) -> None:
    folder = tmp_path / str(PID)
    folder.mkdir()
    (folder / "maps").write_text(maps_of("/usr/bin/something-else"))
    stacks = Stacks(str(tmp_path))
    address = code["main"] + SHIFT
    # The maps do not explain the hit: what is known is where the probed file was.
    assert stacks.frames(event(code["visit"]), [address])[0].function == "main"
    (folder / "maps").write_text(maps_of(f"{BINARY} (deleted)"))
    stacks = Stacks(str(tmp_path))
    assert stacks.frames(event(code["visit"]), [address])[0].function == "main"


def test_a_library_that_was_loaded_later_is_found(tmp_path: Path, code: dict[str, int]) -> None:
    folder = tmp_path / str(PID)
    folder.mkdir()
    (folder / "maps").write_text(maps_of(str(BINARY)))
    stacks = Stacks(str(tmp_path))
    hit = event(code["visit"])
    assert stacks.frames(hit, [hit.address])[0].function == "visit"
    text = (folder / "maps").read_text()
    (folder / "maps").write_text(f"{text}7f1000000000-7f1000001000 r-xp 0 08:01 9 /no/lib.so\n")
    (frame,) = stacks.frames(hit, [0x7F1000000123])
    assert frame == Frame(0x7F1000000123, None, 0, "/no/lib.so")
    assert str(frame) == "[unknown] 0x7f1000000123 (lib.so)"


def test_maps_with_blanks_in_a_path() -> None:
    (mapping,) = parse_maps(
        "55d0-55e0 r-xp 00002000 08:01 12 /srv/a b (deleted)\n55f0-5600 rw-p 0 08:01 12 /srv/x\n\n"
    )
    assert (mapping.start, mapping.end, mapping.offset) == (0x55D0, 0x55E0, 0x2000)
    assert mapping.path == "/srv/a b (deleted)"


def test_what_is_no_elf_file_has_no_symbols(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    assert open_symbols(str(tmp_path / "text")) is None
    assert open_symbols(str(tmp_path / "missing")) is None


def test_a_debug_file_of_another_build_does_not_end_a_trace(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(elf_file({".debug_info": b"x"}))
    link = b"other\0\0\0" + bytes(4)
    (tmp_path / "program").write_bytes(elf_file({".gnu_debuglink": link}))
    symbols = open_symbols(str(tmp_path / "program"))
    assert symbols is not None
    assert symbols.find(0x1000) is None


KERNEL = """\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81000100 T tcp_wfree
ffffffff81000100 t __pfx_alias
ffffffff81000180 d a_table
ffffffffc0000000 t lo_open\t[loop]
"""


def test_addresses_of_the_kernel_have_its_own_names(tmp_path: Path) -> None:
    (tmp_path / "kallsyms").write_text(KERNEL)
    stacks = Stacks(str(tmp_path))
    names = {
        0xFFFFFFFF81000100: "tcp_wfree",
        0xFFFFFFFF8100017F: "tcp_wfree+0x7f",
        0xFFFFFFFF81000180: None,  # data
        0xFFFFFFFFC0000000: "lo_open",
        0xFFFFFFFFC0200000: None,  # after the last symbol
        0xFFFFFFFFFFFFFFEA: None,
        0xFF11000029EAAF80: None,
    }
    assert {address: stacks.name(PID, address) for address in names} == names
    assert Stacks(str(tmp_path / "none")).name(PID, 0xFFFFFFFF81000100) is None
    (tmp_path / "kallsyms").write_text(KERNEL.replace("ffffffff", "00000000"))
    assert Stacks(str(tmp_path)).name(PID, 0xFFFFFFFF81000100) is None


def test_a_probe_of_the_kernel_has_the_stack_of_its_program(
    tmp_path: Path, code: dict[str, int]
) -> None:
    (tmp_path / str(PID)).mkdir()
    (tmp_path / str(PID) / "maps").write_text(maps_of(str(BINARY)))
    (tmp_path / "kallsyms").write_text(KERNEL)
    plan = Plan("g", "e", "kernel", "tcp_wfree", "entry", 0, ("p:g/e tcp_wfree c=$comm",), ())
    hit = Event(plan, PID, PID, "x", 0, 1.0, 0xFFFFFFFF81000100, {}, ())
    addresses = [code["visit"] + 4 + SHIFT, 0xFFFFFFFF81000104]
    shown = [str(frame) for frame in Stacks(str(tmp_path)).frames(hit, addresses)]
    assert shown == [f"visit+0x4 ({BINARY.name})", "tcp_wfree+0x4 (kernel)"]


# ------------------------------------------------------------------------------
# Copies of stacks.

MACHINES = sampled_machines()
LIBRARY = "/no/lib.so"


def stack_copy(place: int, *words: int, time: int = 10) -> StackCopy:
    memory = b"".join([word.to_bytes(8, "little") for word in words])
    top = 0x7FFF_0000_0000
    registers = dict.fromkeys(range(17), 0) | {7: top, 16: place}
    return StackCopy(PID, time, 2, 8, registers, top, memory, len(memory))


@pytest.mark.skipif(not MACHINES, reason="perf's registers of this machine are unknown")
def test_a_copy_is_walked_by_the_tables_of_its_files(tmp_path: Path, code: dict[str, int]) -> None:
    (tmp_path / str(PID)).mkdir()
    (tmp_path / str(PID) / "maps").write_text(maps_of(str(BINARY)))
    stacks = Stacks(str(tmp_path))
    hit = event(code["visit"])
    frames = stacks.unwound(hit, stack_copy(hit.address, code["main"] + 1 + SHIFT))
    assert [str(each) for each in frames] == [
        f"visit+0x0 ({BINARY.name})",
        f"main+0x1 ({BINARY.name})",
    ]
    assert [each.not_unwound for each in frames] == [None, "stack copy ended after 8 bytes"]
    (only,) = stacks.unwound(hit, stack_copy(hit.address))
    assert only.not_unwound == "stack copy ended after 0 bytes"
    # Code without tables, and no code at all.
    (_, run_time) = stacks.unwound(hit, stack_copy(hit.address, 0x7F0000004011))
    assert (run_time.file, run_time.not_unwound) == (None, "a frame below the stack pointer")
    (_, vdso) = stacks.unwound(hit, stack_copy(hit.address, 0x7F0000002011))
    assert vdso.not_unwound == "no unwind information in [vdso]"
    (_, nowhere) = stacks.unwound(hit, stack_copy(hit.address, 0x4711))
    assert nowhere.not_unwound == "no code is mapped there"
    (_, trampoline) = stacks.unwound(hit, stack_copy(hit.address, 0x7F0000000000))
    assert trampoline.function == "[return probe]"
    assert trampoline.not_unwound == "a return probe has replaced the return address"


@pytest.mark.skipif(not MACHINES, reason="perf's registers of this machine are unknown")
def test_lines_and_inlined_functions_are_shown_on_demand(
    tmp_path: Path, code: dict[str, int]
) -> None:
    (tmp_path / str(PID)).mkdir()
    (tmp_path / str(PID) / "maps").write_text(maps_of(str(BINARY)))
    stacks = Stacks(str(tmp_path))
    hit = event(code["visit"])
    frames = stacks.unwound(hit, stack_copy(hit.address), with_lines=True)
    assert frames[-1].function == "visit"
    assert frames[-1].line is not None
    assert frames[-1].line.startswith("shapes.c:")


def test_mappings_change_in_the_order_of_time(tmp_path: Path, code: dict[str, int]) -> None:
    stacks = Stacks(str(tmp_path))  # where no process has maps: all have ended
    hit = event(code["visit"])
    inode = os.stat(BINARY).st_ino
    text = next(one for one in parse_maps(maps_of(str(BINARY))) if one.path == str(BINARY))
    library = Mapping(0x7F1000000000, 0x7F1000004000, 0, LIBRARY, 9)
    other = Mapping(0x7F1000001000, 0x7F1000002000, 0, "/no/other.so", 10)
    stacks.changes += [
        MappingChange(1, PID),
        MappingChange(2, PID, None, text.replaced(inode=inode)),
        MappingChange(3, PID, None, library),
        MappingChange(12, PID, None, other),
        MappingChange(13, PID + 1, PID),
        MappingChange(14, PID),
    ]

    def files(time: int, pid: int = PID) -> list[str | None]:
        at = event(code["visit"], pid=pid)
        return [
            stacks.unwound(at, stack_copy(hit.address, word, time=time))[-1].file
            for word in (0x7F1000000123, 0x7F1000001123, 0x7F1000003123)
        ]

    if not MACHINES:
        pytest.skip("perf's registers of this machine are unknown")
    assert files(10) == [LIBRARY] * 3
    assert files(12) == [LIBRARY, "/no/other.so", LIBRARY]
    assert files(13, PID + 1) == [LIBRARY, "/no/other.so", LIBRARY]
    assert files(15) == [None] * 3  # another program by now


@pytest.mark.skipif(not MACHINES, reason="perf's registers of this machine are unknown")
def test_code_that_was_made_at_run_time_has_the_names_of_its_map(
    tmp_path: Path, code: dict[str, int]
) -> None:
    folder = tmp_path / str(PID)
    (folder / "root/tmp").mkdir(parents=True)
    (folder / "maps").write_text(maps_of(str(BINARY)))
    (folder / "status").write_text(f"Name:\tx\nNSpid:\t{PID}\t12\n")
    stacks = Stacks(str(tmp_path))
    hit = event(code["visit"])
    made = 0x7F0000004010

    def caller(address: int = made) -> str:
        return str(stacks.unwound(hit, stack_copy(hit.address, address + 1))[1])

    assert caller() == f"[unknown] {made + 1:#x}"
    written = folder / "root/tmp/perf-12.map"
    written.write_text("no map\n7f0000004000 20 LazyCompile:*f /srv/a.js:1\n7f0000004030 8 g")
    assert caller() == "LazyCompile:*f /srv/a.js:1+0x11"
    assert caller(0x7F0000004031) == "[unknown] 0x7f0000004032"  # its line is not whole
    with written.open("a") as file:
        file.write("\n7f0000004000 20 h\n")
    assert caller(0x7F0000004031) == "g+0x2"
    assert caller() == "h+0x11"  # other code by now
    with written.open("a") as file:
        file.write("7f000000400c 2c instance void [a] N.T+U::M(class N.X,int64&)[OptimizedTier1]\n")
    assert caller() == "N.T.U.M(N.X, long&)+0x5"
    # It has taken memory of both others.
    assert caller(0x7F0000004002) == "[unknown] 0x7f0000004003"
    assert caller(0x7F0000004031) == "N.T.U.M(N.X, long&)+0x26"
    written.unlink()
    assert caller() == "N.T.U.M(N.X, long&)+0x5"  # the process has ended, or removed its map
