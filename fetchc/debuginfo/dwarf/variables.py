"""Parameters, results and locals: which ones a function has, and where each of them is.

A function's entry with code is often apart from the one that was declared: the
concrete copy leaves out parameters it does not use, the abstract one has no places. Here
they are put together: names, types and order of the abstract, places of the concrete.
Reference: DWARF 5, sections 3.3.8 (instances), 3.4 (blocks), 4.1 (variables).
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number, read_sleb
from fetchc.debuginfo.dwarf.constants import (
    DW_AT_abstract_origin,
    DW_AT_artificial,
    DW_AT_const_value,
    DW_AT_decl_line,
    DW_AT_entry_pc,
    DW_AT_frame_base,
    DW_AT_go_closure_offset,
    DW_AT_import,
    DW_AT_location,
    DW_AT_low_pc,
    DW_AT_name,
    DW_AT_ranges,
    DW_AT_type,
    DW_AT_variable_parameter,
    DW_TAG_formal_parameter,
    DW_TAG_GNU_formal_parameter_pack,
    DW_TAG_imported_declaration,
    DW_TAG_inlined_subroutine,
    DW_TAG_lexical_block,
    DW_TAG_variable,
)
from fetchc.debuginfo.dwarf.languages import is_cpp, is_go
from fetchc.debuginfo.dwarf.qualified_names import declaration
from fetchc.debuginfo.dwarf.subprograms import merged, origins
from fetchc.debuginfo.dwarf.type_entries import VOID
from fetchc.debuginfo.elf.elf_file import DISCARDED
from fetchc.program.entities import (
    NO_LOCATION,
    Absent,
    AtAddress,
    FrameRelative,
    InRegister,
    ThreadLocal,
    Variable,
)
from fetchc.quantities import Address, ByteOffset, DieOffset, DwarfRegister, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die, LocationListRef
    from fetchc.debuginfo.dwarf.location_lists import Entry
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.program.entities import Place

    Pointee = Callable[[int], Place]
    Range = tuple[Address, Address]

__all__ = [
    "awaits_within",
    "called_at",
    "described",
    "description_of",
    "frame_base_at",
    "innermost_call",
    "locals_around",
    "locals_at",
    "parameters",
    "place_at",
    "result",
    "simple_place",
    "variable_of",
    "without_location",
]

PARAMETER, RESULT, LOCAL = "parameter", "result", "local"
PACK = "args"  # of a pack whose name is not described
DECLARING = frozenset({DW_TAG_variable, DW_TAG_imported_declaration})
_USING = frozenset({DW_TAG_imported_declaration})
INNER = frozenset({DW_TAG_lexical_block, DW_TAG_inlined_subroutine})


def parameters(info: DebugInfo, die: Die) -> tuple[Variable, ...]:
    """The function's parameters, then Go's results, as declared; ``die`` is its concrete entry."""
    go = is_go(declaration(info, die).unit)
    entries = merged(info, die, _formal)
    names = _parameter_names(info, entries)
    found = [
        variable_of(info, entry, name, _parameter_kind(entry, info, go), go)
        for entry, name in zip(entries, names, strict=True)
    ]
    if go:
        found = _without_copies(found)
        found.sort(key=lambda variable: variable.kind == RESULT)  # stable
    return tuple(found)


def result(info: DebugInfo, die: Die) -> TypeId | None:
    """Type of the function's result; None for void, and for Go, whose results are variables."""
    if is_go(declaration(info, die).unit):
        return None
    holder = info.inherited(die, DW_AT_type)
    target = None if holder is None else info.follow(holder, DW_AT_type)
    return None if target is None else TypeId(target.offset)


def is_undescribed(info: DebugInfo, die: Die) -> bool:
    """Whether the unit has the names of its functions and lines, and neither variables nor types.

    gcc records that it was asked for that; clang (-gline-tables-only) leaves out where a function
    is declared. Source: LLVM, lib/CodeGen/AsmPrinter/DwarfUnit.cpp (applySubprogramAttributes).
    """
    compiler = die.unit.compiler
    if compiler.is_gcc:
        return compiler.describes_lines_only
    stated = die.flag(DW_AT_artificial) or info.inherited(die, DW_AT_decl_line) is not None
    return compiler.is_llvm and not stated


def locals_at(info: DebugInfo, die: Die, address: Address) -> tuple[Variable, ...]:
    """Variables of the blocks and inlined calls around ``address``, innermost first.

    The function's own parameters are not among them.
    """
    go = is_go(declaration(info, die).unit)
    scopes = _scopes(info, die, address)
    found: list[Variable] = []
    for position, (depth, scope, code_unknown) in enumerate(scopes):
        if not go:
            within = scopes[position - 1][1] if position else None
            found.extend(_of_left_out_blocks(info, scope, within))
        found.extend(_of_scope(info, scope, go, depth == 0, code_unknown))
    return tuple(found)


def innermost_call(info: DebugInfo, die: Die, address: Address) -> Die | None:
    """The innermost inlined call of the function ``die`` whose code holds ``address``."""
    scopes = (scope for _, scope, _ in _scopes(info, die, address))
    return next((scope for scope in scopes if scope.tag == DW_TAG_inlined_subroutine), None)


def _scopes(info: DebugInfo, die: Die, address: Address) -> list[tuple[int, Die, bool]]:
    # The function and the blocks and calls around ``address`` with their depths, deepest first; of
    # two beside each other, in the order of the file. A block without code adds nothing to the
    # depth of what it is in: it hides no name of a block or call beside it that has code here.
    # Whether it is around the address is unknown, unless something in it is: the last of the three.
    scopes: list[tuple[int, int, Die]] = [(0, 0, die)]
    around = {die.offset}  # those that have code here, or something in them that has
    waiting: list[tuple[int, int, Die, Iterator[Die]]] = [(0, 0, die, iter(info.children(die)))]
    while waiting:
        depth, bare, _, children = waiting[-1]
        child = next(children, None)
        if child is None:
            waiting.pop()
        elif child.tag in INNER and _covers(info, child, address):
            depth, bare = (depth + 1, 0) if _has_code(child) else (depth, bare + 1)
            scopes.append((depth, bare, child))
            waiting.append((depth, bare, child, iter(info.children(child))))
            if not bare:
                around |= {scope.offset for _, _, scope, _ in waiting}
    scopes.sort(key=lambda entry: (-entry[0], -entry[1]))
    return [(depth + bare, scope, scope.offset not in around) for depth, bare, scope in scopes]


def _has_code(die: Die) -> bool:
    return die.has(DW_AT_low_pc) or die.has(DW_AT_ranges)


def locals_around(info: DebugInfo, function: Die, call: Die) -> tuple[Variable, ...]:
    """What the inlined ``call`` declares itself, then the blocks and calls around it, innermost
    first. Parameters of ``function``, the one with the code, are not among them.
    """
    go = is_go(declaration(info, function).unit)
    around = [die for die in info.ancestors(call) if die.offset >= function.offset]
    found: list[Variable] = []
    for scope in (call, *reversed(around)):
        found.extend(_of_scope(info, scope, go, scope.offset == function.offset))
    return tuple(found)


def called_at(info: DebugInfo, call: Die) -> Address | None:
    """Where the code of an inlined call is entered; None where it has no code.

    DW_AT_entry_pc is an address, from DWARF 5 on also a distance from the code's start; without
    it the first address is it. Source: DWARF 5, section 2.18.
    """
    ranges = info.ranges(call) if _has_code(call) else ()
    if not ranges:
        return None
    address = call.address(DW_AT_entry_pc)
    return (
        Address(ranges[0][0] + (call.constant(DW_AT_entry_pc) or 0)) if address is None else address
    )


def _of_scope(
    info: DebugInfo, scope: Die, go: bool, whole: bool, code_unknown: bool = False
) -> Iterator[Variable]:
    # What is captured is of the function itself (``whole``): an inlined closure has none.
    called = called_at(info, scope) if scope.tag == DW_TAG_inlined_subroutine else None
    entries = merged(info, scope, _plain_variable if whole else _any_variable)
    passed_names = _parameter_names(
        info, [entry for entry in entries if entry.tag == DW_TAG_formal_parameter]
    )
    for entry in entries:
        if entry.tag == DW_TAG_imported_declaration:
            imported = _imported(info, entry, whole, code_unknown)
            if imported is not None:
                yield imported
            continue
        is_parameter = entry.tag == DW_TAG_formal_parameter
        passed = called if is_parameter else None
        name = passed_names.pop(0) if is_parameter else _name(info, entry)
        yield variable_of(info, entry, name, LOCAL, go, go and whole, passed, code_unknown)


def _of_left_out_blocks(info: DebugInfo, scope: Die, within: Die | None) -> Iterator[Variable]:
    # What using-declarations name in blocks of the source that ``scope``, a copy, has not.
    # gcc's link-time optimization has no using-declarations when it writes the code, and leaves out
    # blocks that have nothing else: where their code is, is unknown. A block that declares a
    # variable is left out only without any code. Sources: gcc/lto-streamer-out.cc, gcc/tree-ssa-
    # live.cc (remove_unused_scope_block_p). ``within``: the block or call in ``scope`` that the
    # address is in: where the source has it in such a block, that is around the address, too.
    source = info.follow(scope, DW_AT_abstract_origin)
    if source is None or not _has_using_declarations(info, source):
        return
    copied = {origin for block in _blocks_below(info, scope) for origin in origins(info, block)}
    inner = set() if within is None else set(origins(info, within))
    waiting = [(source, False)]
    found: list[Variable] = []
    while waiting:
        block, certain = waiting.pop()
        if block is not source:
            names = [one for one in info.children(block) if one.tag == DW_TAG_imported_declaration]
            imported = [_imported(info, one, False, not certain) for one in names]
            found += [one for one in imported if one is not None]
        for child in info.children(block):
            if child.tag != DW_TAG_lexical_block or child.offset in copied:
                continue
            below = [child, *_blocks_below(info, child)]
            if not any(one.tag == DW_TAG_variable for one in info.children(child)):
                waiting.append((child, any(one.offset in inner for one in below)))
    yield from reversed(found)


def _has_using_declarations(info: DebugInfo, source: Die) -> bool:
    # In blocks; most units have none, which their abbreviations show.
    if not any(True for _ in source.unit.table.tagged(_USING)):
        return False
    blocks = _blocks_below(info, source)
    return any(child.tag in _USING for block in blocks for child in info.children(block))


def awaits_within(info: DebugInfo, die: Die) -> tuple[Range, ...]:
    """The code that awaits a future of Rust in the block that declares the variable ``die``.

    rustc calls what is awaited ``__awaitee``, in a block of its own.
    Source: rustc 1.95, compiler/rustc_ast_lowering/src/expr.rs (make_lowered_await).
    """
    blocks = list(info.ancestors(die)[-1:])
    awaits: list[Range] = []
    while blocks:
        block = blocks.pop()
        for child in info.children(block):
            if child.tag == DW_TAG_lexical_block:
                blocks.append(child)
            elif child.tag == DW_TAG_variable and _name(info, child) == "__awaitee":
                awaits += info.ranges(block)
    return tuple(awaits)


def _blocks_below(info: DebugInfo, die: Die) -> Iterator[Die]:
    waiting = [die]  # a loop: hostile files have blocks within each other without an end
    while waiting:
        inner = [child for child in info.children(waiting.pop()) if child.tag in INNER]
        yield from inner
        waiting += inner


def _formal(info: DebugInfo, die: Die) -> Iterator[Die]:
    # Parameters; those of a C++ pack stand within an entry for the pack.
    for child in info.children(die):
        if child.tag == DW_TAG_formal_parameter:
            yield child
        elif child.tag == DW_TAG_GNU_formal_parameter_pack:
            for inner in info.children(child):
                if inner.tag == DW_TAG_formal_parameter:
                    yield inner


def _parameter_names(info: DebugInfo, entries: list[Die]) -> list[str]:
    # The elements of a C++ pack are `args#0`, `args#1`, as gdb calls them. clang gives all of them
    # the name of the pack; gcc (seen in 12) puts them within an entry for it, without any name.
    names = [_name(info, entry) for entry in entries]
    if not entries or not is_cpp(declaration(info, entries[0]).unit):
        return names
    repeated = {name for name in names if name and names.count(name) > 1}
    if not repeated and all(names):
        return names
    numbers: dict[str, int] = {}
    for position, entry in enumerate(entries):
        name = names[position]
        if not name and (pack := _pack(info, entry)) is not None:
            name = pack.string(DW_AT_name) or PACK
        elif name not in repeated:
            continue
        number = numbers[name] = numbers.get(name, -1) + 1
        names[position] = f"{name}#{number}"
    return names


def _pack(info: DebugInfo, entry: Die) -> Die | None:
    around = info.ancestors(declaration(info, entry))
    last = around[-1] if around else None
    return last if last is not None and last.tag == DW_TAG_GNU_formal_parameter_pack else None


def _plain_variable(info: DebugInfo, die: Die) -> Iterator[Die]:
    return (child for child in info.children(die) if child.tag in DECLARING)


def _imported(
    info: DebugInfo, die: Die, whole: bool, code_unknown: bool = False
) -> Variable | None:
    # C++: `using ns::x;` in a block names a variable outside functions, and hides what the blocks
    # around it call so. Source: DWARF 5, section 3.2.3.
    target = info.follow(die, DW_AT_import)
    if target is None or target.tag != DW_TAG_variable:
        return None
    name = die.string(DW_AT_name) or _name(info, target)
    from fetchc.debuginfo.dwarf.variable_definitions import placed

    found = placed(info, target) or target
    return variable_of(info, found, name, "global", outermost=whole, code_unknown=code_unknown)


def _any_variable(info: DebugInfo, die: Die) -> Iterator[Die]:
    # The parameters of an inlined call are variables of the function around it.
    yield from _plain_variable(info, die)
    yield from _formal(info, die)


def variable_of(
    info: DebugInfo,
    die: Die,
    name: str,
    kind: str,
    go: bool = False,
    outermost: bool = False,
    called: Address | None = None,
    code_unknown: bool = False,
) -> Variable:
    """The variable of an entry, by the name that it is shown by.

    ``go``: whether the function is Go's. The last three are as the variable has them.
    """
    typed = info.inherited(die, DW_AT_type)
    target = None if typed is None else info.follow(typed, DW_AT_type)
    lined = info.inherited(die, DW_AT_decl_line)
    artificial = info.inherited(die, DW_AT_artificial)
    captured = info.inherited(die, DW_AT_go_closure_offset) if outermost else None
    return Variable(
        name,
        VOID if target is None else TypeId(target.offset),
        kind,
        die.offset,
        0 if lined is None else lined.unsigned(DW_AT_decl_line) or 0,
        (artificial is not None and artificial.flag(DW_AT_artificial)) or (go and name == ".dict"),
        None if captured is None else captured.unsigned(DW_AT_go_closure_offset),
        called,
        outermost,
        code_unknown=code_unknown,
    )


def _name(info: DebugInfo, die: Die) -> str:
    named = info.inherited(die, DW_AT_name)
    return "" if named is None else named.string(DW_AT_name) or ""


def _parameter_kind(die: Die, info: DebugInfo, go: bool) -> str:
    # DW_AT_variable_parameter means "passed by reference and written to"; Go marks results so.
    marked = info.inherited(die, DW_AT_variable_parameter) if go else None
    if marked is not None and marked.flag(DW_AT_variable_parameter):
        return RESULT
    return PARAMETER


def _without_copies(found: list[Variable]) -> list[Variable]:
    # Go 1.18 to 1.26 list some results twice (`~r0` with the same name and type).
    seen: set[tuple[str, TypeId]] = set()
    unique = []
    for variable in found:
        key = (variable.name, variable.type)
        if variable.kind == RESULT and variable.name not in ("", "_"):
            if key in seen:
                continue
            seen.add(key)
        unique.append(variable)
    return unique


def _covers(info: DebugInfo, die: Die, address: Address) -> bool:
    # A block without any code of its own only holds declarations: it is as wide as what it is in.
    if not _has_code(die):
        return die.tag == DW_TAG_lexical_block
    return any(start <= address < end for start, end in info.ranges(die))


# ------------------------------------------------------------------------------
# Location expressions of one operation: nearly all that compilers write.
#
# They are answered without the stack machine of :mod:`fetchc.debuginfo.dwarf.expressions`,
# whose import costs more than the rest of a location list. A test holds the two together. Source:
# DWARF 5, section 2.6.1.

# Source: DWARF 5, table 7.9.
_ADDR = 0x03
_REG0, _REG31 = 0x50, 0x6F
_FBREG = 0x91
_CALL_FRAME_CFA = 0x9C
_FAR = 1 << 30  # offsets from here on may wrap around


def simple_place(expression: bytes, unit: Unit, frame_base: Place | None) -> Place | None:
    """What the expression describes; None where that is not simple, which proves nothing."""
    if not expression:
        return NO_LOCATION
    code, size = expression[0], len(expression)
    if size == 1:
        if _REG0 <= code <= _REG31:
            return InRegister(DwarfRegister(code - _REG0))
        return FrameRelative(ByteOffset(0)) if code == _CALL_FRAME_CFA else None
    if code == _FBREG and isinstance(frame_base, FrameRelative) and expression[-1] < 0x80:
        try:
            number, end = read_sleb(expression, 1)
        except ValueError:
            return None
        offset = frame_base.offset + number
        return FrameRelative(ByteOffset(offset)) if end == size and abs(offset) < _FAR else None
    if code == _ADDR and size == 1 + unit.address_size:
        address = Address(decode_number(expression[1:], unit.little))
        if unit.info.elf.is_discarded(address):
            return Absent("no address", f"its address is {DISCARDED}")
        return AtAddress(address)
    return None


# ------------------------------------------------------------------------------
# Where a variable is at an address, as its location description says.
#
# Source: DWARF 5, sections 2.6 (location descriptions) and 3.3.5 (frame base).

MAX_IMPLICIT_POINTERS = 8
"""Longer chains are refused: a hostile file may have a circle of them."""


def place_at(
    info: DebugInfo, die: Die, function: Die | None, address: Address, depth: int = 0
) -> Place:
    """Where the variable ``die`` is at ``address``, relative to the CFA as DWARF says it.

    ``function`` is the concrete subprogram around it, for its frame base; None for a
    variable of the file. What an abstract origin says counts where ``die`` says nothing.
    ``depth`` counts the implicit pointers that led here.
    """
    located = info.inherited(die, DW_AT_location)
    if located is None:
        return without_location(info, die)
    expression = _expression_at(info, located, DW_AT_location, address)
    if expression is None:
        return Absent("no location", f"the debug information gives it no location at {address:#x}")
    base = None if function is None else frame_base_at(info, function, address)

    def pointee(offset: int) -> Place:
        if depth == MAX_IMPLICIT_POINTERS:
            return Absent(
                "computed", f"it is reached through {depth} pointers that are not in memory"
            )
        return place_at(info, info.die(DieOffset(offset)), function, address, depth + 1)

    place = described(info, located, expression, base, pointee)
    return _if_certain(info, die, place) if isinstance(place, ThreadLocal) else place


def _if_certain(info: DebugInfo, die: Die, place: ThreadLocal) -> Place:
    from fetchc.debuginfo.elf.thread_storage import certain
    from fetchc.debuginfo.kernel_variables import linked_symbol

    named = info.inherited(die, DW_AT_name)
    name = (None if named is None else named.string(DW_AT_name)) or ""
    first = place == info.thread_local(0)
    found = certain(info.elf, linked_symbol(info, die, name), place, first)
    if isinstance(found, str):
        return Absent("thread-local", f"it is in thread-local storage, {found}")
    return found


def frame_base_at(info: DebugInfo, function: Die, address: Address) -> Place | None:
    """What DW_AT_frame_base of a concrete subprogram describes; None without one there."""
    holder = info.inherited(function, DW_AT_frame_base)
    if holder is None:
        return None
    expression = _expression_at(info, holder, DW_AT_frame_base, address)
    return None if expression is None else described(info, holder, expression, None)


def _expression_at(
    info: DebugInfo, die: Die, attribute: int, address: Address
) -> bytes | Entry | None:
    description = description_of(die, attribute)
    if isinstance(description, bytes):
        return description
    from fetchc.debuginfo.dwarf.location_lists import entry_at

    return entry_at(info, die.unit, description, address)


def description_of(die: Die, attribute: int) -> bytes | LocationListRef:
    """An attribute's expression or list; FC0904 where it is neither."""
    description = die.location(attribute)
    if description is None:
        from fetchc.debuginfo.dwarf.variable_definitions import wrong_class

        raise wrong_class(die, attribute)
    return description


def without_location(info: DebugInfo, die: Die) -> Place:
    """The place of a variable that has no DW_AT_location: its constant value, or Absent."""
    valued = info.inherited(die, DW_AT_const_value)
    if valued is None:
        return NO_LOCATION
    from fetchc.debuginfo.dwarf.variable_definitions import constant_of

    return constant_of(valued) or NO_LOCATION


def described(
    info: DebugInfo,
    die: Die,
    expression: bytes | Entry,
    base: Place | None,
    pointee: Pointee | None = None,
) -> Place:
    """What an expression of ``die`` describes: one of an attribute itself, or of a list.

    ``base`` is the frame base, ``pointee`` where the variable at a DieOffset is.
    """
    content = expression if isinstance(expression, bytes) else expression.expression
    simple = simple_place(content, die.unit, base)
    if simple is not None:
        return simple
    from fetchc.debuginfo.dwarf.expressions import place

    if isinstance(expression, bytes):
        from fetchc.debuginfo.byte_reader import Cursor

        # Errors count from its start and name the entry.
        section = f".debug_info: expression of the entry at {die.offset:#x}"
        cursor = Cursor(die.unit.path, section, expression, little=die.unit.little)
    else:
        from fetchc.debuginfo.dwarf.location_lists import cursor_at

        cursor = cursor_at(info, die.unit, expression.offset)
        cursor.end = expression.offset + len(content)
    return place(cursor, die.unit, base, pointee)
