"""What may follow in an expression that is not written to its end: names, members, types, formats.

The text up to the cursor, with a name in place of what is missing and its open brackets closed, is
parsed by the grammar of expressions, and what the member is of is checked as any expression is.
Where either fails, there is nothing to offer.
"""

from __future__ import annotations

import re

from fetchc.check import scope
from fetchc.check.checker import Checker
from fetchc.check.conversions import type_named
from fetchc.check.members import computed_members, follow_pointer
from fetchc.check.unknown_names import all_members
from fetchc.diag.diagnostic import CompileError
from fetchc.program.types import ArrayType, PointerType, SequenceType, SliceType, StructType
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax import tree
from fetchc.syntax.expression_actions import FORMATS
from fetchc.syntax.expression_parser import parse_argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.check.probe_site import ProbePoint, Site
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import Member
    from fetchc.quantities import TypeId

    # With the type of what is named, where it is a value.
    Offered = tuple["Candidate", TypeId | None]

__all__ = ["NAME", "Candidate", "completions", "grouped", "members_of", "special_names"]

_MISSING = "fetchc__missing"  # a name that no program has
NAME = re.compile(r"(?:[$%]\w*|(?:\w|::)[\w#·]*(?:::[\w#·]*)*)$")
"""A name at the end of a string, as expressions have it."""

_PATH = re.compile(r"[^\W\d][\w%~-]*(?:[./][\w%~-]*)*$")  # a type of Go: net/http.Req
_KEYWORD = re.compile(r"\b(struct|union|enum|class)\s+$")
_FORMAT = re.compile(r"(?<!:):(%?\w*)$")
_CLOSED_BY = {"(": ")", "[": "]"}
_CALLS = {
    "len": "elements or characters", "cap": "room for elements", "sizeof": "bytes of a type",
    "offsetof": "where a member is", "container_of": "the object around a member",
}  # fmt: skip
_MANY = 100  # names, from which on those that begin alike are offered as one
_SEPARATOR = re.compile(r"::|[./]")


class Candidate(Record):
    """One way to go on.

    ``text`` is the whole argument up to the end of the completed name. ``help`` describes the
    name: a type. ``more``: what is completed may go on, so no blank belongs after it.
    """

    text: str
    help: str
    more: bool = True


def completions(found: ProbePoint, text: str) -> list[Candidate]:
    """How the argument ``text`` can go on at a probe point; empty where nothing fits.

    Raises DebugInfoError where the file cannot be read.
    """
    closers = _closers(text)
    if closers is None:
        return []
    checker = Checker(found.site)
    format = None if closers else _FORMAT.search(text)
    if format is not None and _parsed(text[: format.start()]) is not None:
        head = text[: format.start(1)]
        names = sorted(name for name in FORMATS if name.startswith(format[1]))
        return [Candidate(head + name, "a format", name[-1].isdecimal()) for name in names]
    name = NAME.search(text)
    head, begun = (text, "") if name is None else (text[: name.start()], name[0])
    if begun[:1].isdecimal():
        return []
    if head.rstrip().endswith((".", "->")):
        offered = list(_members(checker, head, begun, closers))
        return _with_next(checker, offered) or _of_path(checker, text, closers)
    before = head.rstrip()
    if before and (before[-1].isalnum() or before[-1] in "_)]'\""):
        keyword = _KEYWORD.search(head)
        return [] if keyword is None else _types(checker, text, keyword.start())
    if begun.startswith("%"):
        registers = sorted(found.site.architecture.named)
        return [
            Candidate(f"{head}%{one}", "a register")
            for one in registers
            if one.startswith(begun[1:])
        ]
    if begun.startswith("$"):
        specials = special_names(found.site)
        return [Candidate(head + one, what) for one, what in specials if one.startswith(begun)]
    parsed = _parsed(f"{head}{_MISSING}{closers}")
    if parsed is None:
        return []
    path = list(_first_of_path(checker, head, begun, parsed.expression))
    offered = path or [*_variables(checker, head, begun), *_calls(head, begun)]
    if closers and begun:
        offered = [*offered, *[(one, None) for one in _types(checker, text, len(head))]]
    return _with_next(checker, offered)


def _closers(text: str) -> str | None:
    # What closes the brackets that are open at the end; None where some do not match.
    open_: list[str] = []
    quoted = False
    for character in text:
        if character == "'":
            quoted = not quoted
        elif quoted:
            continue
        elif character in _CLOSED_BY:
            open_.append(_CLOSED_BY[character])
        elif character in ")]" and (not open_ or open_.pop() != character):
            return None
    return None if quoted else "".join(reversed(open_))


def _parsed(text: str) -> tree.Argument | None:
    try:
        return parse_argument(text)
    except CompileError:
        return None


def _members(checker: Checker, head: str, begun: str, closers: str) -> Iterator[Offered]:
    parsed = _parsed(f"{head}{_MISSING}{closers}")
    node = None if parsed is None else _member_node(parsed.expression)
    if node is None:
        return
    try:
        base = checker.check(node.base)
        members = members_of(checker, base)
    except CompileError:
        return
    yield from _named(checker, head, begun, members)


def _first_of_path(
    checker: Checker, head: str, begun: str, expression: tree.Expression
) -> Iterator[Offered]:
    # `offsetof(struct node, ne`: a member of that type.
    nodes: list[Record] = [expression]
    for node in nodes:  # which grows on the way
        nodes += tree.children(node)
        if isinstance(node, tree.OffsetOf | tree.ContainerOf):
            first = node.path.steps[0]
            if isinstance(first, tree.FieldStep) and first.name == _MISSING:
                try:
                    holder = type_named(checker, node.type)
                except CompileError:
                    return
                members = [(one.name, one.type) for one in all_members(checker, holder)]
                yield from _named(checker, head, begun, members)


def _written(checker: Checker, type_id: TypeId) -> Iterator[Member]:
    # Bases that are templates, and tables of virtual functions, have names that are no names here.
    for member in all_members(checker, type_id):
        if NAME.fullmatch(member.name):
            yield member


def _named(
    checker: Checker, head: str, begun: str, members: Iterable[tuple[str, TypeId]]
) -> Iterator[Offered]:
    seen = set()
    for name, type_id in members:
        if name.startswith(begun) and name not in seen and NAME.fullmatch(name):
            seen.add(name)
            yield Candidate(head + name, checker.spell(type_id)), type_id


def _member_node(node: Record) -> tree.Member | None:
    if isinstance(node, tree.Member) and node.name == _MISSING:
        return node
    for part in tree.children(node):
        found = _member_node(part)
        if found is not None:
            return found
    return None


def members_of(checker: Checker, base: Typed) -> Iterable[tuple[str, TypeId]]:
    """Names and types of the members of the object that ``base`` is or leads to, then of what that
    points to as a class does. Raises CompileError.
    """
    holder = follow_pointer(checker, base, base.span)
    for _ in range(2):
        resolved = checker.resolved(holder.type)
        rules = checker.rules_for(resolved)
        if rules.structure is not None:
            holder = rules.structure(checker, holder, resolved) or holder
        own = (*all_members(checker, holder.type), *computed_members(checker, holder.type))
        for member in own:
            for name in filter(None, (member.name, member.also)):
                yield name, member.type
        if rules.dereference is None or not isinstance(resolved, StructType):
            return
        inner = rules.dereference(checker, holder, base.span)
        if inner is None:
            return
        holder = follow_pointer(checker, inner, base.span)


def _variables(checker: Checker, head: str, begun: str) -> Iterator[Offered]:
    site = checker.site
    if site.function is None or site.function.die is None:
        return
    seen = set()
    for variable in scope.visible(site, site.function):
        name, type_id = variable.name.lstrip("&"), variable.type
        resolved = checker.resolved(type_id)
        if variable.name.startswith("&") and isinstance(resolved, PointerType):
            type_id = resolved.target  # Go's cell of a variable that escaped
        if not name or name in seen or name[0] in "~." or not name.startswith(begun):
            continue
        seen.add(name)
        yield Candidate(head + name, checker.spell(type_id)), type_id
    this = scope.receiver(checker)
    if this is None:
        return
    try:
        members = list(members_of(checker, scope.variable_object(checker, this, Span(0, 0))))
    except CompileError:
        return
    members = [(name, type_id) for name, type_id in members if name not in seen]
    yield from _named(checker, head, begun, members)


def _calls(head: str, begun: str) -> Iterator[Offered]:
    for name, what in _CALLS.items():
        if begun and name.startswith(begun):
            yield Candidate(f"{head}{name}(", what), None


def _of_path(checker: Checker, text: str, closers: str) -> list[Candidate]:
    # `(*main.Ser`, where main is a package.
    path = _PATH.search(text) if closers else None
    return [] if path is None else _types(checker, text, path.start())


def _types(checker: Checker, text: str, start: int) -> list[Candidate]:
    head, begun = text[:start], " ".join(text[start:].split())
    if text[start:].endswith(" "):
        begun += " "
    names = sorted({one for one in checker.program.type_names() if one.startswith(begun)})
    return [Candidate(head + one.text, "a type") for one in grouped(names, begun, "")]


def grouped(names: list[str], begun: str, help: str) -> list[Candidate]:
    """Candidates of sorted names that start with ``begun``; of very many, their next words."""
    if len(names) <= _MANY:
        return [Candidate(name, help, False) for name in names]
    found: dict[str, Candidate] = {}
    for name in names:
        end = _SEPARATOR.search(name, len(begun))
        text = name if end is None else name[: end.end()]
        found.setdefault(text, Candidate(text, help, end is not None))
    return list(found.values())


def special_names(site: Site) -> list[tuple[str, str]]:
    """``$`` names that mean something at a site, each with what it is."""
    found = [("$comm", "the name of the process"), ("$stack", "the address of the stack")]
    found += [("$stack0", "the first word of the stack")]
    function = site.function
    if site.program.in_kernel:
        found.append(("$current", "the task that runs"))
    if site.language.goroutines:
        found.append(("$goid", "the number of the goroutine"))
    if site.returns or site.leaving:
        found.append(("$retval", "the result"))
    if site.leaving and function is not None and function.die is not None:
        named = [one for one in site.program.parameters(function) if one.kind == "result"]
        found += [(f"$ret{number}", "a result") for number in range(len(named))]
    if site.entry and function is not None:
        known = function.die is not None
        named = [] if not known else list(site.program.parameters(function))
        names = [one.name for one in named if one.kind != "result"] or [""] * 6 * (not known)
        found += [(f"$arg{n}", f"argument {n} {one}".strip()) for n, one in enumerate(names, 1)]
    return sorted(found)


def _with_next(checker: Checker, offered: Iterable[Offered]) -> list[Candidate]:
    # A shell ends the word after the only candidate: so what may follow it is offered, too.
    offered = list(offered)
    if len(offered) != 1:
        return [candidate for candidate, _ in offered]
    ((candidate, type_id),) = offered
    if type_id is None:
        return [candidate]
    following = list(_following(checker, candidate.text, type_id))
    return [candidate.replaced(more=bool(following)), *following]


def _following(checker: Checker, text: str, type_id: TypeId) -> Iterator[Candidate]:
    resolved = checker.resolved(type_id)
    element: TypeId | None = None
    match resolved:
        case ArrayType(element=element) | SliceType(element=element):
            pass
        case SequenceType(elements=elements):
            element = elements.type
        case StructType():
            for member in _written(checker, type_id):
                yield Candidate(f"{text}.{member.name}", checker.spell(member.type))
        case PointerType(target=target):
            write = checker.site.language.pointer_member
            write = write.replace("({pointer})", "{pointer}")  # what it stands for is no cast
            for member in _written(checker, target):
                named = write.format(pointer=text, name=member.name)
                yield Candidate(named, checker.spell(member.type))
        case _:
            pass
    if element is not None:
        yield Candidate(f"{text}[0]", checker.spell(element))
