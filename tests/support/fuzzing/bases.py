"""What is damaged: files, where in them, and the questions that are put to the result.

A question is a command line of fetchc, run where the files are. A base has one name for ever:
kept cases (``corpus/hostile``) are changes of these very bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from fetchc.debuginfo.dwarf.constants import DW_LANG_C_plus_plus_14, DW_LANG_Go, DW_LANG_Rust
from tests.support.fuzzing import others, texts
from tests.support.fuzzing.bombs import kernel_image
from tests.support.fuzzing.drawing import Target
from tests.support.fuzzing.edits import headers
from tests.support.fuzzing.hostile import HOSTILE
from tests.support.fuzzing.made import everything
from tests.support.fuzzing.questions import (
    C_QUESTIONS,
    CPP_QUESTIONS,
    DOTNET_QUESTIONS,
    GO_QUESTIONS,
    KERNEL,
    MADE_QUESTIONS,
    PLACES,
    PLAIN,
    RUST_QUESTIONS,
    SMALL_QUESTIONS,
    STATIC,
    STRIPPED_QUESTIONS,
    Question,
)
from tests.support.programs import CORPUS

__all__ = ["BASES", "Base", "base", "of_reader"]


@dataclass(frozen=True)
class Base:
    """Files by name, targets, questions; ``stdin`` is a file that a question reads."""

    files: dict[str, bytes]
    targets: tuple[Target, ...]
    questions: tuple[Question, ...]
    environment: dict[str, str] = field(default_factory=dict)


DWARF = (
    *(".debug_info", ".debug_info", ".debug_abbrev", ".debug_abbrev", ".debug_line"),
    *(".debug_str", ".debug_line_str", ".debug_loclists", ".debug_loc", ".debug_rnglists"),
    *(".debug_ranges", ".debug_addr", ".debug_str_offsets", ".debug_aranges", ".debug_frame"),
    *(".eh_frame", ".eh_frame_hdr", ".debug_types", ".debug_names", ".gdb_index"),
)


def sections(file: str, raw: bytes, names: tuple[str, ...]) -> tuple[Target, ...]:
    """The sections of these names that there are; compressed ones by their plain names, too."""
    there = headers(raw)
    both = [(name, name.replace(".debug_", ".zdebug_")) for name in names]
    return tuple(
        Target(file, each) for pair in both for each in dict.fromkeys(pair) if each in there
    )


def elf_base(raw: bytes, questions: tuple[Question, ...], names: tuple[str, ...] = DWARF) -> Base:
    """A program of one file; its headers and symbols are damaged, too."""
    there = sections("program", raw, (*names, ".symtab", ".strtab", ".shstrtab", ".dynsym"))
    return Base({"program": raw}, (*there, Target("program")), questions)


def fixture(path: str, questions: tuple[Question, ...]) -> Callable[[], Base]:
    """A program of the corpus."""
    return lambda: elf_base((CORPUS / path).read_bytes(), questions)


def _stripped(path: str) -> Callable[[], Base]:
    def made() -> Base:
        raw = (CORPUS / path).read_bytes()
        there = sections("program", raw, (".gopclntab", ".typelink", ".go.buildinfo", ".data",
                                          ".go.module", ".noptrdata", ".rodata"))  # fmt: skip
        header = headers(raw)[".gopclntab"]
        front = Target("program", ".gopclntab", 0, 0x1000)
        text = Target("program", ".text") if ".text" in headers(raw) else front
        ends = [Target("program", "", 0, 0x400), front, front, text]
        assert header.size
        return Base({"program": raw}, (*there, *there, *ends), STRIPPED_QUESTIONS)

    return made


def _dotnet() -> Base:
    folder = CORPUS / "dotnet/echo/bin"
    core = "System.Private.CoreLib.dll"
    files = {"program": (folder / "sample.dll").read_bytes(), core: (folder / core).read_bytes()}
    return Base(files, (Target("program"), Target("program"), Target(core)), DOTNET_QUESTIONS)


def _layouts() -> Base:
    raw = (CORPUS / "dotnet/layouts/bin/types.dll").read_bytes()
    core = (CORPUS / "dotnet/echo/bin/System.Private.CoreLib.dll").read_bytes()
    files = {"program": raw, "System.Private.CoreLib.dll": core}
    return Base(
        files,
        (Target("program"),),
        (*PLAIN, ("offsets", "L.Auto", "-x", "program"), ("types", "L.*", "-x", "program")),
    )


BASES: dict[str, Callable[[], Base]] = {
    **{
        f"dwarf/c-{name}": fixture(f"c/layouts/bin/{name}", C_QUESTIONS)
        for name in ("gcc-O0-dwarf4", "gcc-O2-dwarf5", "clang-O2-dwarf4", "clang-O2-dwarf5",
                     "gcc-O2-dwarf5-zlib", "clang-O0-dwarf5")
    },
    **{
        f"dwarf/cpp-{name}": fixture(f"cpp/addressbook/bin/{name}", CPP_QUESTIONS)
        for name in ("g++-O0", "clang++-O2")
    },
    **{
        f"dwarf/go-{name}": fixture(f"go/dnsforward/bin/{name}", GO_QUESTIONS)
        for name in ("go1.15", "go1.27")
    },
    **{
        f"dwarf/rust-{name}": fixture(f"rust/requests/bin/{name}", RUST_QUESTIONS)
        for name in ("rustc-O0", "rustc-O3")
    },
    **{
        f"go/{name}": _stripped(f"go/stripped/bin/{name}")
        for name in ("go1.15", "go1.22", "go1.27")
    },
    "dotnet/sample": _dotnet,
    "dotnet/types": _layouts,
}  # fmt: skip


def _made(make: Callable[[], bytes], questions: tuple[Question, ...]) -> Callable[[], Base]:
    return lambda: elf_base(make(), questions)


def _btf() -> Base:
    return Base({"program": others.btf()}, (Target("program"),), KERNEL)


def _kernel_image(how: str) -> Callable[[], Base]:
    # The set-up code's header and the packed payload are damaged, and what is inflated of it.
    def made() -> Base:
        raw = kernel_image(others.btf(), how)
        head = Target("program", "", 0x1F0, 0x260)
        return Base({"program": raw}, (head, Target("program", "", 1024), Target("program")),
                    KERNEL)  # fmt: skip

    return made


def _two(make: Callable[[], tuple[bytes, bytes]], other: str) -> Callable[[], Base]:
    def made() -> Base:
        program, beside = make()
        both = elf_base(program, (*SMALL_QUESTIONS, *MADE_QUESTIONS))
        more = tuple(Target(other, each.section) for each in elf_base(beside, ()).targets)
        links = sections("program", program, (".gnu_debuglink", ".gnu_debugaltlink",
                                              ".note.gnu.build-id"))  # fmt: skip
        return Base({"program": program, other: beside}, (*both.targets, *links, *more),
                    both.questions)  # fmt: skip

    return made


def _texts() -> Base:
    files = {"stdin": texts.DEFINITIONS}
    versions = "3.14", "5.10", "6.18", "7.3"
    return Base(files, (Target("stdin"),), tuple(("check", "-", "--kernel", v) for v in versions))


def _batch() -> Base:
    files = {"stdin": texts.BATCH, "program": everything()}
    return Base(files, (Target("stdin"),), (("compile", "--batch", "-", "--kernel", "6.1"),))


def _records() -> Base:
    questions = (("ring-page", "page"), ("ring-stacks", "page"), ("ring-layout", "layout"),
                 ("event-format", "event"))  # fmt: skip
    files = texts.formats()
    return Base(files, tuple(map(Target, files)), questions)


def _perf_map() -> Base:
    files = _dotnet().files | {"map": texts.PERF_MAP, "stdin": texts.PERF_MAP}
    questions = (("perf-map", "map"), ("perfmap", "find", "-", "-x", "program"))
    return Base(files, (Target("map"), Target("stdin")), questions)


def _served() -> Base:
    program, plain, _ = others.answers()
    end = plain.index(b"\r\n\r\n") + 4
    targets = Target("answer", "", 0, end), Target("answer", "", 0, end), Target("answer")
    questions = tuple(("served", *one) for one in SMALL_QUESTIONS[:8])
    return Base({"program": program, "answer": plain}, targets, questions)


def _served_in_chunks() -> Base:
    program, _, chunks = others.answers()
    questions = tuple(("served", *one) for one in SMALL_QUESTIONS[:8])
    end = chunks.index(b"\r\n\r\n") + 12
    targets = Target("answer", "", 0, end), Target("answer")
    return Base({"program": program, "answer": chunks}, targets, questions)


def _kept() -> Base:
    raw = (CORPUS / "go/dnsforward/bin/go1.27").read_bytes()
    questions = (
        ("kept", "types", "main.*", "-x", "program"),
        ("kept", "compile", "r.Question[0].Qtype", "(*main.Msg)($arg1).Id", "-x", "program", "-f",
         "main.(*server).handleRequest", "--kernel", "6.1"),
        ("kept", "offsets", "main.Msg.Question", "-x", "program"),
    )  # fmt: skip
    damage = random.Random(1).randbytes(40)
    return Base({"program": raw, "damage": damage}, (Target("damage"),), questions)


BASES |= {
    "server/plain": _served,
    "server/chunks": _served_in_chunks,
    "kept/go1.27": _kept,
    "split/file": _two(others.split, "unit.dwo"),
    "split/package": _two(others.package, "program.dwp"),
    "btf/all-kinds": _btf,
    **{f"kernel/{how}": _kernel_image(how) for how in ("plain", "gzip", "xz", "zstd", "lz4")},
    "usdt/three": lambda: elf_base(others.static_probes(), STATIC, (".note.stapsdt",) * 4),
    "names/standard": lambda: elf_base(others.name_table(), PLACES, (".debug_names",) * 6),
    "names/gdb": lambda: elf_base(others.gdb_index(), PLACES, (".gdb_index",) * 6),
    "beside/link": _two(others.debug_file, "program.debug"),
    "beside/alternate": _two(others.alternate, "shared"),
    "definitions/all": _texts,
    "batch/all": _batch,
    "records/all": _records,
    "perfmap/all": _perf_map,
    "small/dwarf4": _made(lambda: everything(4), SMALL_QUESTIONS),
    "small/dwarf5": _made(everything, SMALL_QUESTIONS),
    "small/cpp": _made(lambda: everything(5, DW_LANG_C_plus_plus_14), SMALL_QUESTIONS),
    "small/go": _made(lambda: everything(5, DW_LANG_Go), SMALL_QUESTIONS),
    "small/rust": _made(lambda: everything(5, DW_LANG_Rust), SMALL_QUESTIONS),
    "made/long-frame": _made(others.long_frame, MADE_QUESTIONS),
    "made/long-name": _made(others.gdb_index_of_one_name, PLACES),
    **{f"made/{name}": _made(make, MADE_QUESTIONS) for name, make in HOSTILE.items()},
}


@cache
def base(name: str) -> Base:
    """The base of that name."""
    return BASES[name]()


def of_reader(reader: str) -> tuple[str, ...]:
    """The names of a reader's bases: those before whose slash it stands."""
    return tuple(name for name in BASES if name.partition("/")[0] == reader)
