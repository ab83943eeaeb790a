"""What a name means at the probe site: locals, parameters, then names outside functions."""

from __future__ import annotations

from fetchc.check.typed_tree import Address, Constant, Located, Pointee, Special, Subobject
from fetchc.check.variable_places import variable_place
from fetchc.diag.diagnostic import Diagnostic, Label, reject
from fetchc.program.entities import (
    Absent,
    Arithmetic,
    AtAddress,
    AtSymbol,
    InRegister,
    Named,
    Pieces,
    PointerTo,
)
from fetchc.program.entities import Constant as KnownPlace
from fetchc.program.types import BoolType, CharType, EnumType, IntType, PointerType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.probe_site import Site
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Function, Variable
    from fetchc.source import Span

__all__ = [
    "enumerator",
    "find_global",
    "find_local",
    "find_outside",
    "receiver",
    "variable_object",
    "visible",
]  # fmt: skip

_NUMBERS = (IntType, CharType, EnumType, BoolType)


def visible(site: Site, function: Function) -> tuple[Variable, ...]:
    """The names of ``function`` at the site, those first that hide later ones.

    At the entry these are its parameters and results: optimizers move instructions of inner
    blocks and inlined calls there (Go's first instruction is often one), and the program has
    entered none of them yet: what a using-declaration names there is left out. So they are where a
    Go function returns: of the variables in the block around the return, nothing is left. Where a
    copy of another function begins, its own names are the first.
    """
    if site.instance is not None:
        lines = site.program.code_map()
        assert lines is not None
        return lines.variables(site.instance)
    variables = site.program.variables(function, site.address)
    if not (site.entry or site.returns or site.leaving):
        return variables
    if not site.label:
        variables = tuple(one for one in variables if one.kind != "global" or one.outermost)
    return tuple(sorted(variables, key=lambda variable: variable.kind in ("local", "global")))


def find_local(checker: Checker, name: str, line: int | None, span: Span) -> Variable | None:
    """A local variable or parameter, the innermost of that name.

    Go names a variable that escaped to the heap by its cell: ``&x``, of type ``*T``. ``line`` picks
    a declaration by its line, where an inner one hides it. Raises CompileError FC0208 where the
    address is in two scopes that both have one, and where the name is that of a pack.
    """
    site = checker.site
    if site.function is None or site.function.die is None:
        return None
    seen = visible(site, site.function)
    same_name = [
        variable
        for variable in seen
        if variable.name in (name, f"&{name}") and line in (None, variable.line)
    ]
    if len(same_name) > 1 and site.language.convention_first:
        from fetchc.check.go_variables import variable_in_scope

        return variable_in_scope(site, site.function, same_name)
    if same_name and line is None and site.entry and site.label:
        _must_be_alone(site.function, same_name, span)
    if same_name and line is None and same_name[0].code_unknown:
        _must_be_around(checker, same_name, span)
    packed = [] if same_name else [one.name for one in seen if one.name.startswith(f"{name}#")]
    if packed:
        raise reject(
            "FC0208",
            f"`{name}` is a pack of {len(packed)} parameters",
            span,
            "which one is meant",
            help=f"name one of them: {', '.join([f'`{one}`' for one in packed[:8]])}",
        )
    return same_name[0] if same_name else None


def _must_be_alone(function: Function, same_name: list[Variable], span: Span) -> None:
    # A line of an inner block whose first instruction is the function's first one, too: whether
    # the block was entered, the address does not say.
    first, *others = same_name
    if first.kind == "global" and not first.outermost:
        raise reject(
            "FC0208",
            f"the line begins with the first instruction of `{function.name}`, and only in an "
            f"inner block a using-declaration names `{first.name}`",
            span,
            "which one is meant",
            help=f"write the whole name: `::{first.name}`, or with its namespace",
        )
    for other in others:
        if other.die != first.die and other.called is None:
            raise reject(
                "FC0208",
                f"the line begins with the first instruction of `{function.name}`, where "
                f"`{first.name}` is a parameter, and in the block of the line something else",
                span,
                "which one is meant",
                help=f"pick one by the line of its declaration: `{first.name}@{first.line}`, "
                f"`{other.name}@{other.line}`",
            )


def _must_be_around(checker: Checker, same_name: list[Variable], span: Span) -> None:
    # A name of a block that may be elsewhere. What has no place here is refused by itself.
    first, *others = same_name
    site = checker.site
    place = site.program.place(first, site.function, site.address)
    if first.kind != "global" and isinstance(place, Absent | InRegister | Pieces):
        return
    others = [one for one in others if one.die != first.die]
    if not others:
        outside = find_global(checker, first.name, None, span)
        if outside is None or outside.die == first.die:
            return
        others = [outside]
    if place == site.program.place(others[0], site.function, site.address):
        return
    inside = others[0].kind != "global"
    raise reject(
        "FC0208",
        f"an inner block has a `{first.name}`, too, and the debug information does not say which "
        "addresses are in the block",
        span,
        "which one is meant",
        help=f"pick one by the line of its declaration: `{first.name}@{others[0].line}`"
        if inside
        else f"write the whole name: `::{first.name}`, or with its namespace",
    )


def find_global(checker: Checker, name: str, line: int | None, span: Span) -> Variable | None:
    """A variable outside functions, under the names that the language gives it there.

    ``line`` picks a declaration by its line. Raises CompileError FC0208 where several files
    have one, and none of them is the function's.
    """
    site = checker.site
    if not site.program.has_debug_info:
        return None
    candidates = _whole_names(site, name)
    for candidate in candidates:
        found = _variables(site, candidate, line)
        if found:
            return _only(checker, found, span)
    return _loosely(checker, name, line, candidates, span)


def find_outside(checker: Checker, name: str, line: int | None, span: Span) -> Typed | None:
    """What ``name`` means outside functions: a variable, or a number that an enumeration names.

    The innermost scope that has the name counts. Raises CompileError as :func:`find_global`.
    """
    site = checker.site
    if not site.program.has_debug_info:
        return None
    candidates = _whole_names(site, name)
    for candidate in candidates:
        found = _variables(site, candidate, line)
        if found:
            return variable_object(checker, _only(checker, found, span), span)
        if line is not None:
            continue
        number = enumerator(checker, candidate, span)
        if number is not None:
            return number
        static_member = checker.rules.static_member if "::" in candidate else None
        shared = None if static_member is None else static_member(checker, candidate, span)
        if shared is not None:
            return shared
    variable = _loosely(checker, name, line, candidates, span)
    return None if variable is None else variable_object(checker, variable, span)


def enumerator(checker: Checker, name: str, span: Span) -> Typed | None:
    """The number that an enumeration calls ``name``, a whole name; None where none does."""
    found = checker.program.enumerators(name, checker.site.scope)
    if len(found) > 1:
        values = ", ".join(str(value) for value, _ in found)
        raise reject(
            "FC0208",
            f"{len(found)} enumerations have a `{name}`",
            span,
            "which one is meant",
            notes=(f"its values are {values}",),
            help="write the number",
        )
    return Constant(*found[0], span) if found else None


def _whole_names(site: Site, name: str) -> tuple[str, ...]:
    scope = site.scope
    if scope is None or scope.die is None or name.startswith(("::", "'")):
        return (name,)
    return site.language.global_names(name, scope)


def _variables(site: Site, name: str, line: int | None) -> list[Variable]:
    same_name = site.program.global_variables(name, site.scope)
    return [variable for variable in same_name if line in (None, variable.line)]


def _loosely(
    checker: Checker, name: str, line: int | None, candidates: tuple[str, ...], span: Span
) -> Variable | None:
    # The name may leave out namespaces, even where no using-directive allows it.
    site = checker.site
    for candidate in candidates if "::" in name and not name.startswith(("::", "'")) else ():
        same_name = site.program.global_variables(candidate, site.scope, loosely=True)
        found = [variable for variable in same_name if line in (None, variable.line)]
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
    paths = list(dict.fromkeys(variable.name for variable in found))
    if len(paths) == len(found):
        return reject(
            "FC0208",
            f"{len(found)} variables are called `{name.rpartition('/')[2]}`",
            span,
            "which one is meant",
            notes=(f"they are {', '.join(f'`{path}`' for path in paths)}",),
            help=f"write the whole path: `{name}`",
        )
    return reject(
        "FC0208",
        f"{len(found)} variables are called `{name}`, each in a file or scope of its own",
        span,
        "which one is meant",
        notes=(f"declared in lines {', '.join(map(str, lines))}",) if several else (),
        help=f"pick one by the line of its declaration: `{name}@{lines[0]}`"
        if several
        else f"name the file: `'file.c'::{name}`, or probe a function of it",
    )


def receiver(checker: Checker) -> Variable | None:
    """The implicit object of a method (``this``) or of a lambda (``__closure``), None elsewhere."""
    site = checker.site
    if site.function is None or site.function.die is None:
        return None
    parameters = site.program.parameters(site.function)
    return next((p for p in parameters if p.artificial and p.name in ("this", "__closure")), None)


def variable_object(checker: Checker, variable: Variable, span: Span) -> Typed:
    """The object of ``variable`` at the site; raises where it has no place there."""
    place, warning = variable_place(checker.site, variable, span)
    if warning is not None:
        checker.warnings.append(warning)
    if isinstance(place, Absent):
        from fetchc.check.availability import refuse_absent

        raise refuse_absent(checker.site, variable, place, span)
    if isinstance(place, Named) and place.text:
        return Special("text", place.name, variable.type, span)
    if isinstance(place, PointerTo | Arithmetic):
        return _computed(checker, variable, place, span)
    if isinstance(place, AtSymbol) and not place.verified:
        checker.warnings.append(_perhaps_no_symbol(place.symbol, span))
    if isinstance(place, AtAddress) and variable.kind == "global":
        _warn_of_copies(checker, variable, place, span)
    if isinstance(place, KnownPlace) and checker.site.language.arithmetic == "go":
        from fetchc.check.arithmetic_conversions import named_constant

        constant = named_constant(checker, variable, place.value, span)
        if constant is not None:
            return constant
    base: Typed = Located(place, variable.name, variable.type, span)
    if variable.name.startswith("&"):
        resolved = checker.resolved(variable.type)
        if isinstance(resolved, PointerType):
            if variable.outermost:
                from fetchc.check.go_variables import is_in_closure_object

                if is_in_closure_object(checker.site, variable):
                    return Located(place, variable.name, resolved.target, span)
            base = Pointee(base, resolved.target, span)
    return base


def _computed(
    checker: Checker, variable: Variable, place: PointerTo | Arithmetic, span: Span
) -> Typed:
    # The address of an object leads to the object, also to one without an address. A reader
    # computes numbers, and addresses that no object is known of.
    if isinstance(place, Arithmetic):
        from fetchc.check.computed_variables import refusal

        if why := refusal(checker, variable, place):
            raise _nowhere(checker, variable, why, span)
        return Located(place, variable.name, variable.type, span)
    resolved = checker.resolved(variable.type)
    if isinstance(resolved, _NUMBERS):
        return Located(place, variable.name, variable.type, span)
    if not isinstance(resolved, PointerType):
        from fetchc.check.locations import describe_place

        words = f"it is computed, {describe_place(checker.site, place)}, and not stored in memory"
        raise _nowhere(checker, variable, words, span)
    target: Typed = Located(place.target, variable.name, resolved.target, span)
    if place.offset:
        target = Subobject(target, place.offset, None, resolved.target, span)
    return Address(target, variable.type, span)


def _nowhere(checker: Checker, variable: Variable, words: str, span: Span) -> CompileError:
    from fetchc.check.availability import refuse_absent

    return refuse_absent(checker.site, variable, Absent("computed", words), span)


def _perhaps_no_symbol(symbol: str, span: Span) -> Diagnostic:
    return Diagnostic(
        "FC0606",
        f"only that kernel can show whether it finds its `{symbol}` by name",
        Label(span, "a variable of the kernel"),
        notes=("without CONFIG_KALLSYMS_ALL it lists no variables, and cannot read them by name",),
        help=f"check there: `grep ' {symbol}$' /proc/kallsyms`",
    )


def _warn_of_copies(checker: Checker, variable: Variable, place: AtAddress, span: Span) -> None:
    if checker.program.evidence.may_be_copied(variable, place.address):
        checker.warnings.append(
            Diagnostic(
                "FC0607",
                f"`{variable.name}` may be in the executable, not in the library",
                Label(span, "exported by a shared library"),
                notes=(
                    "an executable that names it gets a copy of its own, and the library then "
                    "uses that one",
                ),
                help=f"look for a copy: `readelf -r EXECUTABLE | grep {variable.name}`",
            )
        )
