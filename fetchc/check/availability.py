"""Where in a function a variable has a location, for messages about a point where it has none."""

from __future__ import annotations

from fetchc.abi import convention_for, entry_places
from fetchc.check.locations import is_clone, is_untracked, optimized_by_gcc, unoptimized_by_gcc
from fetchc.diag.diagnostic import CompileError, Diagnostic, Label, reject
from fetchc.program.entities import (
    Absent,
    Arithmetic,
    Constant,
    FrameRelative,
    Indirect,
    InMemory,
    InRegister,
    Piece,
    Pieces,
    Place,
    PointerTo,
)
from fetchc.quantities import ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fetchc.check.probe_site import Site
    from fetchc.program.entities import Extent, Function, Variable
    from fetchc.quantities import Address, DwarfRegister
    from fetchc.source import Span

__all__ = ["availability_notes", "body_place", "refuse_absent", "stale_warning", "start_within"]

_TRIED = 4  # ranges of a variable, for a place to probe

_LEFT_BY_AWAIT = Absent(
    "no location",
    "it is in the stack frame of a poll, and code after an `.await` may run in the next one",
)
_FOLLOWED_TWICE = Absent(
    "no location",
    "this rustc describes what an `async fn` or a closure has captured by one pointer too many",
)
_CAPTURES_HELD = (1, 95)  # rustc, from which on such places were compared with running programs
_LOST_BY_GROWTH = Absent(
    "no location",
    "Go does not save the registers with parameters in calls that grow the stack first",
)


def refuse_absent(site: Site, variable: Variable, place: Absent, span: Span) -> CompileError:
    """The refusal of a variable that has no place at the site; ``place`` says why."""
    notes: tuple[str, ...] = ()
    hint: str | None = None
    final = place in (_FOLLOWED_TWICE, _LEFT_BY_AWAIT, _LOST_BY_GROWTH)
    elsewhere = place.kind in ("no location", "computed") and not final
    if place == _LOST_BY_GROWTH:
        notes = ("the function uses none of its parameters",)
        hint = "probe the entry, where `trace` detects such calls: leave out `--at`"
    elif place == _LEFT_BY_AWAIT:
        notes = ("what is used after an `.await` is kept in the coroutine, this is not",)
        hint = "probe a line that uses it, or for an argument the function that makes the future"
    elif elsewhere and variable.called is not None and site.address >= variable.called:
        lines, function = site.program.code_map(), site.function
        assert lines is not None
        assert function is not None
        behind = lines.statement_behind(function, site.address)
        hint = None if behind is None else f"probe the next statement: `--at {behind:#x}`"
    elif elsewhere and site.function is not None and variable.kind != "global":
        notes, hint = availability_notes(site, site.function, variable)
        extents = site.program.extents(variable, site.function)
        never = all(isinstance(extent.place, Absent) for extent in extents)
        if not notes and never and place.kind == "no location" and not site.program.in_kernel:
            notes = ("the compiler gives it no location in the function: optimized out",)
    why = site.architecture.in_words(place.reason)
    return reject(
        place.code,
        f"`{variable.name.lstrip('&')}` cannot be fetched here: {why}",
        span,
        "no location at this address",
        notes=notes,
        help=hint,
        reason=place.kind,
    )


def availability_notes(
    site: Site, function: Function, variable: Variable, computed: bool = True
) -> tuple[tuple[str, ...], str | None]:
    """Notes that say where in ``function`` a variable has a location, and help to probe there.

    Without ``computed`` only where it is in some place, not where it would be computed.
    """
    nowhere = Absent | Arithmetic if computed else Absent | Arithmetic | PointerTo
    hint: str | None = None
    where, later = [], []
    stored = False  # in a slot that is said to be there from the first instruction on
    framed, is_local = False, variable.kind == "local"
    body = site.program.body_address(function) if is_local else function.address
    for extent in site.program.extents(variable, function):
        if not isinstance(_sorted_out(site, function, variable, extent), nowhere):
            start = extent.start
            in_slot = isinstance(extent.place, InMemory | FrameRelative)
            if is_local and in_slot and start < body < extent.end:
                start, framed = body, True  # the slot is named before there is one
            low, high = start - function.address, extent.end - function.address
            where.append((low, f"+{low:#x}..+{high:#x} ({_words(site, extent.place)})"))
            if low > 0:
                later.append(extent)
            elif variable.kind == "parameter":
                stored = isinstance(extent.place, InMemory | FrameRelative)
    if not where:
        return (), None
    listed = ", ".join(text for _, text in where[:6])
    more = f" and {len(where) - 6} more" if len(where) > 6 else ""
    if is_local and site.entry and (line := _line_behind(site, function, variable)) is not None:
        hint = f"probe a line after its declaration: `--at :{line}`"
    elif is_local and (framed or (where[0][0] == 0 and not site.entry)):
        hint = "probe where its frame is built: `--at body`" + ("" if site.entry else ", or a line")
    elif where[0][0] == 0 and not site.entry:
        option = "--return" if site.returns or site.leaving else "--at"
        hint = f"probe the function's entry: leave out `{option}`"
        if option == "--return":
            hint += "; `fetchc trace --latency` has both ends"
    elif stored and _has_prologue(site, function):
        hint = "probe where it has been stored: `--at body`"
    elif (first := _first_start(site, function, later)) is not None:
        hint = f"probe there: `--at +{first:#x}`"
    return (f"it is available at {listed}{more}",), hint


def _line_behind(site: Site, function: Function, variable: Variable) -> int | None:
    # The first line after the declaration, where the variable has a place at each of its addresses.
    lines = site.program.code_map()
    described = None if lines is None or not variable.line else lines.lines_of(function)
    if described is None:
        return None
    later = sorted(line for line in described[1] if line > variable.line)
    for line in later[:_TRIED]:
        places = [
            body_place(site.replaced(address=address, entry=False), function, variable)
            for address in described[1][line]
        ]
        if not any(isinstance(place, Absent) for place in places):
            return line
    return None


def _sorted_out(site: Site, function: Function, variable: Variable, extent: Extent) -> Place:
    # Of Go some part of a variable can be there, and which is not said.
    if not site.language.convention_first:
        return extent.place
    from fetchc.check.go_variables import arrange_pieces

    return arrange_pieces(site, function, variable, extent.place)


def _has_prologue(site: Site, function: Function) -> bool:
    from fetchc.check.locations import optimized_by_gcc

    return not optimized_by_gcc(function) and site.program.body_address(function) > function.address


def _first_start(site: Site, function: Function, extents: list[Extent]) -> int | None:

    starts = (start_within(site, function, extent) for extent in extents[:_TRIED])
    return next((start for start in starts if start is not None), None)


def _words(site: Site, place: Place) -> str:
    match place:
        case InRegister(register=register):
            return site.architecture.shown(register)
        case Pieces():
            return "parts of it"
        case Constant():
            return "a constant"
        case _:
            return "in memory"


# ------------------------------------------------------------------------------
# Where a variable is after the entry, by the debug information alone: what it says too early.
#
# A slot of the frame is named for the whole function: also where the first instructions have not
# written it yet, and where the frame is no longer valid.


def body_place(site: Site, function: Function, variable: Variable) -> Place:
    """The place of a local or a parameter at a site within the function; Absent where too early."""
    place = _described_place(site, function, variable)
    if variable.kind == "parameter" and optimized_by_gcc(function):
        unwritten = _left_unwritten(site, function, variable, place)
        if unwritten is not None:
            return unwritten
        place = _without_lost_parts(site, function, variable, place)
    if variable.kind == "parameter" and not site.language.promises_convention:
        from fetchc.check.unspecified_abi import LOST_ADDRESS, is_address

        if is_address(site, function, variable, place):
            return LOST_ADDRESS
    if _is_left_by_await(site, function, variable, place):
        return _LEFT_BY_AWAIT
    if _is_followed_twice(site, function, place):
        return _FOLLOWED_TWICE
    if site.language.convention_first:
        from fetchc.check.go_variables import arrange_pieces

        place = arrange_pieces(site, function, variable, place)
        if _is_lost_by_growth(site, function, variable, place):
            return _LOST_BY_GROWTH
    return _if_frame_is_valid(site, function, place)


def _is_followed_twice(site: Site, function: Function, place: Place) -> bool:
    """Whether a place begins with a pointer that LLVM has in a register, and follows once more.

    rustc 1.63 describes captured variables by the slot of a pointer to the coroutine or the
    closure. LLVM 14 keeps the DW_OP_deref where optimized code has that pointer in a register:
    DW_OP_breg6 0, DW_OP_deref, DW_OP_plus_uconst 206 is really %bp + 206.
    """
    compiler = function.compiler
    if compiler.name != "rustc" or (compiler.version or (0, 0)) >= _CAPTURES_HELD:
        return False
    return _follows_once_more(place, site.architecture.stack_pointer)


def _follows_once_more(place: Place, stack_pointer: DwarfRegister) -> bool:
    # The pointer is in a register, or was and is in a slot now.
    match place:
        case Indirect(pointer=InMemory(register=register, offset=0)) if register != stack_pointer:
            return True
        case Indirect(pointer=Indirect(pointer=InMemory(), offset=0), offset=offset) if offset:
            return True
        case Indirect(pointer=inner):
            return _follows_once_more(inner, stack_pointer)
        case _:
            return False


def _is_lost_by_growth(site: Site, function: Function, variable: Variable, place: Place) -> bool:
    """Whether a Go parameter has other bytes in its registers, after the stack has grown."""
    from fetchc.check.go_parameters import loses_registers_in_growth

    parts = [each.place for each in place.pieces] if isinstance(place, Pieces) else [place]
    in_registers = any(isinstance(each, InRegister) for each in parts)
    passed = variable.kind == "parameter" and variable.called is None
    return in_registers and passed and loses_registers_in_growth(site, function)


def _is_left_by_await(site: Site, function: Function, variable: Variable, place: Place) -> bool:
    """Whether a slot on the stack may be of another poll, since the coroutine was suspended.

    rustc keeps in the coroutine what is used after an `.await`. The others have one slot in the
    frame of its `poll` function, which the debug information has for their whole block. Code that
    an `.await` leads to has no value there before it declares the variable again, in a loop.
    """
    if not isinstance(place, InMemory) or function.compiler.name != "rustc":
        return False
    if len({extent.place for extent in site.program.extents(variable, function)}) != 1:
        return False
    awaits = site.program.evidence.awaits_within(variable)
    if not awaits:
        return False
    from fetchc.check.probe_site import SiteTypes
    from fetchc.code.disassembly import reaches, stack_accesses

    machine, begin = site.architecture, function.address
    code = site.program.code(begin, ByteSize(function.size or 0))
    register = machine.registers.get(place.register, "")
    end = place.offset + max(SiteTypes(site).size(variable.type) or 0, 1)
    declares = frozenset(
        at
        for at, base, distance in stack_accesses(code, begin, machine.name)
        if base == register and place.offset <= distance < end
    )
    return reaches(
        code,
        begin,
        machine.name,
        lambda address: any(start <= address < end for start, end in awaits),
        site.address,
        declares,
    )


def _described_place(site: Site, function: Function, variable: Variable) -> Place:
    slot = _only_slot(site, variable) if variable.kind == "parameter" else None
    unused = site.language.promises_convention and function.compiler.describes_unused_slots
    if slot is not None and unused:
        left_out = _left_out(site, function, variable)
        if left_out is not None:
            return left_out
    above = isinstance(slot, FrameRelative) and slot.offset >= 0
    if above and _is_passed_there(site, function, variable, slot):
        return site.program.place(variable, function, site.address)
    above = above and not site.architecture.callee_slots
    if above and site.language.convention_first:
        # Go 1.27 gives unused register parameters the room that a spill would take.
        return Absent("no location", "its stack slot is reserved and never written")
    if above and (is_clone(function) or not function.external):
        # The compiler changed what is passed where, not what is the caller's part of the stack.
        return site.program.place(variable, function, site.address)
    if slot is None and variable.called is not None:
        early = _stored_by_call(site, function, variable, variable.called)
        if early is not None:
            return early
    if is_untracked(site, function, variable):
        return Absent("no location", "gcc does not describe where its two halves are")
    if slot is not None:
        body = site.program.body_address(function)
        if site.address < body:
            return Absent(
                "no location",
                f"its stack slot is written by the function's first instructions, up to "
                f"+{body - function.address:#x}",
            )
        if optimized_by_gcc(function):
            # The slot is written somewhere in the first blocks, at an unknown address: of
            # 157 such parameters at the second line row 14 were not yet stored (GCC 12).
            return Absent(
                "no location",
                "it is in a stack slot, and the file does not say when it is stored there",
            )
    return site.program.place(variable, function, site.address)


def _without_lost_parts(site: Site, function: Function, variable: Variable, place: Place) -> Place:
    """``place`` without the parts that gcc still describes where the code has lost them.

    Of a parameter in several registers gcc 12 describes a part up to the next call also where its
    register has another value already (to the code, an assignment to the part looks the same). Of a
    structure in a register, whose first member it extends there (``movslq %ecx,%rcx``) or in
    another (``movswq %di,%rcx``), it describes all members. Where a call changes the register on
    one of two ways, it describes it again where they meet. The check is for machines where
    targets/arch describes calls.
    """
    from fetchc.check.probe_site import SiteTypes
    from fetchc.program.types import StructType
    from fetchc.target.machines import call_rules

    program, types = site.program, SiteTypes(site)
    pieces: tuple[Piece, ...] = ()
    if isinstance(place, Pieces):
        pieces = place.pieces
    elif isinstance(types.resolved(variable.type), StructType):
        pieces = (Piece(ByteOffset(0), types.size(variable.type) or ByteSize(0), place),)
    in_registers = any(isinstance(one.place, InRegister) for one in pieces)
    if not in_registers or call_rules(program.architecture) is None:
        return place
    extents = program.extents(variable, function)
    start = next((one.start for one in extents if one.start <= site.address < one.end), None)
    if start is None:
        return place
    try:
        left = [
            part
            for one in pieces
            for part in (
                _parts_left(site, function, one, start)
                if _survives_calls(site, function, one, start, extents)
                else (Piece(one.offset, one.size, _CHANGED_BY_CALL),)
            )
        ]
    except CompileError:
        return Absent(
            "no location",
            "only a disassembler can show whether its registers still have it: install capstone",
        )
    return place if left == list(pieces) else Pieces(tuple(left))


def _parts_left(site: Site, function: Function, piece: Piece, start: Address) -> tuple[Piece, ...]:
    # ``piece``, and what of it its register has lost since ``start``.
    from fetchc.code.disassembly import bytes_left

    register = piece.place
    if not isinstance(register, InRegister):
        return (piece,)
    name = site.architecture.registers.get(register.register, "")
    code = site.program.code(function.address, site.address - function.address)
    left = bytes_left(code, function.address, site.program.architecture, name, start)
    if left is None or left >= piece.size:
        return (piece,)
    lost = Piece(ByteOffset(piece.offset + left), ByteSize(piece.size - left), _OVERWRITTEN)
    return (Piece(piece.offset, ByteSize(left), register), lost) if left else (lost,)


def _survives_calls(
    site: Site, function: Function, piece: Piece, start: Address, extents: Sequence[Extent]
) -> bool:
    # Whether no call can have changed the register of a piece on a way from ``start`` to the site.
    from fetchc.check.locations import code_parts
    from fetchc.code.disassembly import keeps
    from fetchc.target.machines import call_rules

    register, machine = piece.place, site.architecture
    rules = call_rules(machine.name)
    if rules is None or not isinstance(register, InRegister):
        return True
    if register.register in rules.preserved or register.register in machine.unfetchable:
        return True

    def survives(address: Address) -> bool:
        around = [one.place for one in extents if one.start <= address < one.end]
        return any(
            one == register or (isinstance(one, Pieces) and piece in one.pieces) for one in around
        )

    name = machine.registers.get(register.register, "")
    parts = code_parts(site, function)
    return keeps(parts, machine.name, name, start, site.address, survives)


_CHANGED_BY_CALL = Absent(
    "no location",
    "the debug information names a register for it that a call may have changed before",
)
_OVERWRITTEN = Absent(
    "no location",
    "the debug information names a register for it that the code has written since",
)


def _left_out(site: Site, function: Function, variable: Variable) -> Absent | None:
    # A slot in the caller's part of the stack, which clang names for the whole function, also
    # where nothing of it is used and calls of the same file leave it as it is.
    from fetchc.check.abi_evidence import passed_place

    if is_clone(function):
        return None
    place = _by_convention(site, function, variable)
    found = passed_place(site, function, variable, place) if isinstance(place, InMemory) else None
    return found if isinstance(found, Absent) else None


def _left_unwritten(
    site: Site, function: Function, variable: Variable, place: Place
) -> Absent | None:
    # Of what is still where it was passed: a class at the address in an argument's register.
    from fetchc.check.abi_evidence import unwritten_object
    from fetchc.check.probe_site import SiteTypes
    from fetchc.program.types import StructType

    is_class = isinstance(SiteTypes(site).resolved(variable.type), StructType)
    if not is_class or not isinstance(place, InMemory) or is_clone(function):
        return None
    if place != _by_convention(site, function, variable):
        return None
    return unwritten_object(site, function, place)


def _by_convention(site: Site, function: Function, variable: Variable) -> Place:
    convention = convention_for(site.program, function)
    places = entry_places(site.program, convention, function)
    parameters = site.program.parameters(function)
    return next(
        place
        for parameter, place in zip(parameters, places, strict=True)
        if parameter.die == variable.die
    )


def stale_warning(
    site: Site, function: Function, variable: Variable, place: Place, span: Span
) -> Diagnostic | None:
    """The warning that ``place`` may still have what was passed, where a statement assigned it.

    Go's compiler continues to describe the old place where a new value goes somewhere else (1.15 to
    1.27). LLVM and gcc remove dead stores to a structure that the caller put on the stack, and
    describe its slot for the whole function. gcc 12 describes a structure in the registers that
    have what was passed, where an assigned member is in another one. A test compiles all of them.
    """
    if isinstance(place, Absent) or variable.kind != "parameter":
        return None
    if site.address <= site.program.body_address(function):
        return None  # no statement has run
    if site.language.convention_first:
        note = "the debug information may name the place of the old value"
        unsure = function.compiler.optimized is not False
    else:
        note = "the compiler removes assignments that nothing reads from where it was passed"
        unsure = _is_passed_structure(site, function, variable, place)
    if not unsure:
        return None
    return Diagnostic(
        "FC0634",
        f"parameters of `{function.name}` may have the value that was passed, where "
        "it assigns another",
        Label(span, "a parameter in optimized code"),
        notes=(note,),
        reason="may be stale",
    )


def _is_passed_structure(site: Site, function: Function, variable: Variable, place: Place) -> bool:
    # Whether ``place`` is where a structure was passed, and the compiler may leave it at that.
    from fetchc.check.probe_site import SiteTypes
    from fetchc.program.types import StructType

    if not isinstance(SiteTypes(site).resolved(variable.type), StructType):
        return False
    if optimized_by_gcc(function):
        passed_there = isinstance(place, InMemory) and isinstance(
            _by_convention(site, function, variable), InMemory
        )
        return passed_there or isinstance(place, InRegister | Pieces)
    removes = function.compiler.removes_dead_stores_to_parameters
    if not removes or not site.program.evidence.is_optimized(function):
        return False
    slot = _only_slot(site, variable)
    return slot is not None and isinstance(_by_convention(site, function, variable), InMemory)


def _if_frame_is_valid(site: Site, function: Function, place: Place) -> Place:
    """``place``, if the frame that it may be a part of is valid at the site."""
    if not _is_in_frame(place) or site.program.evidence.frame_is_valid(function, site.address):
        return place
    body = site.program.body_address(function) - function.address
    if site.address < function.address + body:
        return Absent("no location", f"the frame is built by the instructions up to +{body:#x}")
    return Absent("no location", "the function's frame is no longer valid")


def _is_in_frame(place: Place) -> bool:
    match place:
        case InMemory():
            return True
        case Indirect(pointer=inner) | PointerTo(target=inner):
            return _is_in_frame(inner)
        case Pieces(pieces=pieces):
            return any(_is_in_frame(piece.place) for piece in pieces)
        case _:
            return False


def _only_slot(site: Site, variable: Variable) -> Place | None:
    """The one memory slot that a parameter is said to have in the whole function, if any.

    Where it is of the function's own frame it cannot be true of the first instruction, so
    it says nothing of the next ones either.
    """
    assert site.function is not None
    extents = site.program.extents(variable, site.function)
    places = {extent.place for extent in extents}
    if len(places) != 1 or all(extent.start > site.function.address for extent in extents):
        return None
    place = places.pop()
    return place if isinstance(place, InMemory | FrameRelative) else None


def _stored_by_call(
    site: Site, function: Function, variable: Variable, called: Address
) -> Absent | None:
    # A parameter of an inlined call that has one slot all over. gcc -O0 stores it before the
    # call's code, clang with the call's first instructions.
    if _only_slot(site, variable) is None or unoptimized_by_gcc(function):
        return None
    if optimized_by_gcc(function):
        return Absent(
            "no location",
            "it is in a stack slot, and the file does not say when it is stored there",
        )
    lines = site.program.code_map()
    behind = None if lines is None else lines.statement_behind(function, called)
    if behind is None or site.address < behind:
        return Absent(
            "no location", "its stack slot is written by the inlined call's first instructions"
        )
    return None


def _is_passed_there(
    site: Site, function: Function, variable: Variable, slot: Place | None
) -> bool:
    if not isinstance(slot, FrameRelative):
        return False
    if not site.language.promises_convention:
        return True  # the debug information is all there is
    offset = slot.offset + site.architecture.entry_stack_bytes
    passed = InMemory(site.architecture.stack_pointer, ByteOffset(offset))
    there = _by_convention(site, function, variable)
    # Where the convention does not know either, the debug information is all there is.
    return isinstance(there, Absent) or there == passed


# ------------------------------------------------------------------------------
# Where a probe can be set within a range of a function's addresses.


def start_within(site: Site, function: Function, extent: Extent) -> int | None:
    """Bytes from ``function`` to the first instruction that starts in ``extent``, after the entry.

    GCC begins what holds after a call one byte before the next instruction, so that the return
    address less one finds it: in the middle of the call. None where no instruction starts there,
    or where nobody can tell.
    """
    program = site.program
    end = function.address + (function.size or 0)
    if program.in_kernel or not function.address <= extent.start < end:
        return None
    from fetchc.code.disassembly import instruction_starts

    code = program.code(function.address, end - function.address)
    try:
        return _first(instruction_starts(code, function.address, program.architecture), extent)
    except CompileError:
        return None  # a hint less: the disassembler is missing, or there are bytes that are no code


def _first(starts: Iterator[Address], extent: Extent) -> int | None:
    begin = next(starts, None)
    if begin is None:
        return None  # no bytes of the file are there
    for start in starts:
        if start >= extent.start:
            return start - begin if start < extent.end else None
    return None
