"""Where a Go parameter is at the entry: the convention, once its whole signature is known.

Go never changes how a function is called, so the convention is right for every parameter
that the debug information lists in full. Up to Go 1.21 it leaves out parameters without
a name, and each one shifts those after it; from 1.22 on they are there (``~p0``).

What the debug information says of places is weaker: up to 1.16 a value that is used in
part is described at the address of that part, 1.17 names spill slots that are not
written, later versions name the place that the first block moves a parameter to. So what
proves that none is missing is, in this order: the name of a result without a name (up to 1.16),
the run-time's table of arguments (1.17 on, up to ten numbers), its size of all arguments, a
parameter that is in all its registers.
"""

from __future__ import annotations

from fetchc.abi import convention_for
from fetchc.check.locations import (
    described_entry_place,
    is_consistent,
    one_source_warning,
    refuse_contradiction,
)
from fetchc.diag.diagnostic import CompileError, Diagnostic, Label, reject
from fetchc.lang import language
from fetchc.program.entities import Absent, FrameRelative, InMemory, InRegister, Pieces
from fetchc.program.go_symbol_names import package_of
from fetchc.program.types import ArrayType, BoolType, FloatType, IntType, PointerType
from fetchc.quantities import Address
from fetchc.target.machines import GoRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.abi.go_arginfo import CallLayout
    from fetchc.check.probe_site import Site
    from fetchc.program.entities import Function, Place, Variable
    from fetchc.program.protocol import Program
    from fetchc.quantities import DwarfRegister
    from fetchc.source import Span
    from fetchc.target.machines import Convention

__all__ = [
    "NOT_IN_ORDER",
    "count_from_result_name",
    "go_place",
    "is_assembly",
    "is_out_of_order",
    "lists_every_parameter",
    "loses_registers_in_growth",
    "lost_register_marker",
    "require_certain_convention",
    "stack_growth_warning",
]

# ------------------------------------------------------------------------------
# Whether the debug information of a Go function lists all of its parameters.
#
# Up to Go 1.21 it leaves out those without a name. Three things tell: up to 1.16 the number in
# the name of a result that has none, from 1.17 on the run-time's table of arguments, and in all
# versions the number of bytes that a call takes.

_COUNTS_RESULTS = (1, 16)  # and before


def lists_every_parameter(site: Site, function: Function) -> bool:
    """Whether something proves that no parameter is missing, so that results are not shifted."""
    from fetchc.abi.go_arginfo import call_layout, describes_every_parameter

    variables = site.program.parameters(function)
    counted = count_from_result_name(site.program, function, variables)
    if counted is not None:
        return counted
    convention = convention_for(site.program, function)
    if describes_every_parameter(site.program, convention, function):
        return True
    layout = call_layout(site.program, convention, function)
    total = _argument_bytes(site.program, function)
    return layout is not None and layout.unused == 0 and layout.total == total


def _argument_bytes(program: Program, function: Function) -> int | None:
    return None if program.go is None else program.go.argument_bytes(function)


def count_from_result_name(
    program: Program, function: Function, variables: tuple[Variable, ...]
) -> bool | None:
    """What the first result without a name says: up to Go 1.16 it is named by the parameters.

    It is ``~r3`` (``~b3`` for a blank one) after three parameters, the receiver not counted.
    None where it says nothing. Source: Go 1.15, cmd/compile/internal/gc/dcl.go (funcargs).
    """
    from fetchc.abi.signature import missing_receiver

    version = function.compiler.go_version
    unnamed = [one.name for one in variables if one.kind == "result" and one.name[:1] == "~"]
    receivers = _receivers(function)
    if version is None or version > _COUNTS_RESULTS or not unnamed or receivers is None:
        return None
    number = unnamed[0][2:]
    if unnamed[0][1:2] not in ("r", "b") or not number.isdecimal():
        return None
    listed = sum(one.kind != "result" for one in variables)
    if receivers and missing_receiver(program, function, variables) is not None:
        receivers = 0
    return int(number) == listed - receivers


def _receivers(function: Function) -> int | None:
    """1 of methods, 0 of functions, None where the name does not tell them apart.

    A closure ``f.func1`` looks as a method ``func1`` of a type ``f`` does.
    """
    declared = function.symbol[len(package_of(function.symbol)) + 1 :]
    parts = declared.split(".")
    if len(parts) == 1:
        return 0
    method = parts[-1]
    if len(parts) != 2 or not parts[0] or "-" in method or method.startswith("func"):
        return None
    return 1


# ------------------------------------------------------------------------------
# Whether Go lists parameters and results in the order of the source, which decides their places.
#
# Up to 1.16 they are sorted by their place on the stack. On machines with a link register the
# compiler counts the slot of the return address for those alone that are in memory as a whole (an
# array of two elements, a large structure), so these may be listed after their neighbours.
# Source: Go 1.15, cmd/compile/internal/gc/pgen.go (createDwarfVars), cmd/internal/dwarf/dwarf.go
# (varsByScopeAndOffset); 1.17 sorts by declaration (dwarfgen.sortDeclsAndVars). Read on arm64.

NOT_IN_ORDER = (
    "Go up to 1.16 does not list the parameters of this function in their order, which decides "
    "where each of them is"
)
_BY_DECLARATION = (1, 17)


def is_out_of_order(
    site: Site, function: Function, variables: tuple[Variable, ...], places: tuple[Place, ...]
) -> bool:
    """Whether the debug information lists one of the ``variables`` below its place in that order.

    A parameter that the list leaves out shifts those after it up, never down; and what is listed
    too late is the only possible reason of a place too low.
    """
    version = function.compiler.go_version
    if version is None or version >= _BY_DECLARATION or site.architecture.entry_stack_bytes:
        return False
    for variable, place in zip(variables, places, strict=True):
        listed = _listed_offset(site, function, variable)
        if listed is not None and isinstance(place, InMemory) and listed < place.offset:
            return True
    return False


def _listed_offset(site: Site, function: Function, variable: Variable) -> int | None:
    # From the stack pointer at the entry, which is the CFA: the call pushes nothing.
    if variable.kind != "result":
        found = described_entry_place(site, function, variable)
        return found.offset if isinstance(found, InMemory) else None
    slots = [
        extent.place.offset
        for extent in site.program.extents(variable, function)
        if isinstance(extent.place, FrameRelative) and extent.place.offset >= 0
    ]
    return min(slots, default=None)


_NOTHING = Pieces(())  # of no bytes
_LISTS_UNNAMED = (1, 22)
_UNNAMED_IS_MISSING = "a parameter without a name is missing from the debug information"
_FIRST_CODE = 256  # bytes of a function that are looked at for the registers that it writes


def go_place(
    site: Site,
    function: Function,
    parameters: tuple[Variable, ...],
    places: tuple[Place, ...],
    position: int,
    span: Span,
) -> tuple[Place, Diagnostic | None]:
    """The place of ``parameters[position]`` and a warning where sources disagree, or calls lose it.

    ``places`` are those of the convention. Raises CompileError FC0407 where a parameter without a
    name may be missing before it, or the order of the parameters is not the source's.
    """
    place, warning = _Signature(site, function, parameters, places).place(position, span)
    in_registers = isinstance(place, InRegister | Pieces) and place != _NOTHING
    if in_registers and loses_registers_in_growth(site, function):
        warning = stack_growth_warning(site, function, parameters[position].name, span)
    return place, warning


class _Signature:
    """The listed parameters of a function, where the convention and the description have each."""

    def __init__(
        self,
        site: Site,
        function: Function,
        parameters: tuple[Variable, ...],
        places: tuple[Place, ...],
    ) -> None:
        self._site = site
        self._function = function
        self._parameters = parameters
        self._places = places
        self._convention = convention_for(site.program, function)

    def place(self, position: int, span: Span) -> tuple[Place, Diagnostic | None]:
        """Where a parameter is, and a warning where one source alone says so; FC0407 if unsure."""
        by_convention, variable = self._places[position], self._parameters[position]
        if isinstance(by_convention, Absent):
            return by_convention, None
        found = self._described(position)
        version = self._function.compiler.go_version
        if version is None or version >= _LISTS_UNNAMED:
            if not isinstance(found, InRegister | Pieces) or is_consistent(found, by_convention):
                return by_convention, None
            note = "the debug information names a place that the function moves it to at once"
            return by_convention, one_source_warning(variable, note, span)
        if is_out_of_order(self._site, self._function, self._parameters, self._places):
            if isinstance(found, InMemory) and self._has_one_address(position):
                return found, None
            raise self._refused(position, found, span, NOT_IN_ORDER)
        proved = self._in_every_candidate(position)
        if proved is not None:
            return proved, None
        if self._is_listed_in_full(position):
            return by_convention, None
        shown: Place | None = None
        if self._convention.integer_registers:
            if found == by_convention and self._is_no_spill_slot(position):
                return by_convention, None
            shown = self._in_untouched_register(position)
        elif (
            isinstance(by_convention, InMemory)
            and isinstance(found, InMemory)
            and self._has_one_address(position)
        ):
            if found == by_convention:
                return by_convention, None
            shown = found if self._is_in_sequence(position, found) else None
        if shown is not None:
            agrees = is_consistent(shown, by_convention)
            warning = None if agrees else one_source_warning(variable, _UNNAMED_IS_MISSING, span)
            return shown, warning
        why = (
            f"Go {version[0]}.{version[1]} leaves parameters without a name out of the debug "
            f"information, and each one shifts those after it"
        )
        raise self._refused(position, found, span, why)

    def _described(self, position: int) -> Place | None:
        return described_entry_place(self._site, self._function, self._parameters[position])

    def _refused(self, position: int, found: Place | None, span: Span, why: str) -> CompileError:
        variable, place = self._parameters[position], self._places[position]
        return refuse_contradiction(self._site, self._function, variable, place, found, span, why)

    def _has_one_address(self, position: int) -> bool:
        # Its address is the address of all of it: a number, or an array, which the compiler keeps
        # together from two elements on. Source: Go 1.15, cmd/compile/internal/gc/ssa.go
        # (canSSAType).
        from fetchc.check.probe_site import SiteTypes

        types = SiteTypes(self._site)
        resolved = types.resolved(self._parameters[position].type)
        if isinstance(resolved, ArrayType):
            if resolved.count != 1:
                return bool(resolved.count)
            resolved = types.resolved(resolved.element)
        return isinstance(resolved, IntType | BoolType | FloatType | PointerType)

    # --- proofs that nothing which shifts a parameter is missing from the list ---

    def _in_every_candidate(self, position: int) -> Place | None:
        # Its place in each signature that Go's tables allow, where all have the same. The debug
        # information excludes those that put another open parameter elsewhere than it says.
        from fetchc.abi.go_arginfo import candidate_places

        if not self._convention.integer_registers:
            return None
        ways = candidate_places(self._site.program, self._convention, self._function)
        if ways is None:
            return None
        undecided = [
            at for at, places in enumerate(zip(*ways, strict=True)) if len(set(places)) > 1
        ]
        if position in undecided:
            for at in undecided:
                found = self._described(at)
                if isinstance(found, InMemory) and not self._has_one_address(at):
                    found = None
                ways = tuple([way for way in ways if _agrees(found, way[at])])
        left = {way[position] for way in ways}
        return left.pop() if len(left) == 1 else None

    def _is_listed_in_full(self, position: int) -> bool:
        from fetchc.abi.go_arginfo import (
            call_layout,
            described_at_its_position,
            described_one_by_one,
        )

        program, function, convention = self._site.program, self._function, self._convention
        if count_from_result_name(program, function, self._parameters):
            return True
        at_its_position = described_at_its_position(program, convention, function, position)
        if at_its_position is not None:
            return at_its_position
        registers = bool(convention.integer_registers)
        layout = call_layout(program, convention, function)
        if layout is not None and layout.total == _argument_bytes(program, function):
            unused = layout.unused
            if unused == 0:
                return True
            if registers and described_one_by_one(program, convention, function, position, unused):
                return True
            place = self._places[position]
            if isinstance(place, InMemory):
                if not registers:
                    return _is_tight(layout, place.offset, position, convention.word_bytes)
                # What is missing may be in the unused bytes, and take registers: too few to drive
                # a listed parameter out of them. On the stack it would take whole words.
                few = unused <= layout.integers_left and unused // 4 <= layout.floats_left
                if few and layout.alignments[position] == convention.word_bytes:
                    return True
        return registers and self._is_shown_by_registers(position)

    def _is_shown_by_registers(self, position: int) -> bool:
        # Wholly where the convention puts it, by the debug information: it, or one after it with
        # only single registers for whole numbers between: a missing one would have shifted
        # all. A float says nothing of those: they have registers of their own.
        # Assignments (`b = int(a)`) leave several in the register of one.
        whole_numbers = self._convention.integer_registers
        named: list[DwarfRegister] = []
        for at, parameter in enumerate(self._parameters):
            found = self._described(at)
            if parameter.kind != "result" and found is None and self._has_one_address(at):
                return False
            named += _registers(found)
        if not _in_order(self._convention, named):
            return False
        for at in range(position, len(self._parameters)):
            place = self._places[at]
            if not isinstance(place, InRegister | Pieces):
                return False
            inside = [one.place for one in place.pieces] if isinstance(place, Pieces) else [place]
            counts = at == position or any(
                isinstance(one, InRegister) and one.register in whole_numbers for one in inside
            )
            if counts and _agrees(self._described(at), place):
                return True
            if not isinstance(place, InRegister) or place.register not in whole_numbers:
                return False
        return False

    # --- where the list may be incomplete, and the description shows the place itself ---

    def _in_untouched_register(self, position: int) -> Place | None:
        # The register of a number by the debug information, where that names the registers of all
        # parameters that can be in some, in order, and the first block of code writes none of
        # them while their locations hold. A parameter that is moved at once is described in a
        # register that is written. After an assignment (`a = b`) both are described in the
        # register of one, which is then there twice or out of order.
        from fetchc.abi.go_arginfo import candidate_places
        from fetchc.code.disassembly import first_writes
        from fetchc.code.go_stack_check import after_stack_check

        site, convention = self._site, self._convention
        described = self._described_registers()
        if described is None:
            return None
        named = [one for _, registers in described for one in registers]
        place = self._described(position)
        passing = {*convention.integer_registers, *convention.float_registers}
        if not _in_order(convention, named) or not passing.issuperset(named):
            return None
        if not isinstance(place, InRegister):
            return None
        rules = convention.rules
        assert isinstance(rules, GoRules)
        start = self._function.address
        code = site.program.code(start, _FIRST_CODE)
        behind = 0 if rules.stack_check is None else after_stack_check(code, rules.stack_check)
        try:
            begin = Address(start + behind)
            writes = list(first_writes(code[behind:], begin, site.program.architecture))
        except CompileError:
            return None
        for end, registers in described:
            names = {site.architecture.shown(one).removeprefix("%") for one in registers}
            # The last instruction that the place is of may be the one that overwrites it.
            if any(address < end and names & changed for address, changed in writes):
                return None
        ways = candidate_places(site.program, convention, self._function)
        possible = ways is None or any(way[position] in (place, None) for way in ways)
        return place if possible else None

    def _described_registers(self) -> list[tuple[Address, list[DwarfRegister]]] | None:
        # Of each parameter that fits into registers: those that the debug information names at
        # the entry, and where that location ends. None where one has others than its kind needs.
        from fetchc.abi.go_abi import Shapes
        from fetchc.abi.signature import UnclassifiedError

        convention = self._convention
        shapes = Shapes(self._site.program, convention)
        sequences = convention.integer_registers, convention.float_registers
        described: list[tuple[Address, list[DwarfRegister]]] = []
        for at, parameter in enumerate(self._parameters):
            try:
                leaves = shapes.shape(parameter.type, 0).leaves
            except UnclassifiedError:
                return None
            floats = [leaf[2] for leaf in leaves or ()]
            never = any(floats.count(bool(n)) > len(all_) for n, all_ in enumerate(sequences))
            if parameter.kind == "result" or not floats or never:
                continue
            registers = _registers(self._described(at))
            if [one in convention.float_registers for one in registers] != floats:
                return None
            described.append((self._end_of_location(at), registers))
        return described

    def _is_no_spill_slot(self, position: int) -> bool:
        # Its place is on the stack, and no room for spilling a register: that room is after all
        # that is passed on the stack, and in the order of the parameters, so no nearer than the
        # bytes of those before it. Source: Go 1.21, src/cmd/compile/internal/abi/abiutils.go
        # (ABIAnalyzeTypes).
        from fetchc.abi.go_arginfo import call_layout

        place, site = self._places[position], self._site
        layout = call_layout(site.program, self._convention, self._function)
        if layout is None or not isinstance(place, InMemory):
            return False
        start = place.offset - site.architecture.entry_stack_bytes
        return start < sum(layout.sizes[:position])

    def _end_of_location(self, position: int) -> Address:
        # How far the location of the entry is valid.
        end, found = self._function.address, self._described(position)
        extents = self._site.program.extents(self._parameters[position], self._function)
        for one in sorted(extents, key=lambda one: one.start):
            if one.start <= end < one.end and one.place == found:
                end = one.end
        return end

    def _is_in_sequence(self, position: int, found: InMemory) -> bool:
        # Whether those before it are below it and those after it above, as far as they are
        # described: one that the function assigns to another at once (`a = b`) has the location
        # of that one.
        for at, parameter in enumerate(self._parameters):
            if at == position or parameter.kind == "result":
                continue
            other = self._described(at)
            if not isinstance(other, InMemory):
                continue
            if other.offset == found.offset or (other.offset < found.offset) != (at < position):
                return False
        return True


def _in_order(convention: Convention, registers: list[DwarfRegister]) -> bool:
    # Whether each comes after those before it, of its kind: none is there twice.
    for sequence in (convention.integer_registers, convention.float_registers):
        indices = [sequence.index(one) for one in registers if one in sequence]
        if indices != sorted(set(indices)):
            return False
    return True


def _registers(place: Place | None) -> list[DwarfRegister]:
    # Those that a value is in, in order, each once: up to Go 1.21 some pieces are there twice.
    pieces = [one.place for one in place.pieces] if isinstance(place, Pieces) else [place]
    return list(dict.fromkeys([one.register for one in pieces if isinstance(one, InRegister)]))


def _agrees(found: Place | None, place: Place | None) -> bool:
    return (
        found is not None
        and place is not None
        and is_consistent(found, place)
        and is_consistent(place, found)
    )


def _is_tight(layout: CallLayout, start: int, position: int, word: int) -> bool:
    # Bytes that belong to nothing, from here to the next value that begins a word: were they
    # enough to shift this one, something missing before it would leave the size as it is.
    unused, end = 0, start + layout.sizes[position]
    for index in range(position + 1, len(layout.sizes)):
        alignment = layout.alignments[index]
        if not layout.sizes[index] and -end % alignment:
            return False  # those of no bytes are not always listed in the source's order
        unused += -end % alignment
        if alignment == word:
            return unused < layout.alignments[position]
        end += -end % alignment + layout.sizes[index]
    return unused + -end % word < layout.alignments[position]


# ------------------------------------------------------------------------------
# Go functions without a description: what is known of their calling convention.

# A program's own table of functions names the tool; see fetchc.debuginfo.go.stripped_program.


def require_certain_convention(site: Site, function: Function, span: Span) -> None:
    """Raise CompileError FC0903 where the function's convention is not certain.

    Assembly, and the linker's wrappers around it, follow the stack convention or the other one, and
    only symbols say which: not those of functions that are local to their file.
    """
    if not language(function.language).goroutines:
        return
    if function.die is not None and function.external:
        return
    convention = convention_for(site.program, function)
    if not isinstance(convention.rules, GoRules) or not convention.integer_registers:
        return  # one convention for all
    why = ""
    if function.die is not None:
        if is_assembly(site, function):
            why = "it is written in assembly, for its own file"
    elif function.compiler.name == "go-asm":
        why = "it is written in assembly"
    else:
        twins = site.program.functions_named(function.symbol)
        compiled = [
            one for one in twins if one.symbol == function.symbol and one.compiler.name != "go-asm"
        ]
        if len(compiled) > 1:
            why = "another function of that name takes its calls from assembly, or this one does"
    if why:
        raise reject(
            "FC0903",
            f"the calling convention of `{function.name}` is not known: {why}",
            span,
            "unknown location",
            notes=("if other files called the function, its symbol would show the convention",),
            help="use registers and the stack, if you know the convention: `%ax`, `$stack1`",
        )


def is_assembly(site: Site, function: Function) -> bool:
    """Whether a function was written in assembly: nothing lists its parameters."""
    # The debug information has no units of assembly's own.
    if site.program.parameters(function):
        return False
    lines = site.program.code_map()
    found = None if lines is None else lines.lines_of(function)
    return found is not None and found[0].endswith(".s")


# ------------------------------------------------------------------------------
# What a Go call loses when it has to let its stack grow first.
#
# The code that lets the stack grow, or passes the goroutine's turn on, enters the function again.
# It keeps all registers with arguments, or none where the function uses no argument at all. The
# debug information has such parameters in their registers as if nothing happened.
#
# There is no better place to probe: the code before the check runs twice in such a call, and the
# code after it finds the registers overwritten.


def loses_registers_in_growth(site: Site, function: Function) -> bool:
    """Whether a call that has to let its stack grow first loses its parameters in registers."""
    return lost_register_marker(site, function) is not None


def lost_register_marker(site: Site, function: Function) -> tuple[DwarfRegister, Address] | None:
    """What a call has that lost its parameters in registers: in a register an address of its own.

    None of a function that keeps them, or never lets its stack grow.
    """
    from fetchc.code.go_stack_check import behind_bare_call, growth_start

    rules = convention_for(site.program, function).rules
    check = rules.stack_check if isinstance(rules, GoRules) else None
    if check is None or check.growth is None:
        return None
    start = growth_start(site.program.code(function.address, 128), check)
    address = Address(function.address + start)
    behind = behind_bare_call(site.program.code(address, 32), check.growth) if start else 0
    return (check.growth.resumed, Address(address + behind)) if behind else None


def stack_growth_warning(site: Site, function: Function, name: str, span: Span) -> Diagnostic:
    """The warning that ``name``, in registers at the entry, is not there in some calls."""
    note = f"`{function.name}` uses none of its parameters in registers, and Go does not save them"
    if site.address == function.address:
        advice = "such a call hits again, with the same `$goid`: the first of the hits has it"
    else:
        advice = "`--at +0` counts such a call twice, the first time with its parameters"
    return Diagnostic(
        "FC0623",
        f"`{name}` is lost in calls that must first grow the stack or let the scheduler run",
        Label(span, "not in every call"),
        notes=(note, "`trace` detects such a call, and shows `(fault)`"),
        help=advice,
        reason="lost by stack growth",
    )
