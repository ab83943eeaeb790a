"""Look-up of architectures and conventions in the compiled tables of ``targets/``.

The tables are plain literals (``.ci/regen_targets.py`` makes them from the TOML files), each
module of them loaded when one of its tables is; records are built when asked for.
"""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.target.model import (
    Architecture,
    CallRules,
    Convention,
    EightbyteRules,
    GoRules,
    Growth,
    Instruction,
    StackCheck,
    WordRules,
)
from fetchc.target.tables import MODULES
from fetchc.units import ByteOffset, ByteSize, DwarfRegister

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

__all__ = [
    "architecture",
    "architecture_key",
    "call_rules",
    "convention",
    "convention_tables",
    "return_instructions",
    "table",
    "tables_under",
]


def table(name: str) -> Mapping[str, Any]:
    """The raw table of one file: ``kernel/linux`` is ``targets/kernel/linux.toml``.

    Keys named ``source`` are left out of the tables. Raises CompileError (FC0905) when
    there is no such file.
    """
    module = MODULES.get(name)
    if module is None:
        kind, _, plain = name.rpartition("/")
        known = ", ".join(sorted(key.rpartition("/")[2] for key in MODULES if key.startswith(kind)))
        raise reject("FC0905", f"`{plain}` is not supported", notes=(f"supported: {known}",))
    return _tables(module)[name]


def tables_under(folder: str) -> dict[str, Mapping[str, Any]]:
    """All raw tables of a folder of ``targets/``, by their whole names."""
    return {name: table(name) for name in MODULES if name.startswith(folder + "/")}


def _tables(module: str) -> dict[str, dict[str, Any]]:
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


def architecture(name: str) -> Architecture:
    """The architecture of that name (``x86_64``); CompileError FC0905 if unknown."""
    raw = table(f"arch/{name}")
    registers = _numbered(raw["registers"])
    named = {*registers.values(), *_spread(raw["unnumbered"]["names"])}
    stack_pointer = _numbers(registers)[raw["stack_pointer"]["register"]]
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
            for alias, kernel in zip(_spread([written]), _spread([means]), strict=True)
        },
        refused={name: why for why, names in raw["refused"].items() for name in _spread(names)},
        stack_pointer=stack_pointer,
        entry_stack_bytes=ByteSize(raw["call"]["frame_bytes"]),
        result=raw["result"]["register"],
        on_wide_kernel=frozenset(raw["wide_kernel"]["registers"] if "wide_kernel" in raw else ()),
        local_entries=raw["call"].get("local_entries", False),
        callee_slots=raw["call"].get("callee_slots", False),
        addresses_apart="addresses_apart" in raw,
    )


def call_rules(name: str) -> CallRules | None:
    """How code of that architecture calls; None where that is not told."""
    raw = table(f"arch/{name}").get("calls")
    if raw is None:
        return None
    machine = architecture(name)
    numbers = _numbers(machine.registers)
    kept = frozenset([numbers[register] for register in _spread(raw["preserved"])])
    return CallRules(
        bytes.fromhex(raw["opcode"]),
        tuple([bytes.fromhex(each) for each in raw["address_of"]]),
        kept,
        machine.stack_pointer,
    )


def convention_tables(machine: str) -> dict[str, Mapping[str, Any]]:
    """A machine's raw conventions by name, for the choice of one (:mod:`fetchc.abi.choose`)."""
    module = f"abi_{machine}"
    if module not in MODULES.values():
        return {}
    return {key.removeprefix("abi/"): value for key, value in _tables(module).items()}


def convention(name: str) -> Convention:
    """The convention of that name (``sysv-x86_64``); CompileError FC0905 if unknown."""
    raw: dict[str, Any] = {"extends": name}
    while "extends" in raw:
        base = raw.pop("extends")
        raw = {**table(f"abi/{base}"), **raw}
    machine = architecture(raw["architecture"])
    numbers = _numbers({**machine.unfetchable, **machine.registers})

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
                (_instruction(text), numbers[register])
                for name, register in runtime["goroutine"].get("loaded_by", {}).items()
                for text in runtime["stack_check"]["instructions"][name]
            ]
        ),
    )


def _stack_check(raw: Mapping[str, Any], numbers: Mapping[str, DwarfRegister]) -> StackCheck:
    encodings = {
        name: tuple([_instruction(text) for text in texts])
        for name, texts in raw["instructions"].items()
    }
    return StackCheck(
        tuple([tuple([encodings[name] for name in check]) for check in raw["sequences"]]),
        _parts(raw.get("target", ())),
        _growth(raw["growth"], numbers) if "growth" in raw else None,
    )


def _growth(raw: Mapping[str, Any], numbers: Mapping[str, DwarfRegister]) -> Growth:
    return Growth(
        tuple([(_instruction(text), _parts(parts), more) for text, parts, more in raw["jumps"]]),
        tuple([_instruction(text) for text in raw["padding"]]),
        tuple([_instruction(text) for text in raw["calls"]]),
        raw["more"],
        numbers[raw["resumed"]],
    )


def _parts(raw: Iterable[Any]) -> tuple[tuple[int, int, int], ...]:
    return tuple([(first, bits, to) for first, bits, to in raw])


def return_instructions(name: str) -> tuple[Instruction, ...]:
    """What functions of the architecture return by; none where probes cannot use them."""
    return tuple([_instruction(text) for text in table(f"arch/{name}")["returns"]["encodings"]])


def _instruction(text: str) -> Instruction:
    # "49 3b 66 10", "0f 86 ?? ?? ?? ??", "?9 ?? ?? 54": a ? is any hexadecimal digit.
    size = ByteSize(len(text.split()))
    digits = text.replace(" ", "").rstrip("?")
    prefix = bytes.fromhex(digits.replace("?", "0"))
    if "?" not in digits:
        return Instruction(prefix, size)
    mask = "".join("0" if digit == "?" else "f" for digit in digits)
    return Instruction(prefix, size, bytes.fromhex(mask))


def _numbered(raw: Mapping[str, str]) -> dict[int, str]:
    found: dict[int, str] = {}
    for numbers, names in raw.items():
        found.update(zip(map(int, _spread([numbers])), _spread([names]), strict=True))
    return found


def _spread(names: Iterable[str]) -> list[str]:
    # "x0..30" stands for x0 to x30.
    found = []
    for name in names:
        first, dots, last = name.partition("..")
        if not dots:
            found.append(name)
            continue
        stem = first.rstrip("0123456789")
        found += [f"{stem}{number}" for number in range(int(first[len(stem) :]), int(last) + 1)]
    return found


def _numbers(registers: Mapping[int, str]) -> dict[str, DwarfRegister]:
    return {name: DwarfRegister(number) for number, name in registers.items()}


def _listed(
    numbers: Mapping[str, DwarfRegister], names: Iterable[str]
) -> tuple[DwarfRegister, ...]:
    return tuple([numbers[name] for name in _spread(names)])
