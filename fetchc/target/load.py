"""Look-up of architectures and instructions in the compiled tables of ``targets/``.

The tables are plain literals (``.ci/regen_targets.py`` makes them from the TOML files), each
module of them loaded when one of its tables is; records are built when asked for.
:mod:`fetchc.target.conventions` has the conventions.
"""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.target.model import Architecture, CallRules, Instruction
from fetchc.target.tables import MODULES
from fetchc.units import ByteSize, DwarfRegister

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

__all__ = [
    "architecture",
    "architecture_key",
    "by_name",
    "call_rules",
    "instruction",
    "return_instructions",
    "spread",
    "table",
    "tables_of_module",
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


# Constants of the tables, made when first asked for: one takes longer than a whole expression.
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
    )


def call_rules(name: str) -> CallRules | None:
    """How code of that architecture calls; None where that is not told."""
    raw = table(f"arch/{name}").get("calls")
    if raw is None:
        return None
    machine = architecture(name)
    numbers = by_name(machine.registers)
    kept = frozenset([numbers[register] for register in spread(raw["preserved"])])
    return CallRules(
        bytes.fromhex(raw["opcode"]),
        tuple([bytes.fromhex(each) for each in raw["address_of"]]),
        kept,
        machine.stack_pointer,
    )


def return_instructions(name: str) -> tuple[Instruction, ...]:
    """What functions of the architecture return by; none where probes cannot use them."""
    return tuple([instruction(text) for text in table(f"arch/{name}")["returns"]["encodings"]])


def instruction(text: str) -> Instruction:
    """An encoding as the tables write it: ``49 3b 66 10``, ``0f 86 ?? ?? ?? ??``, ``?9 ?? ?? 54``.

    A ``?`` is any hexadecimal digit.
    """
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
        found.update(zip(map(int, spread([numbers])), spread([names]), strict=True))
    return found


def spread(names: Iterable[str]) -> list[str]:
    """The names as the tables write them, each by itself: ``x0..30`` stands for x0 to x30."""
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
