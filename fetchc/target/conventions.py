"""Look-up of calling conventions in the compiled tables of ``targets/abi``."""

from __future__ import annotations

from fetchc.target.load import (
    architecture,
    by_name,
    instruction,
    spread,
    table,
    tables_of_module,
)
from fetchc.target.model import (
    Convention,
    EightbyteRules,
    GoRules,
    Growth,
    StackCheck,
    WordRules,
)
from fetchc.target.tables import MODULES
from fetchc.units import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from fetchc.units import DwarfRegister

__all__ = ["convention", "convention_tables"]


def convention_tables(machine: str) -> dict[str, Mapping[str, Any]]:
    """A machine's raw conventions by name, for the choice of one (:mod:`fetchc.abi.choose`)."""
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
                (instruction(text), numbers[register])
                for name, register in runtime["goroutine"].get("loaded_by", {}).items()
                for text in runtime["stack_check"]["instructions"][name]
            ]
        ),
    )


def _stack_check(raw: Mapping[str, Any], numbers: Mapping[str, DwarfRegister]) -> StackCheck:
    encodings = {
        name: tuple([instruction(text) for text in texts])
        for name, texts in raw["instructions"].items()
    }
    return StackCheck(
        tuple([tuple([encodings[name] for name in check]) for check in raw["sequences"]]),
        _parts(raw.get("target", ())),
        _growth(raw["growth"], numbers) if "growth" in raw else None,
    )


def _growth(raw: Mapping[str, Any], numbers: Mapping[str, DwarfRegister]) -> Growth:
    return Growth(
        tuple([(instruction(text), _parts(parts), more) for text, parts, more in raw["jumps"]]),
        tuple([instruction(text) for text in raw["padding"]]),
        tuple([instruction(text) for text in raw["calls"]]),
        raw["more"],
        numbers[raw["resumed"]],
    )


def _parts(raw: Iterable[Any]) -> tuple[tuple[int, int, int], ...]:
    return tuple([(first, bits, to) for first, bits, to in raw])


def _listed(
    numbers: Mapping[str, DwarfRegister], names: Iterable[str]
) -> tuple[DwarfRegister, ...]:
    return tuple([numbers[name] for name in spread(names)])
