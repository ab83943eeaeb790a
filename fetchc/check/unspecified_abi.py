"""Parameters at the entry, of languages that promise no calling convention (Rust).

Their compilers take the registers of C's convention, in an order of their own. So the debug
information alone tells which one, and is believed where it names one of these: at the first
instruction that is what the caller passed. What it says of the frame is of later instructions.
"""

from __future__ import annotations

from fetchc.check.locations import described_entry_place
from fetchc.check.typed_tree import Located, Special
from fetchc.diag.diagnostic import reject
from fetchc.program.compiler import compiler_of
from fetchc.program.entities import Absent, Function, InMemory, InRegister, Piece, Pieces
from fetchc.program.types import (
    BoolType,
    CharType,
    EnumType,
    InterfaceType,
    IntType,
    PointerType,
    SliceType,
    StringType,
    StructType,
)
from fetchc.quantities import ByteOffset, ByteSize, DwarfRegister

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fetchc.check.checker import Checker
    from fetchc.check.probe_site import Site
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Place, Variable
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["argument_registers", "entry_place", "registers_of_place", "result_value"]


def entry_place(site: Site, function: Function, variable: Variable) -> Place:
    """Where ``variable`` is at the first instruction of ``function``."""
    stated = site.program.place(variable, function, function.address)
    passed = argument_registers(site, function)
    if isinstance(stated, InMemory) and stated.register in passed:
        return stated  # passed by the address of a copy
    found = described_entry_place(site, function, variable)
    if found is not None and registers_of_place(found) <= passed:
        return found
    name = site.language.name
    return Absent(
        "no location",
        f"{name} promises no calling convention, and the debug information does not say where "
        "it is before the first statement (`--at body`)",
    )


def registers_of_place(place: Place) -> set[DwarfRegister]:
    """The registers that have the value, none where it is anywhere else."""
    match place:
        case InRegister(register=register):
            return {register}
        case Pieces(pieces=pieces):
            return {register for piece in pieces for register in registers_of_place(piece.place)}
        case _:
            return set()


def argument_registers(site: Site, function: Function) -> set[DwarfRegister]:
    """The registers that C's convention passes arguments in."""
    from fetchc.abi import convention_for

    as_c = Function(function.name, "", function.address, None, None, "c", compiler_of(""), True)
    convention = convention_for(site.program, as_c)
    return {*convention.integer_registers, *convention.float_registers}


# ------------------------------------------------------------------------------
# Results of languages that promise no calling convention (Rust).
#
# What rustc does with values that are one number, and with pairs of pointer and length, is known
# for its versions (targets/runtime/rust/results.toml). Other short values are taken apart by
# rules that the debug information does not tell of, and of long ones an optimised build keeps no
# address.

_DEEPEST = 16  # structures in each other; only a hostile type has more
_WIDE = 16  # bytes of a pointer with its length


def result_value(checker: Checker, name: str, result: TypeId, span: Span) -> Typed:
    """What ``$retval`` is; raises CompileError FC0401 where that cannot be known."""
    site = checker.site
    function = site.function
    assert function is not None
    rules = _rules(checker, function)
    if rules is None:
        raise _refused(
            checker,
            span,
            f"what `{function.compiler.producer or 'its compiler'}` does is not known",
        )
    size = checker.size(result)
    first = _register(checker, rules["scalar"])
    if _is_scalar(checker, result, 0):
        if isinstance(checker.resolved(result), StructType):
            return Located(InRegister(first), f"${name}", result, span)
        return Special("result", "", result, span)
    if _is_wide(checker, result) and size == _WIDE:
        word = ByteSize(checker.program.word_bytes)
        pieces = tuple(
            [
                Piece(ByteOffset(number * word), word, InRegister(_register(checker, one)))
                for number, one in enumerate(rules["pair"])
            ]
        )
        return Located(Pieces(pieces), f"${name}", result, span)
    if size is not None and size > _WIDE:
        raise _refused(
            checker,
            span,
            "only the caller knows the address of a result that is longer than two registers",
        )
    raise _refused(
        checker, span, f"the registers of a `{checker.spell(result)}` are not documented"
    )


def _rules(checker: Checker, function: Function) -> Mapping[str, Any] | None:
    from fetchc.target.machines import tables_under

    compiler = function.compiler
    for table in tables_under("runtime/rust").values():
        for raw in table.get("results", ()):
            if compiler.name != raw["compiler"] or compiler.version is None:
                continue
            known = tuple(raw["from"]) <= compiler.version < tuple(raw["before"])
            if known and raw["architecture"] == checker.program.architecture:
                found: Mapping[str, Any] = raw
                return found
    return None


def _register(checker: Checker, name: str) -> DwarfRegister:
    known = checker.site.architecture.registers.items()
    return next(DwarfRegister(number) for number, one in known if one == name)


def _is_scalar(checker: Checker, type_id: TypeId, depth: int) -> bool:
    """Whether rustc has a value of the type as one integer or pointer."""
    made = checker.resolved(type_id)
    size = checker.size(type_id)
    if not size or size > checker.program.word_bytes or depth > _DEEPEST:
        return False
    match made:
        case IntType() | CharType() | BoolType() | EnumType() | PointerType():
            return True
        case StructType(kind="union"):
            return False
        case StructType(variants=(_, *_)):
            return _is_scalar_enum(checker, made, size, depth)
        case StructType(members=members):
            filled = [one for one in members if checker.size(one.type) != 0]
            return (
                len(filled) == 1
                and checker.size(filled[0].type) == size
                and _is_scalar(checker, filled[0].type, depth + 1)
            )
        case _:
            return False


def _is_scalar_enum(checker: Checker, made: StructType, size: int, depth: int) -> bool:
    # A niche of the one field that there is, or a tag and nothing else.
    tags = [checker.size(one.type) for one in made.members]
    if tags not in ([size], []):
        return False
    held = []
    for variant in made.variants:
        fields = checker.resolved(variant.member.type)
        if not isinstance(fields, StructType):
            return False
        held += [one for one in fields.members if checker.size(one.type) != 0]
    if not held:
        return bool(tags)
    return (
        len(held) == 1
        and checker.size(held[0].type) == size
        and _is_scalar(checker, held[0].type, depth + 1)
    )


def _is_wide(checker: Checker, type_id: TypeId) -> bool:
    # A pointer and a number: references, boxes; what looks like them and is owned is longer.
    made = checker.resolved(type_id)
    return isinstance(made, StringType | SliceType | InterfaceType) and len(made.members) == 2


def _refused(checker: Checker, span: Span, why: str) -> CompileError:
    return reject(
        "FC0401",
        f"the result cannot be fetched: {checker.site.language.name} promises no calling "
        f"convention, and {why}",
        span,
        "not known where it is",
        help="probe the caller after it stored the result, by its line",
    )
