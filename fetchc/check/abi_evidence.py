"""Parameters that no evidence confirms, and whether a function follows the convention at all."""

from __future__ import annotations

from fetchc.abi import convention_for, entry_places
from fetchc.check.locations import (
    credible_entry_place,
    is_clone,
    is_consistent,
    is_unfetchable,
    optimized_by_gcc,
)
from fetchc.check.probe_site import SiteTypes
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.program.entities import (
    Absent,
    AtAddress,
    Constant,
    FrameRelative,
    InMemory,
    InRegister,
    Piece,
    Pieces,
    Place,
    PointerTo,
)
from fetchc.program.types import StructType
from fetchc.quantities import ByteOffset, DwarfRegister
from fetchc.target.machines import WordRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fetchc.check.probe_site import Site
    from fetchc.program.entities import Extent, Function, Variable
    from fetchc.quantities import Address
    from fetchc.source import Span

__all__ = [
    "follows_convention",
    "frame_accesses",
    "passed_place",
    "refuse_other_convention",
    "require_returned",
    "require_unchanged_signature",
    "unconfirmed_place",
    "unwritten_object",
]

_FIRST_CODE = 256  # bytes of a function that are looked at for the registers that it reads


def passed_place(site: Site, function: Function, variable: Variable, by_convention: Place) -> Place:
    """``by_convention`` without the registers that callers of LLVM's may leave as they are.

    In calls of the same file LLVM does not pass what an exported function does not use: a whole
    parameter, or one of the registers that a structure comes in. What the debug information has a
    place for at the entry is used, and so is a register that the function's code reads before it
    writes it. A later place may be of a value that the function has assigned, and so may a
    constant: its range is extended to the entry (LLVM, DebugHandlerBase::beginFunction).
    Source: removeDeadArgumentsFromCallers, DeadArgumentElimination.cpp.
    """
    places = {site.program.place(variable, function, function.address)}
    extents = site.program.extents(variable, function)
    if len({one.place for one in extents}) == 1 and isinstance(extents[0].place, _SLOT):
        places.add(extents[0].place)  # a slot of the frame, in which it is all over the function
    described = [place for place in places if _is_passed(place)]
    match by_convention:
        case Pieces(pieces=pieces):
            asked = [one for one in pieces if not is_unfetchable(site, one.place)]
            unused = [one for one in asked if not any(_covers(it, one) for it in described)]
            unread = [one for one in unused if not _is_read(site, function, extents, one.place)]
            if pieces and len(unread) == len(pieces):
                return _MAY_NOT_BE_PASSED
            return by_convention if not unread else _without(by_convention, unread)
        case InMemory():
            types = SiteTypes(site)
            whole = isinstance(types.resolved(variable.type), StructType)
            if described and not (whole and site.program.evidence.is_optimized(function)):
                return by_convention
            size = types.size(variable.type) or 1
            return _if_touched(site, function, variable, by_convention, size)
        case _ if described or is_unfetchable(site, by_convention):
            return by_convention
        case _ if _is_read(site, function, extents, by_convention):
            return by_convention
        case _:
            return _MAY_NOT_BE_PASSED


def unwritten_object(site: Site, function: Function, place: Place) -> Absent | None:
    """Why callers may have left the object at ``place`` as it was, whose address they passed.

    Where gcc sees that a function does not read such a parameter, the stores to it are dead in its
    callers (tree-ssa-dse.cc, ipa-modref.cc). Of a function that reads some of its members, and not
    others, nothing shows it.
    """
    from fetchc.code.disassembly import ignores
    from fetchc.target.machines import call_rules

    machine, size = site.architecture, function.size or 0
    if not isinstance(place, InMemory) or not optimized_by_gcc(function):
        return None
    if call_rules(site.program.architecture) is None:
        return None
    if place.register == machine.stack_pointer or not 0 < size <= _MOST_CODE:
        return None
    program, name = site.program, machine.registers[place.register]
    try:
        code = program.code(function.address, size)
        unread = ignores(code, function.address, program.architecture, name)
    except CompileError:
        return None  # without a disassembler
    if not unread:
        return None
    why = f"the function does not read %{name}, so callers may not have filled what it points to"
    return Absent("contradicted", why)


def _is_read(site: Site, function: Function, extents: Sequence[Extent], register: Place) -> bool:
    # Whether the function reads the register that a parameter comes in. Its code shows it where
    # targets/arch describes calls (x86-64); elsewhere any place of the variable counts.
    from fetchc.target.machines import call_rules

    if call_rules(site.program.architecture) is None:
        return any(_is_passed(one.place) for one in extents)
    return register in _read_first(site, function)


def _if_touched(
    site: Site, function: Function, variable: Variable, place: InMemory, size: int
) -> Place:
    # A structure on the stack has its slot whatever becomes of it. Where the function reads
    # nothing of it, the caller need not fill the slot: LLVM's inference of `readnone` for the
    # argument (FunctionAttrs.cpp) makes the stores dead. So its code has to name the slot.
    # Done where targets/arch describes calls (x86-64); elsewhere any place of the variable counts.
    from fetchc.target.machines import call_rules

    program, machine = site.program, site.architecture
    if place.register != machine.stack_pointer or call_rules(program.architecture) is None:
        extents = program.extents(variable, function)
        passed = any(_is_passed(one.place) for one in extents)
        return place if passed else _MAY_NOT_BE_PASSED
    low = place.offset - machine.entry_stack_bytes
    try:
        if any(low <= from_cfa < low + size for _, from_cfa in frame_accesses(site, function)):
            return place
    except CompileError:
        return Absent(
            "no location",
            "only a disassembler can show whether the function uses it: install capstone",
        )
    return _MAY_NOT_BE_PASSED


def frame_accesses(site: Site, function: Function) -> Iterator[tuple[InMemory, int]]:
    """What the function's code names by its frame's register, with its distance from the CFA.

    Raises CompileError where nobody can tell.
    """
    from fetchc.code.disassembly import stack_accesses

    program = site.program
    numbers = {name: number for number, name in site.architecture.registers.items()}
    code = program.code(function.address, min(function.size or 0, _MOST_CODE))
    for at, name, distance in stack_accesses(code, function.address, program.architecture):
        frame = program.evidence.frame_address(function, at)
        if isinstance(frame, InMemory) and numbers.get(name) == frame.register:
            named = InMemory(frame.register, ByteOffset(distance))
            yield named, distance - frame.offset


_MOST_CODE = 1 << 16
_SLOT = InMemory | FrameRelative
_MAY_NOT_BE_PASSED = Absent(
    "no location", "the code does not show that the function uses it, so callers may not pass it"
)


def _without(place: Pieces, unread: list[Piece]) -> Pieces:
    return Pieces(
        tuple(
            Piece(one.offset, one.size, _MAY_NOT_BE_PASSED) if one in unread else one
            for one in place.pieces
        )
    )


def _is_passed(place: Place) -> bool:
    match place:
        case Absent(kind=kind):
            return kind != "no location"  # what is computed had to be there first
        case Constant() | PointerTo(target=AtAddress() | Constant()):
            return False
        case _:
            return True


def _covers(place: Place, part: Piece) -> bool:
    # Whether a place of the whole is one of some bytes of ``part``.
    if isinstance(place, InRegister):
        return place == part.place  # half of an `__int128`
    if not isinstance(place, Pieces):
        return True
    return any(
        _is_passed(one.place)
        and one.offset < part.offset + part.size
        and part.offset < one.offset + one.size
        for one in place.pieces
    )


def _read_first(site: Site, function: Function) -> frozenset[Place]:
    # The registers that the first instructions read before they write them.
    from fetchc.code.disassembly import taken

    size = min(function.size or 0, _FIRST_CODE)
    machine = site.architecture
    try:
        code = site.program.code(function.address, size)
        names = taken(code, function.address, site.program.architecture)
    except CompileError:
        return frozenset()  # without a disassembler
    return frozenset(
        InRegister(DwarfRegister(number))
        for number, name in machine.registers.items()
        if name in names
    )


def unconfirmed_place(
    site: Site,
    function: Function,
    variable: Variable,
    parameters: tuple[Variable, ...],
    places: tuple[Place, ...],
    by_convention: Place,
) -> Place:
    """The place ``by_convention`` of a parameter for which there is no evidence, or Absent.

    Where another parameter proves that the function does not follow the convention, nobody knows
    the place of this one.
    """
    if is_clone(function):
        return Absent(
            "no location",
            "the compiler changed this clone of the function, and the code does not show that "
            "it still takes it",
        )
    if function.external and function.compiler.omits_unused_copies:
        return _described_whole(function, parameters, by_convention)
    if not function.external and _is_of_no_convention(site, function):
        return Absent(
            "no location", "all calls are local to the file, and gcc chooses the register"
        )
    if (
        not function.external
        and function.compiler.drops_unused_parameters
        and any(_is_nowhere(site, function, p) for p in parameters)
    ):
        # What no evidence confirms may be anywhere.
        return Absent("no location", "the function is local to its file and may no longer take it")
    other = _elsewhere(site, function, parameters, places)
    if other is not None:
        return Absent(
            "contradicted",
            f"`{other.name}` shows that the function uses its own calling "
            "convention, and the debug information does not say where this one is",
        )
    if function.compiler.omits_unused_copies:
        return _described_whole(function, parameters, by_convention)
    return by_convention


def _elsewhere(
    site: Site, function: Function, parameters: tuple[Variable, ...], places: tuple[Place, ...]
) -> Variable | None:
    """A parameter that is not where the convention has it: gcc does not tell of `ms_abi`."""
    for parameter, place in zip(parameters, places, strict=True):
        found = credible_entry_place(site, function, parameter)
        if found is None or isinstance(place, Absent) or is_consistent(found, place):
            continue
        if place == Pieces(()):
            continue  # an empty class: g++ gives it a slot that is another parameter's
        if function.external:
            if isinstance(found, Constant | PointerTo):
                continue
            if is_unfetchable(site, found) and is_unfetchable(site, place):
                continue
        return parameter
    return None


def follows_convention(site: Site, function: Function) -> bool:
    """Whether there is no evidence that ``function`` has another calling convention than most."""
    if function.foreign:
        return False
    if not function.external or is_clone(function):
        return True  # evidence about one parameter there says nothing about the convention
    places = entry_places(site.program, convention_for(site.program, function), function)
    return _elsewhere(site, function, site.program.parameters(function), places) is None


def _described_whole(
    function: Function, parameters: tuple[Variable, ...], by_convention: Place
) -> Place:
    from fetchc.lang.cpp_function_names import parameter_count

    passed = parameter_count(function.symbol)
    if passed is not None and passed > sum(not one.artificial for one in parameters):
        return Absent(
            "contradicted",
            "the debug information omits a parameter of the function, which shifts those after it",
        )
    return by_convention


def _is_of_no_convention(site: Site, function: Function) -> bool:
    rules = convention_for(site.program, function).rules
    return isinstance(rules, WordRules) and rules.regparm and optimized_by_gcc(function)


def _is_nowhere(site: Site, function: Function, variable: Variable) -> bool:
    # Or in pieces that are computed, which show no register that the caller filled.
    place = site.program.place(variable, function, function.address)
    return isinstance(place, Absent | Pieces)


# ------------------------------------------------------------------------------
# Whether a function returns what its type says, where the type says it.
#
# Compilers drop results that no caller takes, and of a structure the parts that none takes: gcc
# where it copies a function (ipa-sra.cc: ``.isra``, ipa-split.cc: ``.part``), LLVM in any
# function whose calls it sees all (DeadArgumentElimination.cpp), which it marks from LLVM 17
# on (DW_CC_nocall). What a caller takes is still returned, and so is what a function returns
# whose address is stored.

_COPIES = (".isra.", ".part.")
_FAR = 64  # bytes of code after a call, in which its result is taken
_LONGEST = 0x10000  # bytes of a function's own code that are looked at


def require_returned(
    site: Site,
    function: Function,
    place: Place,
    registers: tuple[DwarfRegister, ...],
    span: Span,
) -> None:
    """Refuse (FC0401) a result at ``place`` that may not be there.

    ``registers`` are those of the convention's whole numbers: of a long result the first of them
    has the address.
    """
    if not follows_convention(site, function):
        raise refuse_other_convention(function.name, span)
    copied = any(mark in function.symbol for mark in _COPIES)
    unseen = function.compiler.drops_unused_parameters and not function.external
    if not (function.changed or copied or unseen):
        return
    uses = site.program.evidence.uses(function)
    if uses.stored or not (uses.optimized or function.changed or copied):
        return
    names = site.architecture.registers
    wanted = {names[each] for each in _registers(place, registers) if each in names}
    if any(wanted <= _taken(site, function, address) for address in uses.calls):
        return
    note = None
    if function.changed:
        note = "the debug information says so (DW_CC_nocall), and not what was changed"
    raise _dropped_result(function, note or "no call is seen whose result is used as a whole", span)


def require_unchanged_signature(function: Function, span: Span) -> None:
    """Refuse (FC0401) any result of a function that the debug information says was changed."""
    if function.changed:
        note = "the debug information says so (DW_CC_nocall), and not what was changed"
        raise _dropped_result(function, note, span)


def refuse_other_convention(name: str, span: Span) -> CompileError:
    """The refusal of a place that only the convention would give: the function has another one."""
    return reject(
        "FC0401",
        f"`{name}` has a calling convention of its own",
        span,
        "unknown location",
        help="fetch the register that you know it to be in: `%ax`",
        reason="no location",
    )


def _dropped_result(function: Function, note: str, span: Span) -> CompileError:
    return reject(
        "FC0401",
        f"the compiler changed how `{function.name}` is called: it may return nothing"
        if function.changed or any(mark in function.symbol for mark in _COPIES)
        else f"`{function.name}` is called only from its own file: it may return nothing",
        span,
        "it may not be there",
        notes=(note,),
        help="probe the caller, or the return of an exported function",
    )


def _registers(place: Place, registers: tuple[DwarfRegister, ...]) -> frozenset[DwarfRegister]:
    match place:
        case InRegister(register=register):
            return frozenset({register})
        case Pieces(pieces=pieces):
            return frozenset().union(*[_registers(each.place, registers) for each in pieces])
        case InMemory():
            return frozenset(registers[:1])
        case _:
            return frozenset()


def _taken(site: Site, function: Function, address: Address) -> frozenset[str]:
    # What the code after a call reads of what the function writes.
    from fetchc.code.disassembly import taken, written

    program = site.program
    behind = taken(program.code(address, _FAR), address, program.architecture)
    if not behind:
        return behind
    own = program.code(function.address, min(function.size or 0, _LONGEST))
    return behind & written(own, function.address, program.architecture)
