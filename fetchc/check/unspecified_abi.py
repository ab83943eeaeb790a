"""Parameters at the entry, of languages that promise no calling convention (Rust).

Their compilers take the registers of C's convention, in an order of their own. So only the
debug information says which one, and it counts where it names one of these: at the first
instruction that is what the caller passed. What it says of the frame is of later instructions.
"""

from __future__ import annotations

from fetchc.check.locations import described_entry_place
from fetchc.check.probe_site import SiteTypes
from fetchc.check.typed_tree import Located, Special
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.program.compiler import compiler_of
from fetchc.program.entities import (
    Absent,
    FrameRelative,
    Function,
    InMemory,
    InRegister,
    Piece,
    Pieces,
)
from fetchc.program.types import (
    ArrayType,
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
    from fetchc.program.entities import Place, Variable
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = [
    "LOST_ADDRESS",
    "argument_registers",
    "entry_place",
    "is_address",
    "registers_of_place",
    "result_value",
]


def entry_place(site: Site, function: Function, variable: Variable) -> Place:
    """Where ``variable`` is at the first instruction of ``function``."""
    stated = site.program.place(variable, function, function.address)
    passed = argument_registers(site, function)
    if isinstance(stated, InMemory) and stated.register in passed:
        return stated  # passed by the address of a copy
    found = described_entry_place(site, function, variable)
    by_address = _is_passed_by_address(site, variable)
    if found is not None and registers_of_place(found) <= passed:
        return LOST_ADDRESS if by_address and isinstance(found, InMemory) else found
    if isinstance(stated, InMemory) and not by_address:
        slot = _callers_slot(site, function, stated)
        if slot is not None:
            return slot
    name = site.language.name
    return Absent(
        "no location",
        f"{name} has no specified calling convention, and the debug information gives it no "
        "location before the first statement (`--at body`)",
    )


LOST_ADDRESS = Absent(
    "no location",
    "its address is on the stack, and the debug information says that it is there itself",
)


def is_address(site: Site, function: Function, variable: Variable, place: Place) -> bool:
    """Whether the parameter's address is where the debug information has the parameter.

    rustc passes the address of what is longer than two words. Of one that comes on the stack
    LLVM's debug information for optimized code leaves the dereference out (rustc 1.63 and 1.95).
    A structure of an ``extern "C"`` function is there itself; the two look the same.
    """
    if not _is_passed_by_address(site, variable):
        return False
    match place:
        case FrameRelative(offset=offset):
            return offset >= 0
        case InMemory(register=register, offset=offset):
            frame = site.program.evidence.frame_address(function, site.address)
            if isinstance(frame, InMemory) and frame.register == register:
                return offset >= frame.offset
            return register == site.architecture.stack_pointer
        case _:
            return False


def _is_passed_by_address(site: Site, variable: Variable) -> bool:
    types = SiteTypes(site)
    resolved = types.resolved(variable.type)
    return isinstance(resolved, StructType | ArrayType) and not _is_scalar(types, variable.type, 0)


def _callers_slot(site: Site, function: Function, stated: InMemory) -> InMemory | None:
    # LLVM describes what comes on the stack by the place that it has once the frame is built, for
    # the first instructions, too. Where that is, the code shows that reads it by the same name.
    from fetchc.check.abi_evidence import frame_accesses
    from fetchc.target.machines import call_rules

    machine = site.architecture
    if call_rules(site.program.architecture) is None:
        return None
    try:
        found = {from_cfa for named, from_cfa in frame_accesses(site, function) if named == stated}
    except CompileError:
        return None
    if len(found) != 1 or min(found) < 0:
        return None
    offset = ByteOffset(found.pop() + machine.entry_stack_bytes)
    return InMemory(machine.stack_pointer, offset)


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
# rules that the debug information does not tell of, and of long ones an optimized build keeps no
# address.

_DEEPEST = 16  # structures in each other; only a hostile type has more
_WIDE = 16  # bytes of a pointer with its length


def result_value(checker: Checker, name: str, result: TypeId, span: Span) -> Typed:
    """What ``$retval`` is; raises CompileError FC0401 where nothing says it."""
    site = checker.site
    function = site.function
    assert function is not None
    rules = _rules(checker, function)
    if rules is None:
        raise _refused(
            checker,
            span,
            f"the convention of `{function.compiler.producer or 'its compiler'}` is not known",
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
            covered = tuple(raw["from"]) <= compiler.version < tuple(raw["before"])
            if covered and raw["architecture"] == checker.program.architecture:
                found: Mapping[str, Any] = raw
                return found
    return None


def _register(checker: Checker, name: str) -> DwarfRegister:
    registers = checker.site.architecture.registers.items()
    return next(DwarfRegister(number) for number, one in registers if one == name)


def _is_scalar(checker: SiteTypes, type_id: TypeId, depth: int) -> bool:
    """Whether rustc has a value of the type as one integer or pointer."""
    resolved = checker.resolved(type_id)
    size = checker.size(type_id)
    if not size or size > checker.program.word_bytes or depth > _DEEPEST:
        return False
    match resolved:
        case IntType() | CharType() | BoolType() | EnumType() | PointerType():
            return True
        case StructType(kind="union"):
            return False
        case StructType(variants=(_, *_)):
            return _is_scalar_enum(checker, resolved, size, depth)
        case StructType(members=members):
            filled = [one for one in members if checker.size(one.type) != 0]
            return (
                len(filled) == 1
                and checker.size(filled[0].type) == size
                and _is_scalar(checker, filled[0].type, depth + 1)
            )
        case _:
            return False


def _is_scalar_enum(checker: SiteTypes, resolved: StructType, size: int, depth: int) -> bool:
    # A niche of the one field that there is, or a tag and nothing else.
    tags = [checker.size(one.type) for one in resolved.members]
    if tags not in ([size], []):
        return False
    filled = []
    for variant in resolved.variants:
        fields = checker.resolved(variant.member.type)
        if not isinstance(fields, StructType):
            return False
        filled += [one for one in fields.members if checker.size(one.type) != 0]
    if not filled:
        return bool(tags)
    return (
        len(filled) == 1
        and checker.size(filled[0].type) == size
        and _is_scalar(checker, filled[0].type, depth + 1)
    )


def _is_wide(checker: Checker, type_id: TypeId) -> bool:
    # A pointer and a number: references, boxes; what looks like them and is owned is longer.
    resolved = checker.resolved(type_id)
    return (
        isinstance(resolved, StringType | SliceType | InterfaceType) and len(resolved.members) == 2
    )


def _refused(checker: Checker, span: Span, why: str) -> CompileError:
    return reject(
        "FC0401",
        f"the result cannot be fetched: {checker.site.language.name} has no specified calling "
        f"convention, and {why}",
        span,
        "unknown location",
        help="probe the caller after it stored the result, by its line",
        reason="no location",
    )
