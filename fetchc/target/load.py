"""Look-up of architectures and conventions in the compiled tables of ``targets/``.

The tables are plain literals (``.ci/regen_targets.py`` makes them from the TOML files);
records are built when asked for.
"""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.target.model import (
    Architecture,
    Convention,
    EightbyteRules,
    GoRules,
    Instruction,
    StackCheck,
)
from fetchc.units import ByteOffset, ByteSize, DwarfRegister

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

__all__ = ["architecture", "convention", "convention_tables", "table", "tables_under"]


def table(name: str) -> Mapping[str, Any]:
    """The raw table of one file: ``kernel/linux`` is ``targets/kernel/linux.toml``.

    Keys named ``source`` are left out of the tables. Raises CompileError (FC0905) when
    there is no such file.
    """
    from fetchc.target.tables import TABLES

    found = TABLES.get(name)
    if found is None:
        kind, _, plain = name.rpartition("/")
        known = ", ".join(sorted(key.rpartition("/")[2] for key in tables_under(kind)))
        raise reject("FC0905", f"`{plain}` is not supported", notes=(f"supported: {known}",))
    return found


def tables_under(folder: str) -> dict[str, Mapping[str, Any]]:
    """All raw tables of a folder of ``targets/``, by their whole names."""
    from fetchc.target.tables import TABLES

    return {key: value for key, value in TABLES.items() if key.startswith(folder + "/")}


def architecture(name: str) -> Architecture:
    """The architecture of that name (``x86_64``); CompileError FC0905 if unknown."""
    raw = table(f"arch/{name}")
    registers: dict[int, str] = {int(number): text for number, text in raw["registers"].items()}
    named = frozenset(registers.values()) | frozenset(raw["unnumbered"]["names"])
    stack_pointer = _numbers(registers)[raw["stack_pointer"]["register"]]
    return Architecture(
        name=name,
        word_bytes=raw["word_bytes"],
        little_endian=raw["little_endian"],
        registers=registers,
        named=named,
        unfetchable={int(n): text for n, text in raw["unfetchable"].items()},
        aliases={alias: (kernel, bits) for alias, (kernel, bits) in raw["aliases"].items()},
        refused=raw["refused"],
        stack_pointer=stack_pointer,
        entry_stack_bytes=ByteSize(raw["call"]["pushed_bytes"]),
    )


def convention_tables() -> dict[str, Mapping[str, Any]]:
    """The raw conventions by name, for the choice of one (see :mod:`fetchc.abi.choose`)."""
    return {key.removeprefix("abi/"): value for key, value in tables_under("abi").items()}


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

    rules: EightbyteRules | GoRules
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
        )
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


def _go_rules(raw: Mapping[str, Any], numbers: Mapping[str, DwarfRegister]) -> GoRules:
    runtime = table(f"runtime/go/{raw['runtime']}")
    goroutine = runtime["goroutine"].get("register")
    closure = runtime["closure"].get("register")
    return GoRules(
        goroutine_register=None if goroutine is None else numbers[goroutine],
        closure_register=None if closure is None else numbers[closure],
        stack_check=_stack_check(runtime["stack_check"]) if "stack_check" in runtime else None,
        vector_packages=tuple(raw["types"]["vector_packages"]),
    )


def _stack_check(raw: Mapping[str, Any]) -> StackCheck:
    encodings = {
        name: tuple([_instruction(text) for text in texts])
        for name, texts in raw["instructions"].items()
    }
    return StackCheck(
        tuple([tuple([encodings[name] for name in check]) for check in raw["sequences"]])
    )


def _instruction(text: str) -> Instruction:
    # "49 3b 66 10" or "0f 86 ?? ?? ?? ??": wildcards stand at the end only.
    prefix, _, _ = text.partition("?")
    return Instruction(bytes.fromhex(prefix), ByteSize(len(text.split())))


def _numbers(registers: Mapping[int, str]) -> dict[str, DwarfRegister]:
    return {name: DwarfRegister(number) for number, name in registers.items()}


def _listed(
    numbers: Mapping[str, DwarfRegister], names: Iterable[str]
) -> tuple[DwarfRegister, ...]:
    return tuple([numbers[name] for name in names])
