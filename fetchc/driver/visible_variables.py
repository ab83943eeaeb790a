"""Every name visible at a probe site, with its place and its fetch-arg or the reason why not.

Of the parameters also their places as data: which bytes of each are in which register, or at the
end of which loads.
"""

from __future__ import annotations

from fetchc.check import scope
from fetchc.check.checker import Checker
from fetchc.check.locations import describe_place
from fetchc.check.variable_places import variable_place
from fetchc.diag.diagnostic import CompileError
from fetchc.driver.compile import compile_argument
from fetchc.lower.fetches import load_word, located
from fetchc.program.entities import ABSENCES, Absent, Piece, Pieces, Place
from fetchc.program.types import PointerType
from fetchc.quantities import ByteOffset, ByteSize
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import ProbePoint, Site
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.ir.fetch import Value
    from fetchc.program.entities import Absence, Variable
    from fetchc.program.protocol import Program
    from fetchc.quantities import TypeId
    from fetchc.target.kernel_versions import Kernel

__all__ = ["ParameterPlace", "PlacePiece", "VisibleVariable", "parameter_places", "visible"]


class VisibleVariable(Record):
    """One variable as a listing shows it.

    ``place`` is where it is, ``where`` the same in words. ``fetchargs`` are the fetch-args of
    the whole value with their suffixes, empty where ``reason`` says why there are none: it may
    have a place all the same.
    """

    name: str
    kind: str
    type: str
    line: int
    place: Place
    where: str
    fetchargs: tuple[tuple[str, str], ...]
    reason: str | None

    def __repr__(self) -> str:
        return f"<fetchc.Variable {self.name}: {self.type}, {self.where}>"


def visible(
    program: Program, found: ProbePoint, kernel: Kernel, kinds: tuple[str, ...] = ()
) -> tuple[VisibleVariable, ...]:
    """Locals and parameters visible at the site, those first that hide later ones.

    At a static probe its arguments come before them. ``kinds``: those kinds alone.
    """
    function = found.site.function
    handed_over = found.site.static is not None and "argument" in (kinds or ("argument",))
    shown = _handed_over(found, kernel) if handed_over else []
    if function is None or function.die is None:
        if shown:
            return tuple(shown)
        raise _no_names(program, found)
    seen: set[str] = set()
    results = 0
    for variable in scope.visible(found.site, function):
        if not variable.name or variable.name in seen or _is_of_compiler(found.site, variable):
            continue  # an inner declaration hides it, and n@LINE picks the outer one
        seen.add(variable.name)
        if not kinds or variable.kind in kinds:
            shown.append(_shown(found, kernel, variable, results))
        results += variable.kind == "result"
    return tuple(shown)


def _is_of_compiler(site: Site, variable: Variable) -> bool:
    # Go's compiler has locals of its own: `.autotmp_3`, `#yield1`, `~r0loc`, and from Go 1.27 on
    # the slots of a string that it took apart, `s.ptr` and `s.len`.
    named = variable.name.removeprefix("&").isidentifier()
    return site.language.convention_first and variable.kind == "local" and not named


def _handed_over(found: ProbePoint, kernel: Kernel) -> list[VisibleVariable]:
    from fetchc.check.special_names import argument, arguments

    assert found.site.static is not None
    shown = []
    for number, type_name in enumerate(arguments(found.site.static), 1):
        name = f"$arg{number}"
        span = Span(0, len(name))
        special = tree.Argument(None, tree.Special(name[1:], span), None, None, span)
        fetchargs: tuple[tuple[str, str], ...] = ()
        reason = None
        place: Place
        try:
            place = argument(Checker(found.site), number, span).place
            compiled = compile_argument(special, name, found, kernel, whole=True)
            fetchargs = tuple([(part.suffix, part.body) for part in compiled.parts])
        except CompileError as refusal:
            reason = refusal.diagnostics[0].message
            place = Absent(_absence(refusal), reason)
        where = describe_place(found.site, place)
        shown.append(
            VisibleVariable(name, "argument", type_name, 0, place, where, fetchargs, reason)
        )
    return shown


def _shown(found: ProbePoint, kernel: Kernel, variable: Variable, results: int) -> VisibleVariable:
    checker = Checker(found.site)
    name = variable.name.lstrip("&")
    type_name = checker.spell(_named_type(checker, variable))
    span = Span(0, len(name))
    named: tree.Expression = tree.Name(name, None, span)
    if name.startswith("~") and variable.kind == "result":
        # One without a name in the source goes by its number.
        name = f"$ret{results}"
        named = tree.Special(name[1:], span)
    argument = tree.Argument(None, named, None, None, span)
    fetchargs: tuple[tuple[str, str], ...] = ()
    reason = None
    place: Place | None = None
    try:
        place, _ = variable_place(found.site, variable, span)
        compiled = compile_argument(argument, name, found, kernel, whole=True)
        fetchargs = tuple([(part.suffix, part.body) for part in compiled.parts])
    except CompileError as refusal:
        reason = refusal.diagnostics[0].message
        if place is None or isinstance(place, Absent):
            place = Absent(_absence(refusal), reason)
    where = describe_place(found.site, place)
    return VisibleVariable(
        name, variable.kind, type_name, variable.line, place, where, fetchargs, reason
    )


def _absence(refusal: CompileError) -> Absence:
    for kind in ABSENCES:
        if kind == refusal.reason:
            return kind
    return "no location"


def _named_type(checker: Checker, variable: Variable) -> TypeId:
    # What Go keeps in a cell of its own is named by it (`&x`), and has the type of a pointer.
    resolved = checker.resolved(variable.type)
    if variable.name.startswith("&") and isinstance(resolved, PointerType):
        return resolved.target
    return variable.type


def _no_names(program: Program, found: ProbePoint) -> CompileError:
    from fetchc.diag.diagnostic import reject
    from fetchc.program.demangle import readable

    function = found.site.function
    where = f"{found.site.address:#x}" if function is None else f"`{readable(function.name)}`"
    notes, help = program.debug_info_advice()
    return reject(
        "FC0903",
        f"{where} has no debug information in `{program.path}`, no name is known there",
        notes=notes,
        help=f"{help}; or use `$arg1`, `%di` with a cast",
        reason="no debug information",
    )


# ------------------------------------------------------------------------------
# Parameters by the places of their bytes.


class PlacePiece(Record):
    """The ``size`` bytes of a parameter from ``offset`` on are what ``value`` fetches."""

    offset: int
    size: int | None
    value: Value


class ParameterPlace(Record):
    """Where a parameter is at a probe: ``pieces`` by their offsets in it.

    ``size`` is in bytes, None where the type has none. ``reason`` says why there are no pieces, or
    fewer than the parameter has bytes, else it is None. ``warning`` is about sources that
    contradict each other. ``word_bytes`` are an address's.
    """

    function: str
    name: str
    type: str
    size: int | None
    pieces: tuple[PlacePiece, ...]
    reason: str | None
    warning: Diagnostic | None
    word_bytes: int

    @property
    def field(self) -> str:
        """The function and the parameter, as a table names its rows."""
        return f"{self.function}({self.name})"


def parameter_places(program: Program, found: ProbePoint) -> tuple[ParameterPlace, ...]:
    """The parameters of the site's function, in their order; those without a name are left out.

    Raises CompileError FC0903 where no debug information has them, FC0206 where the site is not in
    that function's own code alone: at returns, and in inlined copies.
    """
    function = found.site.function
    if found.more or found.kind not in ("entry", "body", "offset"):
        from fetchc.diag.diagnostic import reject

        raise reject(
            "FC0206",
            f"parameters of `{found.site.named_after}` have no one place: it is `{found.kind}`",
            notes=("it has one where a function's own code begins",),
            help="name a function with code of its own; `fetchc variables` shows other points",
        )
    if function is None or function.die is None:
        raise _no_names(program, found)
    listed = program.parameters(function)
    return tuple(
        [_parameter(found.site, each) for each in listed if each.name and each.kind == "parameter"]
    )


def _parameter(site: Site, variable: Variable) -> ParameterPlace:
    assert site.function is not None
    checker = Checker(site)
    span = Span(0, len(variable.name))
    size = checker.size(variable.type)
    pieces: list[PlacePiece] = []
    reason = warning = None
    try:
        place, warning = variable_place(site, variable, span)
    except CompileError as refusal:
        place, reason = Pieces(()), refusal.diagnostics[0].message
    whole = Piece(ByteOffset(0), ByteSize(size or site.program.word_bytes), place)
    for piece in place.pieces if isinstance(place, Pieces) else (whole,):
        try:
            where = located(site, piece.place, piece.size, span, variable.name)
            value = load_word(site, where, span)
        except CompileError as refusal:
            reason = reason or refusal.diagnostics[0].message
            continue
        pieces.append(PlacePiece(piece.offset, None if size is None else piece.size, value))
    return ParameterPlace(
        site.named_after, variable.name, checker.spell(variable.type), size, tuple(pieces),
        reason, warning, site.program.word_bytes,
    )  # fmt: skip
