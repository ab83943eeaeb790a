"""Go's variables between the first instruction and the line that declares them.

A variable with one slot for the whole function has bytes of an earlier call there until its
declaration has run, and the debug information says nothing of that but the line. Where the
compiler follows values from instruction to instruction, its list of places says it.

Source: Go 1.15 to 1.27, cmd/compile/internal/dwarfgen/dwarf.go (createSimpleVars: one place,
without a range), ssagen/ssa.go (zeroResults: results are zeroed before the first statement).
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import combinations

from fetchc.abi import convention_for, entry_places
from fetchc.abi.go_abi import Shapes
from fetchc.abi.signature import UnclassifiedError
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.program.entities import (
    Absent,
    FrameRelative,
    Indirect,
    InMemory,
    InRegister,
    Piece,
    Pieces,
)
from fetchc.program.types import PointerType
from fetchc.quantities import Address, ByteOffset, ByteSize
from fetchc.record import Record
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Site
    from fetchc.code.go_closure_code import Content, Fill
    from fetchc.program.entities import Function, Place, Variable
    from fetchc.quantities import TypeId
    from fetchc.target.machines import GoRules

    Part = tuple[int, int]  # offset in the variable, bytes

__all__ = [
    "arrange_pieces",
    "captured_place",
    "has_slot_for_result",
    "is_in_closure_object",
    "place_before_store",
    "require_declared",
    "variable_in_scope",
]


def has_slot_for_result(site: Site, function: Function, variable: Variable) -> bool:
    """Whether a named result is a variable like others between the entry and the return."""
    if not site.language.convention_first or variable.name.startswith("~"):
        return False
    # Optimized code describes most not at all, and some of Go 1.16 in slots that it does not use.
    return function.compiler.optimized is False


def variable_in_scope(site: Site, function: Function, same_name: list[Variable]) -> Variable:
    """Which of the variables of one name, those first that hide later ones, the name means here.

    A block has its variables from its beginning on, the language only after their declarations.
    The cell of a parameter that escapes to the heap (``&x``) is allocated by the first line.
    """
    if not (site.entry or site.leaving):
        rows = _rows(site, function)
        here = _line_at(rows, site.address)
        for variable in same_name:
            if here is None or not _is_pending(site, rows, here, variable, same_name):
                return variable
    return same_name[0]


def _is_pending(
    site: Site,
    rows: list[tuple[Address, int]],
    here: int,
    variable: Variable,
    same_name: list[Variable],
) -> bool:
    assert site.function is not None
    if variable.kind != "local" or not variable.line or here > variable.line:
        return False
    passed = any(one.kind != "local" and one.line == variable.line for one in same_name)
    if not passed and not rows[0][1] < variable.line <= max(line for _, line in rows):
        return False  # an inlined call's own lines are elsewhere
    if variable.name.startswith("&"):
        return True  # where it is says nothing of what is in it
    place = site.program.place(variable, site.function, site.address)
    return isinstance(place, Absent) or _has_one_slot(site, variable)


def require_declared(site: Site, function: Function, variable: Variable, span: Span) -> None:
    """Raise CompileError FC0401 where the code of the variable's line has not run at the site."""
    if variable.captured is not None or not variable.line or not _has_one_slot(site, variable):
        return
    rows = _rows(site, function)
    here = _line_at(rows, site.address)
    if here is None:
        return
    first, last = rows[0][1], max(line for _, line in rows)
    if variable.kind == "result":
        first -= 1  # declared by the function's own line
    # An inlined call's own lines are elsewhere, and so are those of what a closure captured.
    if not first < variable.line <= last or variable.line < here:
        return
    behind = min((line for _, line in rows if line > variable.line), default=None)
    raise reject(
        "FC0401",
        f"`{variable.name.lstrip('&')}` cannot be fetched here: its declaration on line "
        f"{variable.line} has not run yet",
        span,
        f"no value on line {here}",
        help=None if behind is None else f"probe a later line: `--at :{behind}`",
        reason="no location",
    )


def _rows(site: Site, function: Function) -> list[tuple[Address, int]]:
    # Where each visit of a line begins, by address.
    code = site.program.code_map()
    line_rows = None if code is None else code.lines_of(function)
    lines = {} if line_rows is None else line_rows[1]
    return sorted((start, line) for line, starts in lines.items() for start in starts)


def _line_at(rows: list[tuple[Address, int]], address: Address) -> int | None:
    row = bisect_right([start for start, _ in rows], address) - 1
    return None if row < 0 else rows[row][1]


def _has_one_slot(site: Site, variable: Variable) -> bool:
    function = site.function
    assert function is not None
    extents = site.program.extents(variable, function)
    if len(extents) != 1 or not _is_slot(extents[0].place):
        return False
    end = function.address + (function.size or 0)
    return extents[0].start <= function.address and end <= extents[0].end


def _is_slot(place: Place) -> bool:
    return isinstance(place, FrameRelative) or (
        isinstance(place, Indirect) and _is_slot(place.pointer)
    )


# ------------------------------------------------------------------------------
# Which parts of a Go variable the pieces of its location are.
#
# The optimizing compiler takes strings, slices, interfaces and small structures apart and follows
# each part alone. A location has a piece for each part that the compiler still has, in order, and
# no word for the others (one that is a constant, say), nor for padding; up to Go 1.21 it can have
# a part twice. A variable with one part left has a bare location: it does not say which part, and
# in memory it looks like one of the whole variable. That one of its places is a
# register shows it.
#
# Source: Go 1.22, src/cmd/compile/internal/ssa/debug.go (writePendingEntry, varSlots).

_MOST_PARTS = 12  # four fields of slices: what is bigger is not taken apart
_UNKNOWN = Absent(
    "no location", "the debug information describes only a part of it, and does not say which"
)


def arrange_pieces(site: Site, function: Function, variable: Variable, place: Place) -> Place:
    """``place`` with each piece at its offset in the variable; Absent where nobody knows it."""
    if isinstance(place, Absent) or function.compiler.optimized is False:
        return place  # of what is not optimized each place is of the whole
    convention = convention_for(site.program, function)
    try:
        shape = Shapes(site.program, convention).shape(variable.type, 0)
    except UnclassifiedError:
        return place
    if shape.leaves is None or len(shape.leaves) < 2:
        return place
    parts = [(offset, size) for offset, size, _ in shape.leaves]
    extents = site.program.extents(variable, function)
    if not isinstance(place, Pieces):
        half = any(isinstance(extent.place, InRegister) for extent in extents)
        return _UNKNOWN if half else place
    described = next((one.place for one in extents if one.start <= site.address < one.end), None)
    home = _home(site, function, variable)
    offsets = None
    if home is not None and isinstance(described, Pieces):
        offsets = _by_address(described, parts, home)
    pieces = list(place.pieces)
    if offsets is None:
        pieces = pieces if len(pieces) <= len(parts) else _without_copies(pieces)
        offsets = _in_order(pieces, parts)
    if offsets is None:
        return _UNKNOWN
    by_offset = {
        offset: Piece(ByteOffset(offset), piece.size, piece.place)
        for offset, piece in zip(offsets, pieces, strict=True)
    }
    optimized_out = Absent(
        "no location", "the compiler gives this part no location (it was optimized out)"
    )
    return Pieces(
        tuple(
            by_offset.get(offset) or Piece(ByteOffset(offset), ByteSize(size), optimized_out)
            for offset, size in parts
        )
    )


def _home(site: Site, function: Function, variable: Variable) -> int | None:
    # Where the caller has put a parameter, from the frame's base; None of what is in registers,
    # and where parameters without a name may shift it.
    if variable.kind != "parameter":
        return None
    from fetchc.check.go_parameters import go_place

    parameters = site.program.parameters(function)
    places = entry_places(site.program, convention_for(site.program, function), function)
    for position, parameter in enumerate(parameters):
        if parameter.die == variable.die and isinstance(places[position], InMemory):
            try:
                place, _ = go_place(site, function, parameters, places, position, Span(0, 0))
            except CompileError:
                return None
            if isinstance(place, InMemory):
                return place.offset - site.architecture.entry_stack_bytes
    return None


def _by_address(described: Pieces, parts: list[Part], home: int) -> list[int] | None:
    # Parts that are still where the caller has put them say themselves which they are.
    offsets = [
        piece.place.offset - home
        for piece in described.pieces
        if isinstance(piece.place, FrameRelative) and piece.place.offset >= 0
    ]
    starts = [offset for offset, _ in parts]
    return (
        offsets if len(offsets) == len(described.pieces) and set(offsets) <= set(starts) else None
    )


def _without_copies(pieces: list[Piece]) -> list[Piece]:
    # Where all of them are somewhere, the same place twice in a row is the same part.
    if any(isinstance(piece.place, Absent) for piece in pieces):
        return pieces
    return [
        piece
        for before, piece in zip([None, *pieces], pieces, strict=False)
        if before is None or before.place != piece.place
    ]


def _in_order(pieces: list[Piece], parts: list[Part]) -> list[int] | None:
    # The one way to have the pieces be parts, by their sizes.
    sizes = [piece.size for piece in pieces]
    if len(sizes) == len(parts) or len(parts) > _MOST_PARTS:
        return [at for at, _ in parts] if sizes == [size for _, size in parts] else None
    ways = [
        [offset for offset, _ in chosen]
        for chosen in combinations(parts, len(sizes))
        if [size for _, size in chosen] == sizes
    ]
    return ways[0] if len(ways) == 1 else None


# ------------------------------------------------------------------------------
# Where in its closure a captured variable is, as far as the closure's code shows it.
#
# From Go 1.23 on the debug information says at which offset of the object behind the closure's
# register a variable is; before, only where it is once the code has loaded it. Whether the object
# has the variable ``&x`` or its address, no version says. The load shows both: after it, the
# variable's location is valid.
#
# A local variable can begin as a copy of a captured one. Go has the loads of captured ones in the
# closure's first line, those for a local one where that is declared, or later. Two that overlap
# are a captured variable and a copy of it: which is which is not known, and neither has a place
# then.
#
# Source: Go 1.15 to 1.24, cmd/compile/internal/gc/closure.go (transformclosure) and ssagen/ssa.go
# (buildssa): the object has a copy of up to 128 bytes of what is never assigned to again, else
# the address. ``x`` is such a copy, ``&x`` one that is in memory, or the address.

_OFFSETS_DESCRIBED = (1, 23)
_BY_ADDRESS = 128  # bytes that a captured copy has at most
# f.func1, f.func1.2, f-range1, f.gowrap1, f.deferwrap2. Source: Go, ir/func.go (closureName).
_CLOSURE = r"(?:\.func\d+|-range\d+|\.gowrap\d+|\.deferwrap\d+)(?:[.-]\w+)*$"


class _Claim(Record):
    """The object's bytes with the value of a variable; with ``address`` they are its address."""

    offset: ByteOffset
    size: int
    address: bool


def captured_place(site: Site, function: Function, variable: Variable) -> Place | None:
    """The place at the entry of what the closure ``function`` captured.

    None of a variable that cannot be a captured one. Raises CompileError FC0905 where there is no
    disassembler, and one is needed.
    """
    if not _is_closure(function) or not variable.outermost:
        return None
    version = function.compiler.go_version
    if version is not None and version >= _OFFSETS_DESCRIBED and variable.captured is None:
        return None
    register = _rules(site, function).closure_register
    if register is None:
        return Absent("no location", "the calling convention has no closure register")
    if variable.captured is not None and not variable.name.startswith("&"):
        return InMemory(register, ByteOffset(variable.captured))
    claim, rivals = _found(site, function, variable)
    if claim is None:
        return Absent("no location", _unknown(site, function, variable))
    if rivals:
        names = " and ".join(f"`{name}`" for name in rivals)
        return Absent(
            "no location",
            f"it starts with the same bytes as {names}, and the closure has one of them",
        )
    return InMemory(register, claim.offset)


def place_before_store(site: Site, function: Function, variable: Variable) -> Place | None:
    """The place of what the closure captured where its slot has not been stored yet.

    It is in the closure's object, while the register of that is unchanged. None where the code has
    stored it, and of what has no slot for the whole function: there the debug information is right.
    """
    if not _is_closure(function) or not variable.outermost or not _has_one_slot(site, variable):
        return None
    found = _fills(site, function)
    load = _load(site, function, variable, found)
    stored = None if load is None else _stored(site, variable, load, found)
    if stored is None or stored <= site.address:
        return None
    register = _rules(site, function).closure_register
    assert register is not None
    if any(one.room == InRegister(register) and one.behind <= site.address for one in found):
        behind = stored - function.address
        return Absent("no location", f"the closure's code stores it in its slot up to +{behind:#x}")
    return captured_place(site, function, variable)


def _stored(site: Site, variable: Variable, load: Fill, found: tuple[Fill, ...]) -> Address | None:
    # Where all words of the variable that ``load`` begins are in its slot.
    from fetchc.check.probe_site import SiteTypes

    first = load.content
    if first is None or not isinstance(load.room, InMemory):
        return None
    size = SiteTypes(site).size(variable.type) or 0
    words: dict[int, Address] = {0: load.behind}
    for fill in found:
        if isinstance(fill.room, InMemory) and fill.content and not first.address:
            at = fill.room.offset - load.room.offset
            if 0 <= at < size and fill.content == first.replaced(offset=first.offset + at):
                words.setdefault(at, fill.behind)
    return max(words.values())


def is_in_closure_object(site: Site, variable: Variable) -> bool:
    """Whether what is captured as ``&x`` is in the closure's object itself, not its address."""
    function = site.function
    if function is None or captured_place(site, function, variable) is None:
        return False
    if not site.entry and place_before_store(site, function, variable) is None:
        return False
    claim, rivals = _found(site, function, variable)
    return claim is not None and claim.address and not rivals


def _is_closure(function: Function) -> bool:
    import re

    return re.search(_CLOSURE, function.name) is not None


def _unknown(site: Site, function: Function, variable: Variable) -> str:
    if variable.captured is not None:
        return "the closure has it or its address, and the code does not show which"
    # Up to Go 1.22 the debug information has a word that is loaded as if it were all of it.
    load = _load(site, function, variable, _fills(site, function))
    if load is not None and load.content is not None and not load.content.address:
        return (
            f"the closure's code loads a part of it, from byte {load.content.offset} of the "
            "closure's object, and Go before 1.23 does not say which part"
        )
    return (
        "it is local, or captured: neither the code nor Go before 1.23 says where in the "
        "closure it is"
    )


def _found(
    site: Site, function: Function, variable: Variable
) -> tuple[_Claim | None, tuple[str, ...]]:
    # Its bytes, and the names of others that have some of the same.
    shown = _shown(site, function)
    mine = next(((load, its) for other, load, its in shown if other.die == variable.die), None)
    if mine is None:
        return None, ()
    load, claim = mine
    rivals = [
        (other, its)
        for other, its, theirs in shown
        if other.die != variable.die
        and theirs.offset < claim.offset + claim.size
        and claim.offset < theirs.offset + theirs.size
        # What has the address of a captured variable is it; a pointer can be a copy of that.
        and (other.name.startswith("&") or not variable.name.startswith("&"))
    ]
    first = _loaded_first(site, function, [(variable, load), *rivals])
    if variable.name not in first:
        return None, ()
    return claim, tuple(other.name for other, _ in rivals if other.name in first)


def _loaded_first(
    site: Site, function: Function, loads: list[tuple[Variable, Fill]]
) -> frozenset[str]:
    # By the line of the load: a variable's line is its declaration, a captured one's its first
    # use. A local variable in memory (`&x`) is never loaded from the object.
    sure = {
        each.name for each, _ in loads if each.name.startswith("&") or each.captured is not None
    }
    if len(sure) < len(loads):
        code = site.program.code_map()
        line_rows = None if code is None else code.lines_of(function)
        lines = {} if line_rows is None else line_rows[1]
        rows = sorted((start, line) for line, starts in lines.items() for start in starts)
        for variable, load in loads:
            at = next((line for start, line in reversed(rows) if start < load.behind), None)
            if at is not None and (at == rows[0][1] or at < variable.line):
                sure.add(variable.name)
    return frozenset(sure)


def _shown(site: Site, function: Function) -> list[tuple[Variable, Fill, _Claim]]:
    found, claims = _fills(site, function), []
    for variable in site.program.variables(function, function.address):
        load = _load(site, function, variable, found) if variable.outermost else None
        if load is None or load.content is None:
            continue
        claim = _claim(site, variable, load.content, found)
        if claim is not None and variable.captured in (None, claim.offset):
            claims.append((variable, load, claim))
    return claims


def _fills(site: Site, function: Function) -> tuple[Fill, ...]:
    from fetchc.code.go_closure_code import fills

    rules = _rules(site, function)
    assert rules.closure_register is not None
    start = _behind_check(site, function, rules)
    code = site.program.code(start, function.address + (function.size or 0) - start)
    return fills(code, start, site.architecture, rules.closure_register)


def _load(
    site: Site, function: Function, variable: Variable, found: tuple[Fill, ...]
) -> Fill | None:
    # What fills the variable's place from the object.
    filled = set()
    for fill in found:
        content = fill.content
        if content is not None and _beginning(site, function, variable, fill.behind) == fill.room:
            before = _beginning(site, function, variable, Address(fill.behind - 1))
            # Up to Go 1.16 a place can hold from the entry on, and a slot holds all over.
            if before != fill.room or fill.room not in filled:
                return fill
        filled.add(fill.room)
    return None


def _beginning(
    site: Site, function: Function, variable: Variable, address: Address
) -> Place | None:
    # Of several pieces the first: up to Go 1.21 it can be there twice, and shifts the others.
    place = site.program.place(variable, function, address)
    if isinstance(place, Pieces):
        return place.pieces[0].place if place.pieces and place.pieces[0].offset == 0 else None
    return place


def _claim(
    site: Site, variable: Variable, content: Content, found: tuple[Fill, ...]
) -> _Claim | None:
    from fetchc.abi.go_abi import Shapes
    from fetchc.check.probe_site import SiteTypes

    assert site.function is not None
    offset, address = content.offset, content.address
    type_id: TypeId = variable.type
    if variable.name.startswith("&"):
        resolved = SiteTypes(site).resolved(type_id)
        if not isinstance(resolved, PointerType):
            return None
        type_id = resolved.target if address else type_id
    elif address:
        return None  # a pointer to something captured
    shape = Shapes(site.program, convention_for(site.program, site.function)).shape(type_id, 0)
    if not address:
        loaded = {
            fill.content.offset for fill in found if fill.content and not fill.content.address
        }
        if shape.leaves is None or not all(offset + leaf[0] in loaded for leaf in shape.leaves):
            return None
    elif shape.size > _BY_ADDRESS:
        return None
    return _Claim(offset, shape.size, address)


def _behind_check(site: Site, function: Function, rules: GoRules) -> Address:
    from fetchc.code.go_stack_check import after_stack_check

    if rules.stack_check is None:
        return function.address
    code = site.program.code(function.address, min(function.size or 128, 128))
    return Address(function.address + after_stack_check(code, rules.stack_check))


def _rules(site: Site, function: Function) -> GoRules:
    from fetchc.target.machines import GoRules

    rules = convention_for(site.program, function).rules
    assert isinstance(rules, GoRules)
    return rules
