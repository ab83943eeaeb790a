"""What a name means at the probe site: locals, parameters, then names outside functions."""

from __future__ import annotations

from fetchc.check.places import variable_place
from fetchc.check.typed import Address, Follow, Held, Part, Special
from fetchc.diag.errors import reject
from fetchc.diag.model import Diagnostic, Label
from fetchc.program.places import (
    Absent,
    AtAddress,
    AtSymbol,
    Named,
    PointerTo,
)
from fetchc.program.types import BoolType, CharType, EnumType, IntType, PointerType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker, Site
    from fetchc.check.typed import Typed
    from fetchc.diag.errors import CompileError
    from fetchc.program.model import Function, Variable
    from fetchc.source import Span

__all__ = ["find_global", "find_local", "held", "receiver", "visible"]

_NUMBERS = (IntType, CharType, EnumType, BoolType)


def visible(site: Site, function: Function) -> tuple[Variable, ...]:
    """The names of ``function`` at the site, those first that hide later ones.

    At the entry these are its parameters and results: optimisers move instructions of inner
    blocks and inlined calls there (Go's first instruction is often one), none of which the
    program has entered yet. So they are where a Go function returns: of the variables in the block
    around the return, nothing is left. Where a copy of another function begins, its own names are
    the first.
    """
    if site.instance is not None:
        lines = site.program.code_map()
        assert lines is not None
        return lines.variables(site.instance)
    known = site.program.variables(function, site.address)
    if not site.entry and not site.leaving:
        return known
    return tuple(sorted(known, key=lambda variable: variable.kind == "local"))


def find_local(checker: Checker, name: str, line: int | None) -> Variable | None:
    """A local variable or parameter; Go's captured variables by their plain names.

    ``line`` picks a declaration by its line, where an inner one hides it.
    """
    site = checker.site
    if site.function is None or site.function.die is None:
        return None
    known = visible(site, site.function)
    for variable in known:
        if variable.name == name and line in (None, variable.line):
            return variable
    return _captured(known, name)


def find_global(checker: Checker, name: str, line: int | None, span: Span) -> Variable | None:
    """A variable outside functions, under the names that the language gives it there.

    ``line`` picks a declaration by its line. Raises CompileError FC0208 where several files
    have one, and none of them is the function's.
    """
    site = checker.site
    if not site.program.has_debug_info:
        return None
    candidates: tuple[str, ...] = (name,)
    if site.function is not None and site.function.die is not None:
        candidates = site.language.global_names(name, site.function)
    for candidate in candidates:
        known = site.program.global_variables(candidate, site.function)
        found = [variable for variable in known if line in (None, variable.line)]
        if found:
            return _only(checker, found, span)
    return None


def _only(checker: Checker, found: list[Variable], span: Span) -> Variable:
    # Statics of several files may share a name; one variable may be described twice.
    if len(found) > 1:
        program, address = checker.site.program, checker.site.address
        places = dict.fromkeys(program.place(variable, None, address) for variable in found)
        if len(places) > 1:
            raise _ambiguous(found, span)
    return found[0]


def _ambiguous(found: list[Variable], span: Span) -> CompileError:
    lines = sorted({variable.line for variable in found})
    several = len(lines) == len(found)
    name = found[0].name
    return reject(
        "FC0208",
        f"{len(found)} variables are called `{name}`, each in a file of its own",
        span,
        "which one is meant",
        notes=(f"declared in lines {', '.join(map(str, lines))}",) if several else (),
        help=f"pick one by the line of its declaration: `{name}@{lines[0]}`"
        if several
        else "probe a function of the file that has the one you mean",
    )


def _captured(visible: tuple[Variable, ...], name: str) -> Variable | None:
    # Go names a variable that escaped to the heap by its cell: &x, of type *T.
    return next((v for v in visible if v.name == f"&{name}"), None)


def receiver(checker: Checker) -> Variable | None:
    """The implicit object of a method (``this``) or of a lambda (``__closure``), None elsewhere."""
    site = checker.site
    if site.function is None or site.function.die is None:
        return None
    parameters = site.program.parameters(site.function)
    return next((p for p in parameters if p.artificial and p.name in ("this", "__closure")), None)


def held(checker: Checker, variable: Variable, span: Span) -> Typed:
    """The object of ``variable`` at the site; raises where it has no place there."""
    place, warning = variable_place(checker.site, variable, span)
    if warning is not None:
        checker.warnings.append(warning)
    if isinstance(place, Absent):
        from fetchc.check.availability import absent

        raise absent(checker.site, variable, place, span)
    if isinstance(place, Named) and place.text:
        return Special("text", place.name, variable.type, span)
    if isinstance(place, PointerTo):
        return _pointer(checker, variable, place, span)
    if isinstance(place, AtSymbol) and not place.known:
        checker.warnings.append(_perhaps_no_symbol(place.symbol, span))
    if isinstance(place, AtAddress) and variable.kind == "global":
        _warn_of_copies(checker, variable, place, span)
    base: Typed = Held(place, variable.name, variable.type, span)
    if variable.name.startswith("&"):
        made = checker.resolved(variable.type)
        if isinstance(made, PointerType):
            if variable.outermost:
                from fetchc.check.go.captured import is_in_object

                if is_in_object(checker.site, variable):
                    return Held(place, variable.name, made.target, span)
            base = Follow(base, made.target, span)
    return base


def _pointer(checker: Checker, variable: Variable, place: PointerTo, span: Span) -> Typed:
    # The address of an object: what it leads to is the object, with or without an address.
    made = checker.resolved(variable.type)
    if isinstance(made, _NUMBERS):
        return Held(place, variable.name, variable.type, span)  # which a reader can add up
    if not isinstance(made, PointerType):
        from fetchc.check.availability import absent
        from fetchc.check.place_words import place_words

        words = place_words(checker.site, place)
        nowhere = Absent("FC0406", f"it is computed, {words}, and kept in no memory")
        raise absent(checker.site, variable, nowhere, span)
    target: Typed = Held(place.target, variable.name, made.target, span)
    if place.offset:
        target = Part(target, place.offset, None, made.target, span)
    return Address(target, variable.type, span)


def _perhaps_no_symbol(symbol: str, span: Span) -> Diagnostic:
    return Diagnostic(
        "FC0606",
        f"whether the kernel finds its `{symbol}` by name only that kernel can tell",
        Label(span, "a variable of the kernel"),
        notes=("without CONFIG_KALLSYMS_ALL it lists no variables, and reads nothing there",),
        help=f"look there: `grep ' {symbol}$' /proc/kallsyms`",
    )


def _warn_of_copies(checker: Checker, variable: Variable, place: AtAddress, span: Span) -> None:
    if checker.program.may_be_copied(variable.name, place.address):
        checker.warnings.append(
            Diagnostic(
                "FC0607",
                f"`{variable.name}` may live in the executable, not in the library",
                Label(span, "exported by a shared library"),
                notes=(
                    "an executable that names it gets a copy of its own, and the library then "
                    "uses that one",
                ),
                help=f"look for a copy: `readelf -r EXECUTABLE | grep {variable.name}`",
            )
        )
