"""The probes of a trace: each function with its plans and what each of them is for."""

from __future__ import annotations

import re

from fetchc.check.locations import without_parts
from fetchc.cli.trace_request import (
    BUILTINS,
    Refused,
    Request,
    copied_bytes,
    located,
    reading,
)
from fetchc.diag.diagnostic import CompileError, Diagnostic, reject
from fetchc.emit.probe_definition import event_name
from fetchc.program.entities import ABSENCES
from fetchc.program.go_symbol_names import without_type_arguments
from fetchc.record import Record
from fetchc.syntax.tree import VARIABLE_GROUPS
from fetchc.target.kernel_versions import BPF, running_version
from fetchc.tracer.event_plan import TOO_LARGE, distinct
from fetchc.tracer.filter_conditions import (
    as_truth,
    comparisons,
    mismatch,
    replaced,
    with_null,
)
from fetchc.tracer.install import PROBED, file_of
from fetchc.tracer.kallsyms import BLACKLIST, SYMBOLS, ambiguous, untraceable
from fetchc.tracer.value_shapes import UnavailableShape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from fetchc.api.library import Program
    from fetchc.api.probe import Probe
    from fetchc.cli.option_table import Options
    from fetchc.tracer.event_plan import CheckedArgument
    from fetchc.tracer.events import Plan
    from fetchc.tracer.filter_conditions import Condition, Filter
    from fetchc.tracer.tracefs import Tracefs

    _Answer = TypeVar("_Answer")

_NAMED = 3  # functions that notes name
_EXACT = re.compile(r"^0x|\+\d")  # names that are a point themselves: f+0, 0x401136
_COUNTER = re.compile(r"%[re]?ip\b|%pc\b")  # what differs from one instruction to the next

__all__ = [
    "CALLER",
    "FRAME",
    "GOROUTINE",
    "MOST",
    "LeftOut",
    "Name",
    "Target",
    "Targets",
    "collect",
    "inlined_copies",
    "named",
    "traceable",
    "whole_names",
    "wider",
]

# ------------------------------------------------------------------------------
# ``-f``: names and globs to the functions to probe.

MOST = 10_000
"""Functions of a session: installed in a few seconds, and a kernel has room for them."""


class Name(Record):
    """A function to probe; ``by_glob``: one among many that a pattern matches."""

    text: str
    by_glob: bool


def named(program: Program, patterns: Iterable[str]) -> list[Name]:
    """The functions that the patterns mean, each once.

    ``*`` and ``?`` are wildcards where no function is called exactly so: ``main.(*server).run``
    is a name. Raises CompileError FC0755 for a glob that matches nothing, and for too many.
    """
    found: dict[str, bool] = {}
    names: set[str] | None = None
    for pattern in patterns:
        if "*" not in pattern and "?" not in pattern:
            found.setdefault(pattern, False)
            continue
        if names is None:
            names = set(program.functions())
        if pattern in names or _method(pattern, names):
            found.setdefault(pattern, False)
            continue
        matching = list(program.functions(pattern))
        if not matching and (_is_go_name(pattern) or _is_overload(program, pattern)):
            matching = [pattern]
            found.setdefault(pattern, False)
        if not matching:
            found_wider = wider(program, pattern)
            raise reject(
                "FC0755",
                f"no function with code matches `{pattern}` in `{program.path}`",
                help=f"list them: `fetchc functions '*part*' -x {program.path}`"
                if found_wider is None
                else whole_names(found_wider),
            )
        for name in without_parts(matching):
            found.setdefault(name, True)
    if len(found) > MOST:
        raise reject(
            "FC0755",
            f"{len(found)} functions match, and one session can trace {MOST}",
            help="narrow it: `-f 'main.*'`",
        )
    return [Name(text, by_glob) for text, by_glob in found.items()]


def wider(program: Program, pattern: str) -> tuple[str, list[str]] | None:
    """A glob of a part of names in place of ``pattern``, and what it matches; None for nothing."""
    # A glob is of whole names, with their package's path or their namespaces.
    tried = [f"*{pattern}", f"*{pattern}*"]
    if "*" in pattern or "?" in pattern:
        del tried[1:]
    found = [(whole, list(program.functions(whole))) for whole in tried]
    whole, names = max(found, key=lambda one: len(one[1]))
    return (whole, names) if names else None


def whole_names(found: tuple[str, list[str]]) -> str:
    """The advice to use what :func:`wider` found."""
    return f"`{found[0]}` matches {len(found[1])}: a glob is of whole names"


def _is_go_name(pattern: str) -> bool:
    # dns.(*Msg).Pack, Stack[*Item].Push: a receiver's star, or a type argument's.
    rest = without_type_arguments(pattern).replace("(*", "(")
    return "*" not in rest and "?" not in rest


def _is_overload(program: Program, pattern: str) -> bool:
    # Type.Method(int*, char*): the stars are of pointers.
    if "(" not in pattern.partition("*")[0].partition("?")[0]:
        return False
    try:
        program.probe(pattern)
    except CompileError:
        return False
    return True


def _method(pattern: str, names: set[str]) -> bool:
    # `(*server).run`, `server.(*conn).run`: the end of a name, star and all.
    return "(*" in pattern and any(
        name.endswith(pattern) and name[-len(pattern) - 1] in "./" for name in names
    )


_NO_FUNCTION = "FC0202"
FRAME = "%sp"
"""The argument that distinguishes one call of a function from others, by where its frame is."""
GOROUTINE = "$goid"
"""Whose stack it is in Go, where stacks move: the distance from their end identifies the frame."""
CALLER = "*(unsigned long *)%sp"
"""Where a function returns to: at its entry the walk of frame pointers leaves that out."""


class Target(Record):
    """A plan and its part: ``hit`` is shown, ``enter`` waits for its ``leave``, which is shown with
    both's values, ``start`` begins the time of ``--since``.

    ``labels`` are the values to show, of an ``enter`` and its ``leave`` together; ``measures`` and
    ``keys`` those of the table. ``key`` is the
    label of the argument that pairs them, ``pushed`` the bytes by which the stack pointer is more
    at the return. ``stack_end`` is, where the key is a goroutine, the label of the high end of its
    stack.
    """

    role: str
    plan: Plan
    labels: tuple[str, ...]
    filter: Filter | None = None
    measures: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    key: str = ""
    pushed: int = 0
    stack_end: str = ""
    caller: bool = False


class LeftOut(Record):
    """A function that is not probed; ``text`` is what it refuses: an expression, a point."""

    function: str
    text: str
    diagnostics: tuple[Diagnostic, ...]


class Targets(Record):
    """``warnings`` are about what is probed, each with its expression.

    ``without`` are expressions that functions among the ``chosen`` are traced without.
    ``by_glob`` are the events of functions that a pattern matched and nobody named. ``notes``, with
    --verbose, say what hits of the probes take. ``defined`` is what definitions have room for,
    where that is less.
    """

    chosen: tuple[Target, ...]
    left_out: tuple[LeftOut, ...]
    warnings: tuple[tuple[str, Diagnostic], ...]
    by_glob: frozenset[str] = frozenset()
    without: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    defined: Targets | None = None


def collect(program: Program, options: Options, request: Request, group: str) -> Targets:
    """Compile what is asked for at every function that is named.

    A function that cannot be probed, or where no expression compiles, is left out; with --strict
    also one where some do not. Raises CompileError for a name, no glob, that means no function.
    Raises CompileError for globs (FC0755) and for the function of ``--since``.
    """
    most = copied_bytes(options)
    found = _collected(program, options, request, group, most)
    too_large = _too_large(found)
    alone = too_large or any(each.plan.ebpf_alone for each in found.chosen)
    copied = copied_bytes(options, alone)
    if copied == most:
        return found
    whole = _collected(program, options, request, group, copied)
    return whole.replaced(defined=found) if too_large and found.chosen else whole


def _too_large(targets: Targets) -> bool:
    # Whether the definitions are too small for the request. A glob leaves out such functions.
    refused = () if targets.by_glob else (*targets.left_out, *targets.without)
    return any(each.reason in TOO_LARGE for one in refused for each in one.diagnostics)


def _collected(
    program: Program, options: Options, request: Request, group: str, most: int
) -> Targets:
    collecting = _Collecting(program, options, request, group, most)
    by_glob: set[str] = set()
    for name in named(program, options.functions):
        first = len(collecting.chosen)
        collecting.function(name)
        if name.by_glob and name.text not in options.functions:
            by_glob.update([each.plan.event for each in collecting.chosen[first:]])
    if not options.functions:
        collecting.points()  # named by the expressions themselves, or by --at
    if options.since is not None and collecting.chosen:
        collecting.start(options.since)
    warnings = tuple(dict.fromkeys(collecting.warnings))
    if len(collecting.chosen) > 2:
        warnings = _of_many(warnings)
    chosen, left_out = tuple(collecting.chosen), tuple(collecting.left_out)
    without, notes = tuple(collecting.without), _notes(collecting.placements)
    return Targets(chosen, left_out, warnings, frozenset(by_glob), without, notes)


def _notes(placements: list[tuple[Probe, Probe]]) -> tuple[str, ...]:
    # Which probes are not at the entry, and which take long; a few of each kind.
    moved: dict[str, str] = {}
    slow: dict[str, str] = {}
    for entry, probe in placements:
        name = f"`{probe.named_after}`"
        if probe is not entry:
            moved[name] = (
                f"the probe of {name} is {probe.address - entry.address} bytes after the entry, "
                "where all values are the same and the kernel emulates the instruction"
            )
        elif probe.single_stepped and name not in slow:
            other = _next_emulated(probe) if len(slow) < _NAMED else None
            what = f"a hit of {name} takes about 15 times as long as at an instruction that the "
            where = f"; `--at +{other:#x}` is one, where values may be elsewhere" if other else ""
            slow[name] = f"{what}kernel emulates{where}"
    return (*_first(moved), *_first(slow))


def _first(notes: dict[str, str]) -> list[str]:
    found = list(notes.values())
    more = len(found) - _NAMED
    return found if more <= 0 else [*found[:_NAMED], f"so it is with {more} more functions"]


def _next_emulated(probe: Probe) -> int | None:
    try:
        return probe.next_emulated
    except CompileError:
        return None  # no disassembler, or bytes that are no code


def _of_many(warnings: tuple[tuple[str, Diagnostic], ...]) -> tuple[tuple[str, Diagnostic], ...]:
    # Of many functions only that the program can end by it, and that calls are not seen; once each.
    found: list[Diagnostic] = []
    for reason in ("program may end", "calls not seen"):
        its = [one for _, one in warnings if one.reason == reason]
        if len(its) < 2:
            found += its
            continue
        first = its[0]
        more = f"so it is of {len(its) - 1} more of the probed functions"
        notes = (*first.notes, more)
        found.append(first.replaced(primary=None, secondary=(), notes=notes, origin=None))
    return tuple([("", one) for one in found])


class _Collecting:
    def __init__(
        self, program: Program, options: Options, request: Request, group: str, most: int
    ) -> None:
        self._program = program
        self._options = options
        self._request = request
        self._group = group
        self._most = most
        # What eBPF programs are for has no limit of definitions.
        self._kernel = f"{running_version()}/{BPF}" if most else None
        self._events: set[str] = set()
        self._taken: set[tuple[str, str, int]] = set()
        self.chosen: list[Target] = []
        self.left_out: list[LeftOut] = []
        self.without: list[LeftOut] = []
        self.warnings: list[tuple[str, Diagnostic]] = []
        self.placements: list[tuple[Probe, Probe]] = []

    def function(self, name: Name) -> None:
        """Probe the function of that name, or say why not."""
        try:
            self._probed(name.text, self._options.at, self._texts(name))
        except CompileError as refused:
            if refused.reason == "several functions" and self._each_of(name):
                return
            if not name.by_glob and refused.diagnostics[0].code == _NO_FUNCTION:
                raise
            at = self._options.at or ""
            self.left_out.append(LeftOut(name.text, at, refused.diagnostics))

    def _each_of(self, name: Name) -> bool:
        # A name means all functions of one declaration, a pattern all that have the name.
        if not name.by_glob:
            offset = (self._options.at or "").startswith("+")  # of one function's code
            symbols = [] if offset else self._program.instances(name.text)
            for symbol in symbols:
                self.function(Name(symbol, False))
            return bool(symbols)
        listed = [one["address"] for one in self._program.described(name.text)]
        addresses = [address for address in listed if address is not None]
        for address in addresses:
            self._at_address(name.text, f"{address:#x}", self._texts(name))
        return bool(addresses)

    def points(self) -> None:
        """Probe what the expressions name themselves (``x @ main.f``), or the address given."""
        if self._options.at is not None:
            self._at_address("", self._options.at, self._request.shown)
            return
        by_point: dict[tuple[str, str, int], tuple[Probe, list[str]]] = {}
        for text in self._request.shown:
            try:
                probe, bare = self._program.point(
                    text, self._options.returns, self._kernel, self._options.active
                )
            except CompileError as refused:
                self.left_out.append(LeftOut("", text, refused.diagnostics))
                continue
            by_point.setdefault(probe.key, (probe, []))[1].append(bare)
        for probe, texts in by_point.values():
            self._hits(probe, tuple(texts))

    def start(self, function: str) -> None:
        """Probe the function from which times count."""
        probe = self._program.probe(function)
        probe = self._emulated(probe, function)
        self.chosen.append(Target("start", probe.plan((), self._group, self._event(probe)), ()))

    def _texts(self, name: Name) -> tuple[str, ...]:
        # A pattern can mean thousands of functions, whose parameters nobody wants to wait for.
        if not self._request.by_default or name.by_glob:
            return self._request.shown
        return ("$results",) if self._options.returns else ("$args",)

    def _at_address(self, name: str, address: str, texts: tuple[str, ...]) -> None:
        try:
            self._probed(None, address, texts)
        except CompileError as refused:
            text = "" if name else address  # of a function by its name, nobody writes its address
            self.left_out.append(LeftOut(name, text, refused.diagnostics))

    def _probed(self, name: str | None, at: str | None, texts: tuple[str, ...]) -> None:
        latency = self._options.latency
        active = self._options.active
        returns = self._options.returns and not latency
        kernel = self._kernel
        probe = self._program.probe(name, at, returns, kernel, None if latency else active)
        if probe.key in self._taken:
            return  # another name of the same code
        self._taken.add(probe.key)
        whole = None if at is not None else name
        if latency:
            leave = self._program.probe(name, at, True, kernel, active)
            self._calls(self._emulated(probe, whole), self._emulated(leave, whole))
            return
        if at is None and probe.parameters_stored_later:
            probe = self._where_stored(probe, name, texts)
        self._hits(self._emulated(probe, whole), texts)

    def _emulated(self, probe: Probe, name: str | None) -> Probe:
        # Where a hit takes the least time, unless an instruction is named or its address asked for.
        # ``name`` is the function's, None where there is a point beside it.
        asked = (*self._request.shown, *self._request.further)
        if self._options.engine == "breakpoint":
            return probe  # no instruction is emulated, or stepped
        if name is None or _EXACT.search(name) or any(map(_COUNTER.search, asked)):
            return probe
        found = probe.emulated()
        if self._options.verbose:
            self.placements.append((probe, found))
        return found

    def _where_stored(self, entry: Probe, name: str | None, texts: tuple[str, ...]) -> Probe:
        # After the prologue, if more of the expressions compile there.
        texts += self._request.further
        refused = _missing(entry, texts)
        if not refused:
            return entry
        try:
            body = self._program.probe(name, "body", kernel=self._kernel)
        except CompileError as without:
            why = without.diagnostics[0]
            stays = f"the probe of `{entry.named_after}` stays at its first instruction"
            known = Diagnostic("FC0606", stays, notes=(why.message,), help=why.help)
            self.warnings.append(("", known))
            return entry  # which is refused in its own words
        if len(_missing(body, texts)) >= len(refused):
            return entry
        self.warnings.append(("", _moved(body, refused[0])))
        return body

    def _hits(self, probe: Probe, texts: tuple[str, ...]) -> None:
        if _have_other_names(probe, texts):
            for part, _ in probe.each():
                self._hits(part, texts)
            return
        try:
            ask = _parameters if self._request.by_default else _asked_all
            asked, without = self._each(
                probe, texts, lambda text: ask(probe, text, self._options.depth)
            )
            shown = _once([one for listed in asked for one in listed])
            request = _resolved(self._request, lambda text: _asked(probe, text))
            wanted = [*shown, *self._further(probe, shown, request)]
            caller = self._caller(probe)
            plan = self._plan(probe, [*wanted, *caller])
            counted = reading(request, wanted, (plan,))
        except Refused as refused:
            parts = probe.each()
            if len(parts) > 1 and _unlike(refused):
                for part, _ in parts:
                    self._hits(part, texts)
                return
            if self._request.by_default and texts and not refused.text:
                self.without.append(LeftOut(probe.named_after, texts[0], refused.diagnostics))
                self._hits(probe, ())  # they are too many for an event
                return
            self._leave_out(probe, refused)
            return
        labels = tuple([each.label for each in shown])
        self._warn(probe, shown)
        self.without += without
        self.chosen.append(Target("hit", plan, labels, *counted, caller=bool(caller)))

    def _each(
        self, probe: Probe, texts: tuple[str, ...], ask: Callable[[str], _Answer]
    ) -> tuple[list[_Answer], list[LeftOut]]:
        # What can be asked for, and what is refused; raises Refused where that is all, or a filter
        # needs it, or with --strict.
        found: list[_Answer] = []
        refusals: list[Refused] = []
        for text in texts:
            try:
                found.append(ask(text))
            except Refused as refused:
                if self._options.strict or text in self._request.further:
                    raise
                refusals.append(refused)
        if refusals and not found:
            raise refusals[0]
        name = probe.named_after
        return found, [LeftOut(name, one.text, one.diagnostics) for one in refusals]

    def _calls(self, entry: Probe, leave: Probe) -> None:
        # What the entry has is taken there, and at the return with --return.
        first, second = (leave, entry) if self._options.returns else (entry, leave)
        try:
            found, without = self._each(
                entry,
                self._request.shown,
                lambda text: _placed_all(entry, first, second, text, self._options.depth),
            )
            placed = [one for listed in found for one in listed]
            shown = _once([one for _, one in placed])
            shown_labels = [one.label for one in shown]
            request = _resolved(self._request, lambda text: _placed(first, second, text)[1])
            for text in request.further:
                if text not in shown_labels:
                    placed.append(_placed(first, second, text))
            stack_end = leave.goroutine_stack_end
            key = FRAME if stack_end is None else GOROUTINE
            pairing = [one for one in dict.fromkeys((key, FRAME, stack_end)) if one]
            both = [(probe, _pairing(probe, one)) for probe in (entry, leave) for one in pairing]
            caller = self._caller(leave)  # whose stack is shown
            plans = [
                self._plan(probe, [one for at, one in [*placed, *both] if at is probe] + behind)
                for probe, behind in ((entry, []), (leave, caller))
            ]
            wanted = [one for _, one in placed]
            asked = reading(request, wanted, tuple(plans))
        except Refused as refused:
            self._leave_out(entry, refused)
            return
        labels = tuple(shown_labels)
        self._warn(leave, shown)
        self.without += without
        pushed = 0 if leave.kind == "return-site" else leave.pushed_by_call
        end = stack_end or ""
        self.chosen.append(Target("enter", plans[0], labels, key=key, stack_end=end))
        last = Target(
            "leave", plans[1], labels, *asked, key=key, pushed=pushed, caller=bool(caller),
            stack_end=end,
        )  # fmt: skip
        self.chosen.append(last)

    def _further(
        self, probe: Probe, shown: list[CheckedArgument], request: Request
    ) -> list[CheckedArgument]:
        shown_labels = {one.label for one in shown}
        return [_asked(probe, text) for text in request.further if text not in shown_labels]

    def _caller(self, probe: Probe) -> list[CheckedArgument]:
        if probe.in_kernel:
            return []  # the program's stack begins where it called the kernel
        # Where its frame is not built yet, or taken down: the walk begins with the caller's.
        bare = probe.kind in ("entry", "return-site")
        if not self._options.stack or not bare or not probe.pushed_by_call:
            return []
        if self._options.stack != "fp":
            from fetchc.tracer.perf_ring import sampled_machines

            if sampled_machines():  # the stack is copied, and walked from the first instruction
                return []
        return [_asked(probe, CALLER)]

    def _plan(self, probe: Probe, wanted: list[CheckedArgument]) -> Plan:
        try:
            return probe.plan(_once(wanted), self._group, self._event(probe), self._most)
        except CompileError as refused:
            raise Refused("", refused.diagnostics) from None

    def _event(self, probe: Probe) -> str:
        event = event_name(probe.named_after, self._events)
        self._events.add(event)
        return event

    def _leave_out(self, probe: Probe, refused: Refused) -> None:
        name = "" if probe.function is None else probe.function.name
        text, diagnostics = located(self._request, refused.text, refused.diagnostics)
        self.left_out.append(LeftOut(name, text, diagnostics))

    def _warn(self, probe: Probe, shown: list[CheckedArgument]) -> None:
        self.warnings += [("", each) for each in probe.warnings]
        once: set[str] = set()  # of what holds for all parameters of the function
        for text, each in [(one.text, each) for one in shown for each in one.warnings]:
            if each.reason != "may be stale" or each.message not in once:
                self.warnings.append((text, each))
            once.add(each.message)


def _missing(probe: Probe, texts: tuple[str, ...]) -> list[str]:
    """Why values of the expressions are nowhere at the probe."""
    found = []
    for text in texts:
        try:
            shapes = [one.shape for one in probe.asked_all(text)]
        except CompileError as refused:
            first = refused.diagnostics[0]
            if first.reason in ABSENCES:
                found.append(first.message)
        else:
            found += [one.reason for one in shapes if isinstance(one, UnavailableShape)]
    return found


def _parameters(probe: Probe, text: str, follow: int) -> tuple[CheckedArgument, ...]:
    # Nobody asked for them: where the file names none, the calls are all there is.
    try:
        return probe.asked_all(text, follow)
    except CompileError:
        return ()


def _moved(body: Probe, why: str) -> Diagnostic:
    return Diagnostic(
        "FC0633",
        f"the probe of `{body.named_after}` is set after the prologue",
        notes=(f"at the entry {why}",),
        help="`--at body` chooses this point, `--at +0` the entry",
    )


def _resolved(request: Request, ask: Callable[[str], CheckedArgument]) -> Request:
    """The request, a comparison with the name of a variable as an expression: ``a == b``.

    What is the name of an enumerator stays a constant.
    """
    if request.filter is None or not any(one.word for one in comparisons(request.filter)):
        return request

    def meant(condition: Condition) -> Condition:
        if not condition.word or condition.expression in BUILTINS:
            return condition
        shape = ask(condition.expression).shape
        if mismatch(with_null(condition, shape), shape) is None:
            return condition
        try:
            whole = as_truth(condition)
            ask(whole.expression)
        except (CompileError, Refused):
            return condition  # which is refused as a constant
        return whole

    filter = replaced(request.filter, meant)
    before = {one.expression for one in comparisons(request.filter)}
    after = [one.expression for one in comparisons(filter)]
    further = [one for one in request.further if one not in before or one in after]
    further += [one for one in after if one not in BUILTINS]
    return request.replaced(further=tuple(dict.fromkeys(further)), filter=filter)


def _asked_all(probe: Probe, text: str, follow: int) -> tuple[CheckedArgument, ...]:
    try:
        return probe.asked_all(text, follow)
    except CompileError as refused:
        raise Refused(text, refused.diagnostics) from None


def _asked(probe: Probe, text: str, follow: int = 0) -> CheckedArgument:
    try:
        return probe.asked(text, follow)
    except CompileError as refused:
        raise Refused(text, refused.diagnostics) from None


def _once(wanted: list[CheckedArgument]) -> list[CheckedArgument]:
    # Of an entry and its return together: an event has one value of a name.
    try:
        return distinct(wanted)
    except CompileError as refused:
        raise Refused("", refused.diagnostics) from None


def _have_other_names(probe: Probe, texts: tuple[str, ...]) -> bool:
    """Whether ``texts`` mean different variables at the addresses of a line with a closure."""
    parts = [part for part, _ in probe.each()]
    if len({None if part.function is None else part.function.name for part in parts}) == 1:
        return False
    for text in texts:
        try:
            probe.asked(text)
        except CompileError:
            return True
    return not VARIABLE_GROUPS.keys().isdisjoint(texts)


def _unlike(refused: Refused) -> bool:
    # One event cannot have all addresses: it is about no part of the expression.
    return refused.diagnostics[0].reason == "different locations"


def _placed_all(
    entry: Probe, first: Probe, second: Probe, text: str, follow: int
) -> list[tuple[Probe, CheckedArgument]]:
    # What `$args` stands for exists at the entry.
    if text in VARIABLE_GROUPS:
        return [(entry, one) for one in _asked_all(entry, text, follow)]
    return [_placed(first, second, text, follow)]


def _placed(
    first: Probe, second: Probe, text: str, follow: int = 0
) -> tuple[Probe, CheckedArgument]:
    """The argument at the first of two probes that has it."""
    try:
        return first, _asked(first, text, follow)
    except Refused as refused:
        try:
            return second, _asked(second, text, follow)
        except Refused as again:
            # `$retval` is not for entries: then the return's reason is the one to tell.
            if refused.diagnostics[0].reason == "at return":
                raise again from None
            # What the entry has no place for has one elsewhere, and `--latency` excludes `--at`.
            at_entry = refused if first.kind == "entry" else again
            cause, *others = at_entry.diagnostics
            if cause.reason != "no location" or cause.help is None:
                raise refused from None
            cause = cause.replaced(help=f"without `--latency`, {cause.help}")
            raise Refused(at_entry.text, (cause, *others)) from None


def _pairing(probe: Probe, key: str) -> CheckedArgument:
    try:
        return _asked(probe, key)
    except Refused as refused:
        if probe.in_kernel:
            what = f"`{probe.named_after}` has no stack pointer here to distinguish its calls"
            note = "`--latency` pairs an entry with its return by that"
            help = "leave `fprobe:` out: `-f " + probe.named_after + "`"
        elif key == GOROUTINE:
            where = "entry" if probe.kind == "entry" else "return"
            what = f"at the {where} of `{probe.named_after}` its goroutine is not known"
            note = "`--latency` pairs an entry with its return by that; " + ", ".join(
                refused.diagnostics[0].notes
            )
            help = "trace one of the two: leave `--latency` out"
        else:
            raise
        diagnostic = Diagnostic(refused.diagnostics[0].code, what, notes=(note,), help=help)
        raise Refused("", (diagnostic,)) from None


# ------------------------------------------------------------------------------
# What of a pattern's functions the running kernel lets be probed: a glob asks for those alone.
#
# A function that was named is another matter: its refusal is the answer.


def inlined_copies(program: Program, name: str) -> int:
    """How many copies of a function others have, where a probe of it sees no call; 0 of none."""
    try:
        return len(program.probe(f"{name}%inline").each())
    except CompileError:
        return 0


def traceable(
    targets: Targets,
    tracefs: Tracefs,
    blacklist: str = BLACKLIST,
    symbols: str = SYMBOLS,
) -> Targets:
    """``targets`` without the kernel's functions that it would refuse, where a glob chose them.

    Both probes of a call are left out together.
    """
    lines = {
        each.plan.definitions[0]: each.plan.function or ""
        for each in targets.chosen
        if each.plan.event in targets.by_glob
        if file_of(each.plan.definitions[0]) != PROBED[0]
    }
    if not lines:
        return targets
    refused: dict[str, Diagnostic] = {}
    for line, diagnostic in ambiguous(lines, symbols).items():
        refused.setdefault(lines[line], diagnostic)
    for line, notes in untraceable(tracefs, lines, blacklist).items():
        what = f"the kernel refuses a probe of `{lines[line]}`"
        refused.setdefault(lines[line], Diagnostic("FC0705", what, notes=notes))
    chosen = tuple(
        [
            each
            for each in targets.chosen
            if each.plan.event not in targets.by_glob or each.plan.function not in refused
        ]
    )
    left_out = tuple([LeftOut(name, "", (why,)) for name, why in refused.items()])
    return targets.replaced(chosen=chosen, left_out=targets.left_out + left_out)
