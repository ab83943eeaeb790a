"""The compiler of a unit, parsed from DW_AT_producer, and its quirks.

The string is parsed once (:func:`compiler_of`). Code asks for a quirk by its name; each one has the
source of the fact beside it.
"""

from __future__ import annotations

from fetchc.record import Record

__all__ = ["Compiler", "compiler_of"]

_LONGEST_NUMBER = 6  # digits; a longer one is no version
_MOST_CACHED = 1 << 10  # strings; a program has a handful


class Compiler(Record):
    """The parts of a producer string.

    ``name``: ``gcc``, ``gas``, ``clang``, ``rustc``, ``go``, ``go-asm``, ``dotnet``, ``mono``,
    ``nativeaot``, or empty where the string is of none of them. ``front_end``: gcc's name of what
    it compiled (``C17``, ``C++14``, ``GIMPLE``), empty for others. ``version``: major and minor
    number, None where the string has none. ``options``: the words after the version. gcc records
    all options that change code; Go records ``-N``, ``-l`` and ``regabi``.
    """

    producer: str
    name: str
    front_end: str
    version: tuple[int, int] | None
    options: tuple[str, ...]

    @property
    def is_gcc(self) -> bool:
        """Whether gcc, or a front end of it other than the assembler, compiled the unit."""
        return self.name == "gcc"

    @property
    def is_gxx(self) -> bool:
        """Whether g++ compiled the unit."""
        return self.name == "gcc" and self.front_end.startswith("C++")

    @property
    def is_llvm(self) -> bool:
        """Whether LLVM compiled it: clang, and rustc (``clang LLVM (rustc version 1.63.0)``)."""
        return self.name in ("clang", "rustc")

    @property
    def is_go_toolchain(self) -> bool:
        """Whether it is Go's own compiler or assembler, not gccgo."""
        return self.name in ("go", "go-asm")

    @property
    def go_version(self) -> tuple[int, int] | None:
        """The version of the Go toolchain, None of every other compiler."""
        return self.version if self.is_go_toolchain else None

    @property
    def optimized(self) -> bool | None:
        """Whether the options ask for optimized code; None of a compiler that does not record it.

        gcc takes the last ``-O`` and defaults to ``-O0``. Go optimizes without ``-N``.
        """
        if self.name == "gcc":
            return self._level not in ("", "-O0")
        if self.name in ("go", "go-asm"):
            return "-N" not in self.options
        return None

    @property
    def is_lto_input(self) -> bool:
        """Whether gcc compiled the unit for link-time optimization (``-flto``)."""
        return any(option.startswith("-flto") for option in self.options)

    @property
    def is_lto_output(self) -> bool:
        """Whether gcc's link-time optimization wrote the unit: its language is GIMPLE."""
        return self.name == "gcc" and self.front_end == "GIMPLE"

    @property
    def is_whole_program(self) -> bool:
        """Whether gcc makes local what the source exports (``-flto``, ``-fwhole-program``)."""
        return self.is_lto_input or "-fwhole-program" in self.options

    @property
    def without_exceptions(self) -> bool:
        """Whether the unit was compiled with ``-fno-exceptions``, as far as recorded (gcc)."""
        return "-fno-exceptions" in self.options

    @property
    def _level(self) -> str:
        return next((one for one in reversed(self.options) if one.startswith("-O")), "")

    # --------------------------------------------------------------------------
    # Quirks.

    @property
    def merges_identical_functions(self) -> bool:
        """gcc does within a unit, from -O2 on (-fipa-icf). Source: gcc/ipa-icf.cc."""
        leveled = self._level not in ("", "-O0", "-O1", "-O", "-Og")
        return self.name == "gcc" and leveled and "-fno-ipa-icf" not in self.options

    @property
    def describes_lines_only(self) -> bool:
        """gcc -g1: neither variables nor types. Source: gcc/dwarf2out.cc (DINFO_LEVEL_TERSE)."""
        return self.name == "gcc" and "-g1" in self.options

    def records_defaulted_members(self, dwarf: int) -> bool:
        """Whether DW_AT_defaulted of a C++ member is written in DWARF of this version.

        g++ does from 7 on, before DWARF 5 as an extension. Source: gcc/cp/cp-objcp-common.c
        (cp_decl_dwarf_attribute), gcc/dwarf2out.c (gen_subprogram_die).
        """
        strict = dwarf < 5 and "-gstrict-dwarf" in self.options
        return self.is_gxx and self.version is not None and self.version[0] >= 7 and not strict

    @property
    def drops_unused_parameters(self) -> bool:
        """LLVM does so in a function that no other file calls, with results as well, and keeps its
        name: other parameters move up. Source: llvm/lib/Transforms/IPO/DeadArgumentElimination.cpp.
        """
        return self.is_llvm

    @property
    def omits_unused_copies(self) -> bool:
        """Without optimization clang does not describe a parameter that is passed by the address of
        a copy and not used, beside a structure on the stack (measured: clang 14).
        """
        return self.is_llvm

    @property
    def describes_unused_slots(self) -> bool:
        """clang names a slot in the caller's part of the stack for the whole function, also where
        nothing of it is used and calls of the same file leave it as it is.
        """
        return self.is_llvm

    @property
    def removes_dead_stores_to_parameters(self) -> bool:
        """LLVM does so in a structure that the caller put on the stack, and describes its slot for
        the whole function.
        """
        return self.is_llvm

    @property
    def copies_parameters_to_resume(self) -> bool:
        """For a coroutine's resume function clang lists the parameters of the whole coroutine; the
        function takes the frame alone.
        """
        return self.is_llvm

    @property
    def misplaces_packed_bit_fields(self) -> bool:
        """clang describes a packed bit field that is as wide as its type as a plain member, whose
        bytes overlap others; gcc does not.
        """
        return self.name != "gcc"

    @property
    def instance_names_are_whole(self) -> bool:
        """Whether DW_AT_name of a template's instance contains its arguments: g++ writes them."""
        return self.name == "gcc"


_cached: dict[str, Compiler] = {}


def compiler_of(producer: str) -> Compiler:
    """The parts of ``producer``; an empty one names no compiler."""
    found = _cached.get(producer)
    if found is None:
        if len(_cached) >= _MOST_CACHED:
            _cached.clear()
        found = _cached[producer] = _parsed(producer)
    return found


# DW_AT_producer of compilers that name themselves by their first words. Sources: binutils,
# gas/dwarf2dbg.c; mono/mini/dwarfwriter.c; dotnet/runtime, src/coreclr/tools/aot/ObjWriter; Go,
# cmd/compile/internal/dwarfgen, cmd/internal/obj. Those of .NET assemblies (`.NET 8.0`, `Mono 6.8`)
# are fetchc's own.
_BY_START = (
    ("GNU AS ", "gas"),
    ("GNU ", "gcc"),
    ("Go cmd/asm", "go-asm"),
    ("Go cmd/", "go"),
    (".NET ", "dotnet"),
    ("Mono ", "mono"),
    ("NetRuntime", "nativeaot"),
)


def _parsed(producer: str) -> Compiler:
    name = next((name for start, name in _BY_START if producer.startswith(start)), "")
    words = producer.replace(";", " ").split()
    if name in ("go", "go-asm"):
        return _of_go(producer, name, words)
    if name == "gcc":
        at = next((at for at, word in enumerate(words) if word[:1].isdigit()), len(words))
        version = _version(words[at]) if at < len(words) else None
        front_end = " ".join(words[1:at])
        return Compiler(producer, name, front_end, version, tuple(words[at + 1 :]))
    if name:
        version = next(filter(None, map(_version, words)), None)
        return Compiler(producer, name, "", version, ())
    # clang may follow a vendor's name; rustc's name follows clang's.
    for mark, name in (("rustc version ", "rustc"), ("clang version ", "clang")):
        _, found, behind = producer.partition(mark)
        if found:
            version = _version(behind.partition(" ")[0])
            return Compiler(producer, name, "", version, tuple(behind.split()[1:]))
    return Compiler(producer, "clang" if "clang" in producer else "", "", None, tuple(words))


def _of_go(producer: str, name: str, words: list[str]) -> Compiler:
    # "Go cmd/compile go1.22.10; regabi", "Go cmd/compile go1.4"; development versions name the
    # release that they lead to: "devel go1.23-abcdef".
    for at, word in enumerate(words):
        major, dot, rest = word.removeprefix("go").partition(".")
        minor = _digits(rest)
        if dot and word.startswith("go") and major == _digits(major) != "" != minor:
            version = int(major), int(minor)
            return Compiler(producer, name, "", version, tuple(words[at + 1 :]))
    return Compiler(producer, name, "", None, tuple(words))


def _version(word: str) -> tuple[int, int] | None:
    # (12, 2) of "12.2.0", (17, 0) of "17"; None where no number comes first.
    major = _digits(word)
    if not major:
        return None
    rest = word[len(major) :]
    minor = _digits(rest[1:]) if rest[:1] == "." else ""
    return int(major), int(minor or 0)


def _digits(text: str) -> str:
    return text[: len(text) - len(text.lstrip("0123456789"))][:_LONGEST_NUMBER]
