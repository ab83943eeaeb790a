"""The probes of a trace: each function with its plans and what each of them is for."""

from __future__ import annotations

from fetchc.cli.tracing.functions import named
from fetchc.cli.tracing.reading import reading
from fetchc.cli.tracing.request import Refused
from fetchc.diag.diagnostic import CompileError, Diagnostic
from fetchc.emit.probe_definition import event_name
from fetchc.record import Record
from fetchc.tracer.event_plan import distinct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from fetchc.api.library import Probe, Program
    from fetchc.cli.options import Options
    from fetchc.cli.tracing.functions import Name
    from fetchc.cli.tracing.request import Request
    from fetchc.tracer.event_plan import Asked
    from fetchc.tracer.events import Plan
    from fetchc.tracer.filter_conditions import Filter

    _Answer = TypeVar("_Answer")

__all__ = ["CALLER", "FRAME", "GOROUTINE", "LeftOut", "Target", "Targets", "collect"]

FRAME = "%sp"
"""The argument that tells one call of a function from others, by where its frame is."""
GOROUTINE = "$goid"
"""Whose stack it is in Go, where stacks move: the frame is told by its distance from their end."""
CALLER = "*(unsigned long *)%sp"
"""Where a function returns to: at its entry the walk of frame pointers leaves that out."""


class Target(Record):
    """A plan and its part: ``hit`` is shown, ``enter`` waits for its ``leave``, which is shown with
    both's values, ``start`` begins the time of ``--since``.

    ``labels`` are the values to show, of an ``enter`` and its ``leave`` together. ``key`` is the
    label of the argument that pairs them, ``pushed`` the bytes by which the stack pointer is more
    at the return. ``stack_end`` is, where the key is a goroutine, the label of the high end of its
    stack.
    """

    role: str
    plan: Plan
    labels: tuple[str, ...]
    filter: Filter | None = None
    measure: str = ""
    sums: tuple[str, ...] = ()
    by: str = ""
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
    """``told`` are warnings about what is probed, each with its expression.

    ``without`` are expressions that functions among the ``chosen`` are traced without.
    ``by_glob`` are the events of functions that a pattern matched and nobody named.
    """

    chosen: tuple[Target, ...]
    left_out: tuple[LeftOut, ...]
    told: tuple[tuple[str, Diagnostic], ...]
    by_glob: frozenset[str] = frozenset()
    without: tuple[LeftOut, ...] = ()


def collect(program: Program, options: Options, request: Request, group: str) -> Targets:
    """Compile what is asked for at every function that is named.

    A function that cannot be probed, or where no expression compiles, is left out; with --strict
    also one where some do not.
    Raises CompileError for globs (FC0755) and for the function of ``--since``.
    """
    collecting = _Collecting(program, options, request, group)
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
    told = tuple(dict.fromkeys(collecting.told))
    if len(collecting.chosen) > 2:
        told = _of_many(told)
    chosen, left_out = tuple(collecting.chosen), tuple(collecting.left_out)
    return Targets(chosen, left_out, told, frozenset(by_glob), tuple(collecting.without))


def _of_many(told: tuple[tuple[str, Diagnostic], ...]) -> tuple[tuple[str, Diagnostic], ...]:
    # Of many functions only that the program can end by it, and that calls are not seen; once each.
    found: list[Diagnostic] = []
    for code in ("FC0621", "FC0609"):
        its = [one for _, one in told if one.code == code]
        if len(its) < 2:
            found += its
            continue
        first = its[0]
        more = f"so it is of {len(its) - 1} more of the probed functions"
        notes = (*first.notes, more)
        found.append(Diagnostic(first.code, first.message, notes=notes, help=first.help))
    return tuple([("", one) for one in found])


class _Collecting:
    def __init__(self, program: Program, options: Options, request: Request, group: str) -> None:
        self._program = program
        self._options = options
        self._request = request
        self._group = group
        self._events: set[str] = set()
        self._taken: set[tuple[str, str, int]] = set()
        self.chosen: list[Target] = []
        self.left_out: list[LeftOut] = []
        self.without: list[LeftOut] = []
        self.told: list[tuple[str, Diagnostic]] = []

    def function(self, name: Name) -> None:
        """Probe the function of that name, or say why not."""
        try:
            self._probed(name.text, self._options.at)
        except CompileError as refused:
            if name.by_glob and refused.diagnostics[0].code == "FC0203":
                listed = [one["address"] for one in self._program.described(name.text)]
                known = [address for address in listed if address is not None]
                for address in known:
                    self._at_address(name.text, f"{address:#x}")
                if known:
                    return
            at = self._options.at or ""
            self.left_out.append(LeftOut(name.text, at, refused.diagnostics))

    def points(self) -> None:
        """Probe what the expressions name themselves (``x @ main.f``), or the address given."""
        if self._options.at is not None:
            self._at_address("", self._options.at)
            return
        by_point: dict[tuple[str, str, int], tuple[Probe, list[str]]] = {}
        for text in self._request.shown:
            try:
                probe, bare = self._program.point(
                    text, self._options.returns, active=self._options.active
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
        self.chosen.append(Target("start", probe.plan((), self._group, self._event(probe)), ()))

    def _at_address(self, name: str, address: str) -> None:
        try:
            self._probed(None, address)
        except CompileError as refused:
            text = "" if name else address  # of a function by its name, nobody writes its address
            self.left_out.append(LeftOut(name, text, refused.diagnostics))

    def _probed(self, name: str | None, at: str | None) -> None:
        latency = self._options.latency
        active = self._options.active
        returns = self._options.returns and not latency
        probe = self._program.probe(name, at, returns, active=None if latency else active)
        if probe.key in self._taken:
            return  # another name of the same code
        self._taken.add(probe.key)
        if latency:
            self._calls(probe, self._program.probe(name, at, True, active=active))
        elif at is None and probe.parameters_stored_later:
            self._hits(self._where_stored(probe, name), self._request.shown)
        else:
            self._hits(probe, self._request.shown)

    def _where_stored(self, entry: Probe, name: str | None) -> Probe:
        # Behind the prologue, if only there all that is asked for can be had.
        texts = (*self._request.shown, *self._request.further)
        try:
            for text in texts:
                entry.asked(text)
        except CompileError as refused:
            try:
                body = self._program.probe(name, "body")
                for text in texts:
                    body.asked(text)
            except CompileError:
                return entry  # which is refused in its own words
            self.told.append(("", _moved(body, refused)))
            return body
        return entry

    def _hits(self, probe: Probe, texts: tuple[str, ...]) -> None:
        try:
            asked, without = self._each(probe, texts, lambda text: _asked(probe, text))
            shown = _once(asked)
            wanted = [*shown, *self._further(probe, shown)]
            caller = self._caller(probe)
            plan = self._plan(probe, [*wanted, *caller])
            counted = reading(self._options, self._request, wanted, (plan,))
        except Refused as refused:
            parts = probe.each()
            if len(parts) > 1 and _unlike(refused):
                for part, _ in parts:
                    self._hits(part, texts)
                return
            self._leave_out(probe, refused)
            return
        labels = tuple([each.label for each in shown])
        self._tell(probe, shown)
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
            placed, without = self._each(
                entry, self._request.shown, lambda text: _placed(first, second, text)
            )
            shown = _once([one for _, one in placed])
            known = [one.label for one in shown]
            for text in self._request.further:
                if text not in known:
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
            asked = reading(self._options, self._request, wanted, tuple(plans))
        except Refused as refused:
            self._leave_out(entry, refused)
            return
        labels = tuple(known)
        self._tell(leave, shown)
        self.without += without
        pushed = 0 if leave.kind == "return-site" else leave.pushed_by_call
        end = stack_end or ""
        self.chosen.append(Target("enter", plans[0], labels, key=key, stack_end=end))
        last = Target(
            "leave", plans[1], labels, *asked, key=key, pushed=pushed, caller=bool(caller),
            stack_end=end,
        )  # fmt: skip
        self.chosen.append(last)

    def _further(self, probe: Probe, shown: list[Asked]) -> list[Asked]:
        known = {one.label for one in shown}
        return [_asked(probe, text) for text in self._request.further if text not in known]

    def _caller(self, probe: Probe) -> list[Asked]:
        if probe.in_kernel:
            return []  # the program's stack begins where it called the kernel
        # Where its frame is not built yet, or taken down: the walk begins with the caller's.
        bare = probe.kind in ("entry", "return-site")
        if not self._options.stack or not bare or not probe.pushed_by_call:
            return []
        return [_asked(probe, CALLER)]

    def _plan(self, probe: Probe, wanted: list[Asked]) -> Plan:
        try:
            return probe.plan(_once(wanted), self._group, self._event(probe))
        except CompileError as refused:
            raise Refused("", refused.diagnostics) from None

    def _event(self, probe: Probe) -> str:
        event = event_name(probe.named_after, self._events)
        self._events.add(event)
        return event

    def _leave_out(self, probe: Probe, refused: Refused) -> None:
        name = "" if probe.function is None else probe.function.name
        self.left_out.append(LeftOut(name, refused.text, refused.diagnostics))

    def _tell(self, probe: Probe, shown: list[Asked]) -> None:
        self.told += [("", each) for each in probe.warnings]
        self.told += [(one.text, each) for one in shown for each in one.warnings]


def _moved(body: Probe, refused: CompileError) -> Diagnostic:
    return Diagnostic(
        "FC0633",
        f"the probe of `{body.named_after}` is set behind the prologue",
        notes=(f"at the entry {refused.diagnostics[0].message}",),
        help="`--at body` says so, `--at +0` stays at the entry",
    )


def _asked(probe: Probe, text: str) -> Asked:
    try:
        return probe.asked(text)
    except CompileError as refused:
        raise Refused(text, refused.diagnostics) from None


def _once(wanted: list[Asked]) -> list[Asked]:
    # Of an entry and its return together: an event has one value of a name.
    try:
        return distinct(wanted)
    except CompileError as refused:
        raise Refused("", refused.diagnostics) from None


def _unlike(refused: Refused) -> bool:
    # One event cannot have all addresses: it is about no part of the expression.
    (first, *_) = refused.diagnostics
    return first.code == "FC0404" and first.primary is None


def _placed(first: Probe, second: Probe, text: str) -> tuple[Probe, Asked]:
    """The argument at the first of two probes that has it."""
    try:
        return first, _asked(first, text)
    except Refused as refused:
        try:
            return second, _asked(second, text)
        except Refused as again:
            # `$retval` is not for entries: then the return's reason is the one to tell.
            only_later = refused.diagnostics[0].code == "FC0410"
            raise (again if only_later else refused) from None


def _pairing(probe: Probe, key: str) -> Asked:
    try:
        return _asked(probe, key)
    except Refused as refused:
        if not probe.in_kernel:
            raise
        what = f"`{probe.named_after}` has no stack pointer here that tells its calls apart"
        note = "`--latency` pairs an entry with its return by that"
        help = "leave `fprobe:` out: `-f " + probe.named_after + "`"
        told = Diagnostic(refused.diagnostics[0].code, what, notes=(note,), help=help)
        raise Refused("", (told,)) from None
