"""Look-up of architectures and instructions in the compiled tables of ``targets/``.

The tables are plain literals (``.ci/regen_targets.py`` makes them from the TOML files), each
module of them loaded when one of its tables is; records are built when asked for.
:mod:`fetchc.target.machines` has the conventions.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.quantities import ByteOffset, ByteSize, DwarfRegister
from fetchc.record import Record
from fetchc.target.tables import MODULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

__all__ = [
    "Architecture",
    "CallRules",
    "Convention",
    "EightbyteRules",
    "GoRules",
    "Growth",
    "Instruction",
    "StackCheck",
    "WordRules",
    "architecture",
    "architecture_key",
    "by_name",
    "call_rules",
    "convention",
    "convention_tables",
    "parse_instruction",
    "return_instructions",
    "spread",
    "table",
    "tables_of_module",
    "tables_under",
]

# ------------------------------------------------------------------------------
# Registers and calling conventions, as records of the data under ``targets/``.
#
# A new architecture is a file in ``targets/arch``; a new convention of an existing scheme is
# a file in ``targets/abi``. A new scheme is a record of rules below, an engine in
# :mod:`fetchc.abi` and a branch in :mod:`fetchc.target.machines`. In both, ``"x0..30"`` means
# x0, x1, and so on.


class Architecture(Record):
    """A machine's registers, by the kernel's names and by the DWARF numbers.

    ``registers`` are those a fetch-arg can name, by DWARF number; ``named`` is every
    name the kernel takes, some of which have no number. ``unfetchable`` are the
    registers that values can be in and the kernel does not save, by DWARF number:
    their names are for messages. ``aliases`` are names that users and debuggers
    write: the kernel's name and how many of the register's low bits are meant.
    ``refused`` are names that no fetch-arg can reach, with the words that complete
    "because ...". At a function's first instruction the CFA is the stack pointer plus
    ``entry_stack_bytes``; ``callee_slots``: above it there is room for the callee to store
    its parameters in. ``result`` is the register that ``$retval`` means.
    ``on_wide_kernel``, of a 32-bit machine, are the names that a 64-bit kernel knows
    when it runs such a program; none where it takes no probes of them. ``local_entries``:
    a function can have two entries, and symbols say where the second is. ``addresses_apart``:
    an address tells whether it is the kernel's or a program's. ``unsigned_char``: a plain
    ``char`` of C has no sign.
    """

    name: str
    word_bytes: int
    little_endian: bool
    registers: Mapping[int, str]
    named: frozenset[str]
    unfetchable: Mapping[int, str]
    aliases: Mapping[str, tuple[str, int]]
    refused: Mapping[str, str]
    stack_pointer: DwarfRegister
    entry_stack_bytes: ByteSize
    result: str
    on_wide_kernel: frozenset[str] = frozenset()
    local_entries: bool = False
    callee_slots: bool = False
    addresses_apart: bool = False
    unsigned_char: bool = False

    def __hash__(self) -> int:
        return hash(self.name)  # mappings have no hash; a name has one architecture

    def shown(self, register: DwarfRegister) -> str:
        """The register for a message: ``%di``, ``%xmm0``, or its number."""
        name = self.registers.get(register) or self.unfetchable.get(register)
        return f"DWARF register {register}" if name is None else f"%{name}"

    def in_words(self, text: str) -> str:
        """``text`` of a reader that knows registers by number, with their names."""
        import re

        pattern = r"DWARF register (\d+)"
        return re.sub(pattern, lambda found: self.shown(DwarfRegister(int(found[1]))), text)


class CallRules(Record):
    """How code of a machine calls, and which registers a call preserves.

    A direct call is the ``opcode`` and a distance of four bytes, which counts from their end;
    ``address_of`` are the bytes before such a distance where the code only adds it up.
    ``preserved`` are the registers that a function hands back as it was entered with them.
    """

    opcode: bytes
    address_of: tuple[bytes, ...]
    preserved: frozenset[DwarfRegister]
    stack_pointer: DwarfRegister


class Instruction(Record):
    """An encoding of fixed length: ``prefix``, then bytes of any value up to ``size``.

    ``mask``, as long as the prefix, has the bits of it that count; empty: all do.
    """

    prefix: bytes
    size: ByteSize
    mask: bytes = b""

    def starts(self, code: bytes, position: int) -> bool:
        """Whether ``code`` has its prefix at ``position``."""
        if not self.mask:
            return code.startswith(self.prefix, position)
        raw = code[position : position + len(self.mask)].ljust(len(self.mask), b"\0")
        masked = [byte & bits for byte, bits in zip(raw, self.mask, strict=True)]
        return self.prefix == bytes(masked)


class StackCheck(Record):
    """What a function may begin with to compare the stack pointer with its limit.

    Each of ``sequences`` is a whole check: one entry an instruction, and in that the
    encodings to choose from. Where the last one jumps to the function's body, ``target`` is
    how to read its distance: (first bit, bits, first bit of the distance), of each part.
    ``growth`` is None where no register has an argument.
    """

    sequences: tuple[tuple[tuple[Instruction, ...], ...], ...]
    target: tuple[tuple[int, int, int], ...] = ()
    growth: Growth | None = None


class Growth(Record):
    """The code that lets the stack grow and enters the function anew.

    It is after the check, or where the check's last instruction jumps: one of ``jumps``, with the
    distance of its target as in :class:`StackCheck`, and bytes to add. Code that keeps no register
    begins with one of ``calls``, with some of ``padding`` in front and ``more`` bytes of the call
    after. It continues there afterwards, with that address in the register ``resumed``.
    """

    jumps: tuple[tuple[Instruction, tuple[tuple[int, int, int], ...], int], ...]
    padding: tuple[Instruction, ...]
    calls: tuple[Instruction, ...]
    more: int
    resumed: DwarfRegister


class EightbyteRules(Record):
    """What the System V x86-64 engine needs to know beside the registers.

    ``x87_registers`` hold long double results. ``x87_names`` and ``quad_names`` tell the
    16-byte floating-point types apart, which debug information does not;
    ``wide_integer_names`` are the 16-byte integers that are verified. ``wide_splits``:
    a 16-byte integer may go half into the last register, which the compiler counts as free even
    so, and is aligned to 8.
    ``triviality_stated``: a structure about which the debug information does not say how
    it is passed is passed by value. ``unnamed_bit_fields``: one without a name makes its
    eightbyte INTEGER. ``typedef_alignment``: each member has to keep the alignment that its
    type is declared with, which a typedef can lower; else the scalars in it their own.
    ``receiver_first``: the object of a method is passed before the address of a result in
    memory. ``empty``: the class of a structure without members, where it is
    passed at all; ``padding``: that of eight bytes of padding, where they are.
    ``reference_first``: without an object, a first parameter that is a reference is in front too.
    ``plain_structures``: up to 16 bytes they are passed as integers whatever they hold, and
    returned so up to 8. ``stack_alignment``: that of every parameter on the stack, in bytes; 0 if
    each has its own, and 8 at least. ``vectors``: the class of all vectors, where it is
    not by their size. ``result_address_returned`` is as in :class:`WordRules`.
    """

    x87_registers: tuple[DwarfRegister, ...]
    x87_names: tuple[str, ...]
    quad_names: tuple[str, ...]
    wide_integer_names: tuple[str, ...]
    wide_splits: bool
    triviality_stated: bool
    unnamed_bit_fields: bool
    typedef_alignment: bool
    receiver_first: bool = False
    empty: str = ""
    padding: str = ""
    reference_first: bool = False
    plain_structures: bool = False
    stack_alignment: int = 0
    vectors: str = ""
    result_address_returned: bool = True


class WordRules(Record):
    """What the engine of the conventions that pass word by word needs to know.

    Structures: up to ``value_bytes`` go by value (None: all), the others by a pointer, or of
    those sizes only that ``value_sizes`` names. ``float_structures`` says which of them go
    to floating-point registers: ``homogeneous`` ones of up to ``float_members`` numbers of
    one type, ``flat`` ones of two numbers with a floating-point one among them, a ``single``
    number, or none (``""``). ``float_sizes`` and ``vector_sizes`` are those of the numbers
    and vectors that such a register takes, ``float_register_bytes`` the size of the smallest,
    of which a bigger number takes several.

    What finds too few registers goes on the stack as a whole, and ``closes`` them for all that
    follows, or ``splits``. Floating-point numbers without a register go to the stack or, where
    ``floats_overflow``, to integer registers; where ``positions`` they take words of the
    integer registers and the stack even so. ``pairs``: what is aligned to two words starts at
    an even register. On the stack no alignment beyond ``stack_alignment`` counts;
    ``right_adjusted``: what is smaller than its word is at the word's end.

    ``quad`` and ``wide``: how a 16-byte floating-point number and integer go, as ``float``,
    ``words`` or ``reference``, empty where no source says it; ``complex`` likewise, ``parameters``
    for its two numbers like parameters of their own. ``result_bytes`` bounds the
    structures that are returned in integer registers; ``result_address`` is the register of the
    address of the others where it is no argument's, ``result_address_returned`` whether the
    first result register has it when the function has returned. ``triviality_stated`` as in
    :class:`EightbyteRules`. ``regparm``: gcc gives functions local to a file another convention.
    """

    value_bytes: int | None
    value_sizes: tuple[int, ...]
    float_structures: str
    float_members: int
    float_sizes: tuple[int, ...]
    vector_sizes: tuple[int, ...]
    float_register_bytes: int
    floats_overflow: bool
    closes: bool
    splits: bool
    positions: bool
    pairs: bool
    stack_alignment: int
    right_adjusted: bool
    quad: str
    wide: str
    complex: str
    result_bytes: int
    result_address: DwarfRegister | None
    result_address_returned: bool
    triviality_stated: bool
    regparm: bool


class GoRules(Record):
    """What Go's run time adds to its convention.

    ``goroutine_register`` holds the running g in Go code, ``closure_register`` the
    closure's captured variables at its entry; None where the convention has none.
    ``goroutine_loads`` are instructions that a stack check can begin with, and the register
    that holds g behind such a check.
    ``vector_packages`` are prefixes of types that go into vector registers.
    """

    goroutine_register: DwarfRegister | None
    closure_register: DwarfRegister | None
    stack_check: StackCheck | None
    vector_packages: tuple[str, ...]
    goroutine_loads: tuple[tuple[Instruction, DwarfRegister], ...] = ()


class Convention(Record):
    """Where a caller puts arguments and finds results.

    Registers are DWARF numbers in the order of use. ``stack_offset`` is where the first
    argument on the stack is, from the stack pointer at the callee's first instruction.
    """

    name: str
    architecture: str
    word_bytes: int
    stack_pointer: DwarfRegister
    stack_offset: ByteOffset
    integer_registers: tuple[DwarfRegister, ...]
    float_registers: tuple[DwarfRegister, ...]
    result_integer_registers: tuple[DwarfRegister, ...]
    result_float_registers: tuple[DwarfRegister, ...]
    rules: EightbyteRules | WordRules | GoRules


def cache_line(machine: str) -> int:
    """Bytes of a line of the first data cache of a machine (a key of ``targets/arch``)."""
    return int(table(f"arch/{machine}")["cache_line"]["bytes"])


def table(name: str) -> Mapping[str, Any]:
    """The raw table of one file: ``kernel/linux`` is ``targets/kernel/linux.toml``.

    Keys named ``source`` are left out of the tables. Raises CompileError (FC0905) when
    there is no such file.
    """
    module = MODULES.get(name)
    if module is None:
        kind = name.rpartition("/")[0]  # of targets/: what a user gave may have a slash, too
        while kind and not any(key.startswith(f"{kind}/") for key in MODULES):
            kind = kind.rpartition("/")[0]
        plain = name.removeprefix(f"{kind}/")
        supported = ", ".join(
            sorted(key.rpartition("/")[2] for key in MODULES if key.startswith(kind))
        )
        raise reject("FC0905", f"`{plain}` is not supported", notes=(f"supported: {supported}",))
    return tables_of_module(module)[name]


def tables_under(folder: str) -> dict[str, Mapping[str, Any]]:
    """All raw tables of a folder of ``targets/``, by their whole names."""
    return {name: table(name) for name in MODULES if name.startswith(folder + "/")}


def tables_of_module(module: str) -> dict[str, dict[str, Any]]:
    """All raw tables of one module of :mod:`fetchc.target.tables`, by their whole names."""
    loaded = __import__(f"fetchc.target.tables.{module}", fromlist=["TABLES"])
    found: dict[str, dict[str, Any]] = loaded.TABLES
    return found


_OTHER_NAMES = {
    "x86-64": "x86_64", "amd64": "x86_64", "arm64": "aarch64", "riscv": "riscv64", "i686": "i386",
    "x86": "i386", "armhf": "arm", "armv7l": "arm", "ppc64el": "ppc64le", "s390": "s390x",
}  # fmt: skip


def architecture_key(name: str) -> str:
    """The key in ``targets/arch`` of what people call a machine; CompileError FC0905 if unknown."""
    key = _OTHER_NAMES.get(name, name)
    table(f"arch/{key}")
    return key


# Constants of the tables, built at the first use: one takes longer than a whole expression.
_BUILT: dict[str, Architecture] = {}


def architecture(name: str) -> Architecture:
    """The architecture of that name (``x86_64``); CompileError FC0905 if unknown."""
    if name not in _BUILT:
        _BUILT[name] = _architecture(name)
    return _BUILT[name]


def _architecture(name: str) -> Architecture:
    raw = table(f"arch/{name}")
    registers = _numbered(raw["registers"])
    named = {*registers.values(), *spread(raw["unnumbered"]["names"])}
    stack_pointer = by_name(registers)[raw["stack_pointer"]["register"]]
    return Architecture(
        name=name,
        word_bytes=raw["word_bytes"],
        little_endian=raw["little_endian"],
        registers=registers,
        named=frozenset(named),
        unfetchable=_numbered(raw["unfetchable"]),
        aliases={
            alias: (kernel, bits)
            for written, (means, bits) in raw["aliases"].items()
            for alias, kernel in zip(spread([written]), spread([means]), strict=True)
        },
        refused={name: why for why, names in raw["refused"].items() for name in spread(names)},
        stack_pointer=stack_pointer,
        entry_stack_bytes=ByteSize(raw["call"]["frame_bytes"]),
        result=raw["result"]["register"],
        on_wide_kernel=frozenset(raw["wide_kernel"]["registers"] if "wide_kernel" in raw else ()),
        local_entries=raw["call"].get("local_entries", False),
        callee_slots=raw["call"].get("callee_slots", False),
        addresses_apart="addresses_apart" in raw,
        unsigned_char="unsigned_char" in raw,
    )


def call_rules(name: str) -> CallRules | None:
    """How code of that architecture calls; None where the tables do not say."""
    raw = table(f"arch/{name}").get("calls")
    if raw is None:
        return None
    machine = architecture(name)
    numbers = by_name(machine.registers)
    preserved = frozenset([numbers[register] for register in spread(raw["preserved"])])
    return CallRules(
        bytes.fromhex(raw["opcode"]),
        tuple([bytes.fromhex(each) for each in raw["address_of"]]),
        preserved,
        machine.stack_pointer,
    )


def return_instructions(name: str) -> tuple[Instruction, ...]:
    """What functions of the architecture return by; none where probes cannot use them."""
    return tuple(
        [parse_instruction(text) for text in table(f"arch/{name}")["returns"]["encodings"]]
    )


def parse_instruction(text: str) -> Instruction:
    """An encoding as the tables write it: ``49 3b 66 10``, ``0f 86 ?? ?? ?? ??``, ``?9 ?? ?? 54``.

    A ``?`` is any hexadecimal digit.
    """
    size = ByteSize(len(text.split()))
    digits = text.replace(" ", "").rstrip("?")
    digits += "?" * (len(digits) % 2)  # `7? ??` has a mask of half a byte
    prefix = bytes.fromhex(digits.replace("?", "0"))
    if "?" not in digits:
        return Instruction(prefix, size)
    mask = "".join("0" if digit == "?" else "f" for digit in digits)
    return Instruction(prefix, size, bytes.fromhex(mask))


def _numbered(raw: Mapping[str, str]) -> dict[int, str]:
    found: dict[int, str] = {}
    for numbers, names in raw.items():
        found.update(zip(map(int, spread([numbers])), spread([names]), strict=True))
    return found


def spread(names: Iterable[str]) -> list[str]:
    """The names as the tables write them, each by itself: ``x0..30`` means x0 to x30."""
    found = []
    for name in names:
        first, dots, last = name.partition("..")
        if not dots:
            found.append(name)
            continue
        stem = first.rstrip("0123456789")
        found += [f"{stem}{number}" for number in range(int(first[len(stem) :]), int(last) + 1)]
    return found


def by_name(registers: Mapping[int, str]) -> dict[str, DwarfRegister]:
    """The numbers of registers by their names."""
    return {name: DwarfRegister(number) for number, name in registers.items()}


# ------------------------------------------------------------------------------
# Look-up of calling conventions in the compiled tables of ``targets/abi``.


def convention_tables(machine: str) -> dict[str, Mapping[str, Any]]:
    """A machine's raw conventions by name, for the choice of one (:mod:`fetchc.abi.placement`)."""
    module = f"abi_{machine}"
    if module not in MODULES.values():
        return {}
    return {key.removeprefix("abi/"): value for key, value in tables_of_module(module).items()}


def convention(name: str) -> Convention:
    """The convention of that name (``sysv-x86_64``); CompileError FC0905 if unknown."""
    raw: dict[str, Any] = {"extends": name}
    while "extends" in raw:
        base = raw.pop("extends")
        raw = {**table(f"abi/{base}"), **raw}
    machine = architecture(raw["architecture"])
    numbers = by_name({**machine.unfetchable, **machine.registers})

    def listed(section: str, kind: str) -> tuple[DwarfRegister, ...]:
        return _listed(numbers, raw[section][kind])

    rules: EightbyteRules | WordRules | GoRules
    if raw["scheme"] == "eightbyte":
        rules = EightbyteRules(
            x87_registers=listed("results", "x87_registers"),
            x87_names=tuple(raw["types"]["x87_names"]),
            quad_names=tuple(raw["types"]["quad_names"]),
            wide_integer_names=tuple(raw["types"]["wide_integer_names"]),
            wide_splits=raw["wide_integers"]["split"],
            triviality_stated=raw["structures"]["by_value_unless_stated"],
            unnamed_bit_fields=raw["members"]["unnamed_bit_fields_count"],
            typedef_alignment=raw["members"]["typedef_alignment_counts"],
            receiver_first=raw.get("receiver", {}).get("first", False),
            empty=raw["structures"].get("empty", ""),
            padding=raw["members"].get("padding", ""),
            reference_first=raw.get("receiver", {}).get("reference_first", False),
            plain_structures=raw["structures"].get("as_integers", False),
            stack_alignment=raw["stack"].get("alignment", 0),
            vectors=raw.get("vectors", {}).get("class", ""),
            result_address_returned=raw["results"].get("address_returned", True),
        )
    elif raw["scheme"] == "words":
        rules = _word_rules(raw, numbers)
    else:
        rules = _go_rules(raw, numbers)
    return Convention(
        name=name,
        architecture=machine.name,
        word_bytes=machine.word_bytes,
        stack_pointer=machine.stack_pointer,
        stack_offset=ByteOffset(raw["stack"]["offset_bytes"]),
        integer_registers=listed("arguments", "integer_registers"),
        float_registers=listed("arguments", "float_registers"),
        result_integer_registers=listed("results", "integer_registers"),
        result_float_registers=listed("results", "float_registers"),
        rules=rules,
    )


def _word_rules(raw: Mapping[str, Any], numbers: Mapping[str, DwarfRegister]) -> WordRules:
    structures, floats, stack = raw["structures"], raw["floats"], raw["stack"]
    address = raw["results"].get("address_register")
    return WordRules(
        value_bytes=structures.get("value_bytes"),
        value_sizes=tuple(structures.get("value_sizes", ())),
        float_structures=floats["structures"],
        float_members=floats.get("members", 0),
        float_sizes=tuple(floats["sizes"]),
        vector_sizes=tuple(floats.get("vector_sizes", ())),
        float_register_bytes=floats.get("register_bytes", 16),
        floats_overflow=floats["overflow_to_integers"],
        closes=stack["closes_registers"],
        splits=stack["splits"],
        positions=floats.get("take_positions", False),
        pairs=stack["pairs"],
        stack_alignment=stack["alignment"],
        right_adjusted=stack.get("right_adjusted", False),
        quad=raw["types"]["quad"],
        wide=raw["types"]["wide_integer"],
        complex=raw["types"]["complex"],
        result_bytes=raw["results"]["structure_bytes"],
        result_address=None if address is None else numbers[address],
        result_address_returned=raw["results"]["address_returned"],
        triviality_stated=structures["by_value_unless_stated"],
        regparm=structures.get("gcc_changes_local_functions", False),
    )


def _go_rules(raw: Mapping[str, Any], numbers: Mapping[str, DwarfRegister]) -> GoRules:
    runtime = table(f"runtime/go/{raw['runtime']}")
    goroutine = runtime["goroutine"].get("register")
    closure = runtime["closure"].get("register")
    check = runtime.get("stack_check")
    return GoRules(
        goroutine_register=None if goroutine is None else numbers[goroutine],
        closure_register=None if closure is None else numbers[closure],
        stack_check=None if check is None else _stack_check(check, numbers),
        vector_packages=tuple(raw["types"]["vector_packages"]),
        goroutine_loads=tuple(
            [
                (parse_instruction(text), numbers[register])
                for name, register in runtime["goroutine"].get("loaded_by", {}).items()
                for text in runtime["stack_check"]["instructions"][name]
            ]
        ),
    )


def _stack_check(raw: Mapping[str, Any], numbers: Mapping[str, DwarfRegister]) -> StackCheck:
    encodings = {
        name: tuple([parse_instruction(text) for text in texts])
        for name, texts in raw["instructions"].items()
    }
    return StackCheck(
        tuple([tuple([encodings[name] for name in check]) for check in raw["sequences"]]),
        _parts(raw.get("target", ())),
        _growth(raw["growth"], numbers) if "growth" in raw else None,
    )


def _growth(raw: Mapping[str, Any], numbers: Mapping[str, DwarfRegister]) -> Growth:
    return Growth(
        tuple(
            [(parse_instruction(text), _parts(parts), more) for text, parts, more in raw["jumps"]]
        ),
        tuple([parse_instruction(text) for text in raw["padding"]]),
        tuple([parse_instruction(text) for text in raw["calls"]]),
        raw["more"],
        numbers[raw["resumed"]],
    )


def _parts(raw: Iterable[Any]) -> tuple[tuple[int, int, int], ...]:
    return tuple([(first, bits, to) for first, bits, to in raw])


def _listed(
    numbers: Mapping[str, DwarfRegister], names: Iterable[str]
) -> tuple[DwarfRegister, ...]:
    return tuple([numbers[name] for name in spread(names)])
