"""``fetchc check``: hand-written definitions against the rules of every kernel.

A definition is a whole line of ``uprobe_events``, ``kprobe_events`` or ``dynamic_events``, or one
fetch-arg of a uprobe. The rules are those that ``compile`` holds its own output to
(:mod:`fetchc.ir.fetch_rules`, :mod:`fetchc.emit.probe_definition`).
"""

from __future__ import annotations

import os
import re
from functools import cache

from fetchc.diag.diagnostic import CompileError, Diagnostic, Label
from fetchc.driver.definition_places import read_kernel_place
from fetchc.driver.fetcharg_meaning import Depends, ReadFetch, placed, problem_at
from fetchc.emit.probe_definition import (
    argument_problem,
    event_problem,
    group_problem,
    line_problem,
    number_problem,
    size_problem,
)
from fetchc.ir.fetch import KernelValue, ReturnValue
from fetchc.ir.fetch_rules import verify
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax.definition_parser import is_definition, read_definition
from fetchc.syntax.fetcharg_parser import kernel_number, read_fetch
from fetchc.syntax.syntax_errors import kernel_format
from fetchc.target.kernel_versions import dotted, kernel, turns, version_ranges
from fetchc.target.machines import architecture, tables_under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from fetchc.check.probe_site import ProbePoint
    from fetchc.ir.fetch import Fetch
    from fetchc.syntax.definition_parser import PlaceText
    from fetchc.syntax.fetcharg_parser import Piece
    from fetchc.target.kernel_versions import Kernel

__all__ = ["Checked", "ReadLine", "accepted_by", "check_definition", "hinted"]

# ------------------------------------------------------------------------------
# The definition of a probe that somebody wrote: what is wrong with it, and where.
#
# Reads as ``__trace_uprobe_create`` does (kernel/trace/trace_uprobe.c); probes of the kernel
# itself as :mod:`fetchc.driver.definition_places` says. Stricter than that: digits after the
# letter, for which the kernel drops the names, and ``#``, from which on it drops the line.

_ADDRESSES = 1 << 64  # an offset is read as an unsigned long


class ReadLine:
    """A line as read; raises CompileError where it is none.

    ``kind`` is that of ``targets/kernel``: uprobe, uretprobe, kprobe and so on. ``problems``
    are those of the text alone, ``unknown`` what only the kernel can tell. ``path`` and
    ``offset`` are None where the line does not say them; ``path_place`` and ``place`` are where.
    """

    __slots__ = (
        "_active",
        "_arguments",
        "_text",
        "_tree",
        "_used",
        "kind",
        "offset",
        "path",
        "path_place",
        "place",
        "problems",
        "unknown",
    )

    def __init__(self, text: str) -> None:
        written, sign, _ = text.partition("#")
        comment = Span(len(written), len(text)) if sign else None
        tree = self._tree = read_definition(written)
        self._text = text
        self.problems: list[Diagnostic] = []
        self.path: str | None = None
        self.offset: int | None = None
        self.place = self.path_place = Span(len(text.rstrip()), len(text.rstrip()))
        self.kind = "uretprobe" if tree.letter.text[:1] == "r" else "uprobe"
        self.unknown: list[str] = []
        self._arguments: list[tuple[Piece, ReadFetch]] = []
        self._used: list[Depends] = []
        self._active: tuple[int, Span] | None = None
        if comment is not None:
            what = "the kernel ignores the line from `#` on"
            self._reject("FC0101", what, comment, "a comment")
        if self._letter():
            self._names()
            if self._of_kernel():
                self._kernel_place()
            else:
                self._place(tree.place)
                for piece in tree.arguments:
                    self._argument(piece, "program")

    def _reject(self, code: str, what: str, span: Span, label: str, note: str = "") -> None:
        self.problems.append(problem_at(code, what, span, label, note))

    def _letter(self) -> bool:
        letter = self._tree.letter
        first, digits = letter.text[:1], letter.text[1:]
        if first == "-":
            what = "this line removes a probe: there is nothing to check"
            self._reject("FC0101", what, letter.span, "removes")
            return False
        number = first == "r" and digits[:1].isdecimal() and self._of_kernel()
        if first not in "prfte" or (digits.strip("0123456789") and not number):
            what = f"a definition begins with `p`, `r`, `f`, `t` or `e`, not `{letter.text}`"
            self._reject("FC0101", what, letter.span, "none of them")
            return False
        if digits and not self._of_kernel():
            note = "the kernel ignores the name after it: the event would get another one"
            span = Span(letter.span.start + 1, letter.span.end)
            self._reject("FC0101", "a uprobe takes no number here", span, "for kernel probes", note)
        return True

    def _of_kernel(self) -> bool:
        # As the kernel distinguishes them: a path has a slash, and an offset after a colon.
        tree = self._tree
        if tree.letter.text[:1] in "fte":
            return True
        if tree.word is None or tree.place is None or "/" in tree.word.text:
            return False
        offset = tree.place.offset
        return offset is None or not offset.text[:1].isdecimal()

    def _kernel_place(self) -> None:
        tree = self._tree
        if tree.word is None:
            what = "the line does not say what to probe"
            self._reject("FC0206", what, self.place, "nothing here")
            return
        read = read_kernel_place(tree.letter, tree.word, tree.arguments)
        self.kind, self.place = read.kind, tree.word.span
        self.problems += read.problems
        self.unknown += read.unknown
        self._used += read.used
        self._active = read.active
        for piece in read.arguments:
            self._argument(piece, "event" if read.kind == "eprobe" else "function")
        whole = [piece for piece in read.arguments if piece.text == "$arg*"]
        for piece in whole[1:]:
            self._reject("FC0507", "`$arg*` is there already", piece.span, "one too many")

    def _names(self) -> None:
        tree = self._tree
        if tree.names is None:
            return  # the kernel makes a name of the path and the offset
        if tree.group is not None and not tree.group.text:
            span = tree.group.span
            self._reject("FC0503", "the group's name is missing", span, "a name is missing")
        if tree.event is not None and not tree.event.text and tree.group is None:
            span = tree.event.span
            self._reject("FC0503", "the event's name is missing", span, "a name is missing")

    def _place(self, place: PlaceText | None) -> None:
        if place is None:
            self._reject("FC0206", "the line has no `PATH:OFFSET`", self.place, "nothing here")
            return
        start = self.place = self.path_place = place.path.span
        offset = place.offset
        digit = offset is not None and offset.text[:1].isascii() and offset.text[:1].isdecimal()
        if offset is None or not digit:
            where = start if offset is None else offset.span
            what = "the offset in the file is missing"
            note = "`fetchc functions --long -x PATH` shows addresses by name"
            self._reject("FC0206", what, where, "`PATH:OFFSET` is needed", note)
            return
        self.place = offset.span
        number = kernel_number(offset.text, sign=False)
        if number is None or number >= _ADDRESSES:
            what = f"`{offset.text}` is not an offset in a file"
            self._reject("FC0206", what, offset.span, "not a number of 64 bits")
        elif place.path.text:
            self.path, self.offset = place.path.text, number
        else:
            self._reject("FC0206", "the path is missing", start, "nothing here")
        self._behind_offset(place)

    def _behind_offset(self, place: PlaceText) -> None:
        if place.suffix is not None:
            if place.suffix.text == "%return":
                self.kind = "uretprobe"
            else:
                what = f"`{place.suffix.text}` cannot follow an offset"
                self._reject("FC0206", what, place.suffix.span, "only `%return` can")
        if place.reference is None:
            return
        if place.unclosed:
            end = Span(place.reference.span.end, place.reference.span.end)
            self._reject("FC0206", "unclosed `(`", end, "`)` is missing")
        elif place.extra is not None:
            what = f"`{place.extra.text}` cannot follow the semaphore"
            self._reject("FC0206", what, place.extra.span, "one too many")
        else:
            number = kernel_number(place.reference.text, sign=False)
            if number is None or number >= _ADDRESSES:
                what = f"`{place.reference.text}` is not an offset in a file"
                self._reject("FC0206", what, place.reference.span, "not a number of 64 bits")

    def _argument(self, piece: Piece, family: str) -> None:
        try:
            read = ReadFetch(read_fetch(piece.text, piece.span.start), family)
            self._arguments.append((piece, read))
            self.unknown += read.unknown
        except CompileError as refused:
            self.problems += refused.diagnostics

    def problems_for(self, kernel: Kernel, registers: Container[str]) -> list[Diagnostic]:
        """All that ``kernel`` refuses, or mangles, each with its place in the line."""
        problems = self._features(kernel)
        problems = self.problems + problems + self._event(kernel)
        count = number_problem(len(self._arguments), kernel)
        problems += [placed(each, self._first_argument(), "too many") for each in count]
        seen: set[str] = set()
        fetches: list[Fetch] = []
        for position, (piece, read) in enumerate(self._arguments, 1):
            name = _default(read, position, kernel) if read.name is None else read.name.text
            found = argument_problem(name, position, seen, kernel)
            if found is not None:
                span = piece.span if read.name is None else read.name.span
                problems.append(placed(found, span, "not a valid name"))
            seen.add(name)
            problems += read.problems_for(kernel, self.kind, registers)
            if read.fetch is not None:
                before = size_problem(fetches, kernel, self.kind)
                fetches.append(read.fetch)
                # Once, at the argument that makes it too big.
                if not before:
                    big = size_problem(fetches, kernel, self.kind)
                    problems += [placed(each, read.body, "one too many") for each in big]
        length = len(os.fsencode(self._text))
        whole = Span(0, len(self._text))
        problems += [placed(each, whole, "too long") for each in line_problem(length, kernel)]
        return problems

    def followed_fields(self) -> list[str]:
        """The fields of an event that arguments take for pointers: ``$filename``."""
        bases = [read.base for _, read in self._arguments if read.loads]
        return [
            base.text
            for base in bases
            if isinstance(base, KernelValue) and base.rule.startswith("event_field")
        ]

    def _first_argument(self) -> Span:
        return self._arguments[0][0].span

    def _event(self, kernel: Kernel) -> list[Diagnostic]:
        tree = self._tree
        if tree.names is None:
            return []
        group, event = tree.group, tree.event
        if tree.separator == "." and not kernel.has("dot_in_name"):
            group, event = None, tree.names  # a dot like any other
        problems = []
        if group is not None and group.text:
            found = group_problem(group.text, kernel)
            if found is not None:
                problems.append(placed(found, group.span, "not a valid name"))
        if event is not None and event.text:
            found = event_problem(event.text, kernel)
            if found is not None:
                problems.append(placed(found, event.span, "not a valid name"))
        return problems

    def _features(self, kernel: Kernel) -> list[Diagnostic]:
        # What the line makes use of and an older kernel does not know.
        tree, used = self._tree, list(self._used)
        if tree.group is not None and tree.event is not None and not tree.event.text:
            used.append(Depends("group_alone", "a group without an event", tree.group.span))
        place = tree.place
        if place is not None and not self._of_kernel():
            if place.suffix is not None:
                used.append(Depends("percent_return", "`%return`", place.suffix.span))
            if place.reference is not None:
                used.append(
                    Depends("semaphore", "a semaphore after the offset", place.reference.span)
                )
            if ":" in place.path.text:
                used.append(Depends("colon_in_path", "`:` in a path", place.path.span))
        problems = []
        if self._active is not None and self._active[0] > kernel.returns_at_once:
            what = f"{self._active[0]} calls are more than the kernel watches"
            note = f"it takes numbers up to {kernel.returns_at_once}"
            problems.append(problem_at("FC0504", what, self._active[1], "too many", note))
        found = [each.problem_for(kernel) for each in used]
        problems += [one for one in found if one is not None]
        return problems


def _default(read: ReadFetch, position: int, kernel: Kernel) -> str:
    # What the kernel calls an argument that has no name.
    base = read.base
    first = kernel.base("name").first
    if isinstance(base, KernelValue) and base.rule == "name" and not read.loads:
        return base.text if kernel.version >= first else f"arg{position}"
    return f"arg{position}"


_MACHINE = "x86_64"  # whose registers a definition can name: the one machine with live tests


class Checked(Record):
    """The verdict on one definition.

    ``kind`` is uprobe, uretprobe, kprobe, kretprobe, fprobe, fexit, tprobe or eprobe, of a lone
    fetch-arg the one of the first two that takes it. ``problems``
    are the chosen kernel's, ``ranges`` the versions that accept the definition, first and
    last, None where the newest version in the tables does.
    """

    text: str
    kind: str
    problems: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]
    ranges: tuple[tuple[str, str | None], ...]


def check_definition(text: str, rules: Kernel, machine: str = _MACHINE) -> Checked:
    """The verdict of ``rules`` on ``text``, and the versions that accept it.

    ``machine`` is the architecture whose registers it can name.

    The file of a whole line is looked at where it is there: a warning says what is
    uncertain about the probed address. What is certain to break the program is a problem.
    """
    checked, path = _checked(text, rules, machine)
    if not checked.problems:
        return checked

    problems = hinted(checked.problems, text, machine, path)
    return Checked(text, checked.kind, problems, checked.warnings, checked.ranges)


def _checked(text: str, rules: Kernel, machine: str) -> tuple[Checked, str | None]:
    # The verdict, and the probed file of a line that names one.
    registers = architecture(machine).named
    try:
        if is_definition(text):
            line = ReadLine(text)
        else:
            return _fetch(text, rules, registers), None
    except CompileError as refused:
        return Checked(text, "uprobe", refused.diagnostics, (), ()), None
    problems = tuple(line.problems_for(rules, registers))
    accepted = [not line.problems_for(each, registers) for each in _kernels()]
    if line.path is None or line.offset is None:
        kind = line.kind.removesuffix("_inside")
        warnings = () if problems else _unknown(line, rules)
        return Checked(text, kind, problems, warnings, version_ranges(accepted)), line.path
    from fetchc.driver.definition_places import harmful, look, nop_at

    broken, warnings = look(line.path, line.offset, line.path_place, line.place)
    good = version_ranges(accepted)
    if nop := nop_at(line.path, line.offset, machine):
        harmed = [each.replaced_nop(machine) == nop for each in _kernels()]
        unharmed = [one and not harm for one, harm in zip(accepted, harmed, strict=True)]
        good = version_ranges(unharmed)
        if rules.replaced_nop(machine) == nop:
            problems += (harmful(rules, nop, line.offset, line.place),)
    checked = Checked(text, line.kind, problems + broken, warnings, () if broken else good)
    return checked, line.path


def accepted_by(found: ProbePoint, fetches: Sequence[Fetch]) -> tuple[tuple[str, str | None], ...]:
    """The versions that accept all of ``fetches`` at a probe point, as ``Checked.ranges``."""
    site = found.site
    named = site.architecture.named
    accepted = [
        not any(verify(one, each, site.probe_kind, named) for one in fetches) for each in _kernels()
    ]
    return version_ranges(accepted)


@cache
def _kernels() -> tuple[Kernel, ...]:
    # The rules of every version that changes some, built once for many definitions.
    return tuple([kernel(dotted(turn)) for turn in turns()])


def _unknown(line: ReadLine, rules: Kernel) -> tuple[Diagnostic, ...]:
    if not line.unknown:
        return ()
    notes = [f"not checked: {', '.join(dict.fromkeys(line.unknown))}"]
    mangled = rules.base("event_text_pointer").mangled
    if mangled is not None and mangled[0] <= rules.version <= mangled[1]:
        notes += [
            f"Linux {rules.name} reads one byte of `{field}` if it points to characters"
            for field in dict.fromkeys(line.followed_fields())
        ]
    return (
        Diagnostic(
            "FC0606",
            "only the kernel itself knows what this names",
            Label(line.place, "not checked"),
            notes=tuple(notes),
        ),
    )


def _fetch(text: str, rules: Kernel, registers: Container[str]) -> Checked:
    read = ReadFetch(read_fetch(text))
    kind = "uretprobe" if isinstance(read.base, ReturnValue) else "uprobe"

    def problems(version: Kernel) -> list[Diagnostic]:
        return read.name_problems(version) + read.problems_for(version, kind, registers)

    accepted = [not problems(each) for each in _kernels()]
    return Checked(text, kind, tuple(problems(rules)), (), version_ranges(accepted))


# ------------------------------------------------------------------------------
# What to write instead: one thing to do about each problem of a hand-written definition.
#
# Most of what goes wrong has a few causes: names of registers and types that other tools take,
# quotes of a shell, lines for other machines, other files of tracefs or perf-tools. What is not
# recognised has no hint.

_FOLLOWED = re.compile(
    r"(?:\w+=)?(%\w+|\$stack\d+|\$retval|\$arg\d+):((u?string|[usx]\d+)(\[\d+\])?)\Z"
)
_UNSIGNED = re.compile(r"(?:\w+=)?((?:0x)?[0-9a-fA-F]+\(.+)\Z")  # 8(%di), as an assembler writes
_PERF_TOOLS = re.compile(r"[pr]:([^\s:]+):([A-Za-z_]\w*)(?=\s|\Z)")  # p:bash:readline ...


def hinted(
    problems: Iterable[Diagnostic], text: str, machine: str, path: str | None = None
) -> tuple[Diagnostic, ...]:
    """``problems`` of the definition ``text``, those with a hint that have no help yet.

    ``machine`` is a key of ``targets/arch``; ``path`` the probed file, where the line has one.
    """
    return tuple([_with(each, _hint(each, text, machine, path)) for each in problems])


def _with(problem: Diagnostic, help: str | None) -> Diagnostic:
    if help is None or problem.help is not None:
        return problem
    return problem.replaced(help=help)


def _hint(problem: Diagnostic, text: str, machine: str, path: str | None) -> str | None:
    if problem.span is None:
        return None
    here = text[problem.span.start : problem.span.end]
    start = max(text.rfind(blank, 0, problem.span.start) for blank in " \t") + 1
    word = re.split(r"[ \t]", text[start:], maxsplit=1)[0]
    if word[:1] in ('"', "'"):
        return "remove the quotes: the kernel splits at blanks and does not know quotes"
    match problem.code:
        case "FC0512":
            return _register(here, machine)
        case "FC0507":
            return _type(here, word, path)
        case "FC0503":
            return _event(here, text)
        case "FC0207" | "FC0104" | "FC0201" if _apart(text, problem.span.start):
            return "write `NAME=FETCH-ARG` as one word, without blanks"
        case "FC0207" if here and re.search(r"\W", here):
            return f"write `{_plain(here)}`"
        case "FC0206" if path is None or ":" in here or here.isidentifier():
            return _place(text, here)
        case "FC0201" if here.startswith("$ret"):
            return "write `$retval`"
        case "FC0201" if here.isidentifier() and path is not None:
            return f"`fetchc compile '{here}' -x {path} -f FUNCTION` finds it in the program"
        case "FC0101" if (found := _UNSIGNED.match(word)) is not None:
            return f"write the sign: `+{found[1]}`"
    return None


def _apart(text: str, at: int) -> bool:
    # NAME = FETCH-ARG, at one of its three words.
    return any(
        found.start() <= at <= found.end() for found in re.finditer(r"\w*[ \t]+=", text)
    ) or (re.search(r"=[ \t]*\Z", text[:at]) is not None)


def _register(here: str, machine: str) -> str | None:
    if ";" in here or "," in here:
        return "separate arguments with blanks"
    name = here.lstrip("%")
    target = architecture(machine)
    if name in target.refused:
        return None
    if name in target.aliases:
        kernel, bits = target.aliases[name]
        return f"write `%{kernel}{'' if bits == 8 * target.word_bytes else f':u{bits}'}`"
    for key in tables_under("arch"):
        other = key.rpartition("/")[2]
        if other != machine and name in architecture(other).named:
            return f"it is one of {other}: `--arch {other}` selects its registers"
    return None


def _type(here: str, word: str, path: str | None) -> str | None:
    followed = _FOLLOWED.match(word)
    if followed is not None and here == followed[3]:
        return f"follow the pointer: `+0({followed[1]}):{followed[2]}`"
    if here.startswith("$arg") and path is not None:
        return f"`fetchc compile '{here}' -x {path} -f FUNCTION` says where it is"
    if here == "$retval":
        return "probe the return: `r` in place of `p`"
    name = here.partition("[")[0]
    plain = kernel_format(name)
    return None if plain is None or plain == here else f"write `{plain}`"


def _event(here: str, text: str) -> str | None:
    found = _PERF_TOOLS.match(text)
    if found is not None:
        return _compiled(found[1], found[2])
    if not here:
        return "name it, or leave the name out: `p PATH:OFFSET`"
    if "," in here:
        return "commas are for the kernel's command line: write blanks"
    plain = _plain(here)
    return f"write `{plain}`" if plain and plain != here else None


def _place(text: str, here: str) -> str | None:
    found = _PERF_TOOLS.match(text)
    if found is not None:
        return _compiled(found[1], found[2])
    path, colon, function = here.rpartition(":")
    if not colon and here.isidentifier():
        # PATH:main: only the text after the colon is marked
        before = text[: text.index(here)].rpartition(" ")[2]
        path, function = before.rstrip(":"), here
    if "/" in path and function.isidentifier():
        return _compiled(path, function)
    return None


def _compiled(path: str, function: str) -> str:
    file = path if "/" in path else "PATH"
    return f"`fetchc compile EXPR --format probe -x {file} -f {function}` writes the line"


def _plain(name: str) -> str:
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII)
    return f"_{plain}" if plain[:1].isdigit() else plain
