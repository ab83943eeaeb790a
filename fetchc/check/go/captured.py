"""Where in its closure a captured variable is, as far as the closure's code shows it.

From Go 1.23 on the debug information says at which offset of the object behind the closure's
register a variable is; before, only where it is once the code has loaded it. Whether the object
has the variable ``&x`` or its address, no version says. Both are told by the load behind which the
variable's place begins to hold.

A local variable can begin as a copy of a captured one. Go has the loads of captured ones in the
closure's first line, those for a local one where that is declared, or later. Two that overlap are
a captured variable and a copy of it: nothing tells which is which, and neither has a place then.

Source: Go 1.15 to 1.24, cmd/compile/internal/gc/closure.go (transformclosure) and ssagen/ssa.go
(buildssa): the object has a copy of up to 128 bytes of what is never assigned to again, else
the address. ``x`` is such a copy, ``&x`` one that is in memory, or the address.
"""

from __future__ import annotations

from fetchc.abi import convention_for, go_version
from fetchc.program.entities import Absent, InMemory, Pieces
from fetchc.program.types import PointerType
from fetchc.quantities import Address, ByteOffset
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.code.go_closure_code import Content, Fill
    from fetchc.program.entities import Function, Place, Variable
    from fetchc.quantities import TypeId
    from fetchc.target.machines import GoRules

__all__ = ["captured_place", "is_in_object"]

_OFFSETS_TOLD = (1, 23)
_BY_ADDRESS = 128  # bytes that a captured copy has at most
# f.func1, f.func1.2, f-range1, f.gowrap1, f.deferwrap2. Source: Go, ir/func.go (closureName).
_CLOSURE = r"(?:\.func\d+|-range\d+|\.gowrap\d+|\.deferwrap\d+)(?:[.-]\w+)*$"


class _Claim(Record):
    """The object's bytes that a variable is made of; with ``address`` it is their address."""

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
    version = go_version(function.producer)
    if version is not None and version >= _OFFSETS_TOLD and variable.captured is None:
        return None
    register = _rules(site, function).closure_register
    if register is None:
        return Absent("FC0401", "the convention has no register for what a closure captured")
    if variable.captured is not None and not variable.name.startswith("&"):
        return InMemory(register, ByteOffset(variable.captured))
    claim, rivals = _found(site, function, variable)
    if claim is None:
        return Absent("FC0401", _unknown(site, function, variable))
    if rivals:
        names = " and ".join(f"`{name}`" for name in rivals)
        return Absent(
            "FC0401", f"it begins with the same bytes as {names}, and the closure has one of them"
        )
    return InMemory(register, claim.offset)


def is_in_object(site: Site, variable: Variable) -> bool:
    """Whether what is captured as ``&x`` is in the closure's object itself, not its address."""
    function = site.function
    if not site.entry or function is None or captured_place(site, function, variable) is None:
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
            "closure's object, and nothing says which part: Go does so from 1.23 on"
        )
    return (
        "it is local, or captured: where in the closure, Go says from 1.23 on, and the code does "
        "not show it"
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
        known = None if code is None else code.lines_of(function)
        lines = {} if known is None else known[1]
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
        claim = _made_of(site, variable, load.content, found)
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


def _made_of(
    site: Site, variable: Variable, content: Content, found: tuple[Fill, ...]
) -> _Claim | None:
    from fetchc.abi.go_abi import Shapes
    from fetchc.check.site import Checker

    assert site.function is not None
    offset, address = content.offset, content.address
    type_id: TypeId = variable.type
    if variable.name.startswith("&"):
        made = Checker(site).resolved(type_id)
        if not isinstance(made, PointerType):
            return None
        type_id = made.target if address else type_id
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
