"""A probe point: its description, and the arguments that are compiled for it."""

from __future__ import annotations

from _thread import RLock

from fetchc.api import expect_all, given
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.driver.compile import Compiled, compile_argument, varies
from fetchc.driver.probe_points import PointRequest, find_site
from fetchc.syntax.expression_parser import parse_argument
from fetchc.syntax.tree import VARIABLE_GROUPS
from fetchc.target.kernel_versions import beyond_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.check.probe_site import ProbePoint
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.driver.explain_fetch import Explained
    from fetchc.driver.expression_completion import Candidate
    from fetchc.driver.probe_output import Named
    from fetchc.driver.visible_members import VisibleMember
    from fetchc.driver.visible_variables import ParameterPlace, VisibleVariable
    from fetchc.emit.output_formats import Event, Written
    from fetchc.ir.fetch import Decode
    from fetchc.program import protocol
    from fetchc.program.entities import Function
    from fetchc.syntax import tree
    from fetchc.target.kernel_versions import Kernel
    from fetchc.tracer.event_plan import CheckedArgument
    from fetchc.tracer.events import Plan
    from fetchc.tracer.watch_plan import Watch

__all__ = ["Argument", "Probe"]


class Argument:
    """A compiled argument. ``text`` is what the user wrote, ``probe`` where it is fetched."""

    def __init__(
        self, probe: Probe, text: str, tree: tree.Argument, computes: bool = False
    ) -> None:
        self.text = text
        self.probe = probe
        self._tree = tree
        self._computes = computes
        self._bare: Compiled | None = None
        self._whole: Compiled | None = None
        self._refusal: CompileError | None = None
        try:
            self._bare = self._compile(whole=False)
        except CompileError as refusal:
            # More than one fetch-arg can hold: a definition can fetch it in parts.
            if refusal.reason not in ("several fetch-args", "array count"):
                raise
            self._refusal = refusal
            self._whole = self._compile(whole=True)

    def __repr__(self) -> str:
        fetched = f" = {self.at_one_address}" if self._bare is not None else ", in parts"
        return f"<fetchc.Argument {self.text!r}{fetched} at {self.probe.named_after}>"

    def _compile(self, whole: bool) -> Compiled:
        probe = self.probe
        with probe._lock:
            return compile_argument(
                self._tree, self.text, probe._found, probe._kernel, whole, self._computes
            )

    def at(self, probe: Probe) -> Argument:
        """The same argument, compiled for another address."""
        try:
            return Argument(probe, self.text, self._tree, self._computes)
        except CompileError as refusal:
            from fetchc.driver.source_line_points import at_address

            raise at_address(refusal, probe._found) from refusal

    @property
    def whole(self) -> Compiled:
        """The argument with its companions and members, as a definition fetches it."""
        if self._whole is None:
            self._whole = self._compile(whole=True)
        return self._whole

    @property
    def fetcharg(self) -> str:
        """The bare fetch-arg; raises CompileError where one cannot hold the value.

        Nor does one where the probe has several addresses, each with a place of its own.
        """
        if self._bare is None:
            assert self._refusal is not None
            raise self._refusal
        self._require_fetchargs()
        body = self._bare.parts[0].body
        if self.probe._found.more:
            from fetchc.driver.source_line_points import apart

            found = {argument.at_one_address for _, (argument,) in self.probe.each([self])}
            if len(found) > 1:
                raise apart(self.expression, self._tree.expression.span, found)
        return body

    def _require_fetchargs(self) -> None:
        parts = (self._bare or self.whole).parts
        if any(part.entry for part in parts):
            raise reject(
                "FC0314",
                f"`{self.expression}` walks a container, and a fetch-arg has no loop",
                help="`fetchc trace` and `--format bpf-c` walk it",
            )
        if not all(part.body for part in parts):
            raise varies()

    @property
    def at_one_address(self) -> str:
        """The bare fetch-arg of this address, whatever it is at others of the same probe."""
        return self._bare.parts[0].body if self._bare is not None else ""

    @property
    def expression(self) -> str:
        """The expression without name, format and point, as it was written."""
        span = self._tree.expression.span
        return self.text[span.start : span.end]

    @property
    def name(self) -> str | None:
        """The name the user gave, None where there is none."""
        return self._tree.name

    @property
    def type(self) -> str:
        """The type of the expression, as its language writes it."""
        return (self._bare or self.whole).type

    @property
    def decode(self) -> Decode:
        """What a reader makes of the bare fetch, or of the first part of a whole."""
        return (self._bare or self.whole).parts[0].decode

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What can surprise of the bare fetch: a string that runs on, a place by one source."""
        return (self._bare or self.whole).warnings

    @property
    def kernels(self) -> tuple[tuple[str, str | None], ...]:
        """The versions of Linux that accept it: the first and the last of each range.

        The last one is None where the newest version that fetchc knows accepts it, too.
        """
        from fetchc.driver.check_definitions import accepted_by

        self._require_fetchargs()
        parts = (self._bare or self.whole).parts
        return accepted_by(self.probe._found, [part.fetch for part in parts])


_NOT_HERE = "`{}` cannot be fetched here: "  # a value beside its name needs no such words


class Probe:
    """A probe point of a program, and the rules of the kernel that is to run it."""

    def __init__(
        self, program: protocol.Program, lock: RLock, found: ProbePoint, kernel: Kernel
    ) -> None:
        self._program = program
        self._lock = lock
        self._found = found
        self._kernel = kernel
        self._source: tuple[str | None] | None = None  # read once: a table of lines is long

    def __repr__(self) -> str:
        at = "" if self.in_kernel else f" at {self.address:#x}"
        return f"<fetchc.Probe {self.named_after} ({self.kind}{at})>"

    @property
    def function(self) -> Function | None:
        """The function, None at an address in none."""
        return self._found.site.function

    @property
    def named_after(self) -> str:
        """What an event is called after: the function, the static probe, a line, an address."""
        return self._found.site.named_after

    @property
    def kind(self) -> str:
        """One of ``entry``, ``return``, ``return-site``, ``body``, ``line``, ``inline``,
        ``static`` (a static probe) and ``offset``.

        Of a return-site, a line, an inlined function and a static probe there may be several:
        :meth:`each`.
        """
        return self._found.kind

    @property
    def address(self) -> int:
        """Address of the probed instruction, the first of several, as the file states it."""
        return self._found.site.address

    @property
    def offset(self) -> int:
        """Offset of the probed instruction in the file: what a definition needs.

        In the kernel: from the start of the function, which a definition names.
        """
        site = self._found.site
        if self.in_kernel:
            return site.address - (0 if site.function is None else site.function.address)
        return self._program.file_offset(site.address)

    @property
    def in_memory(self) -> bool:
        """Whether a runtime compiled the code: the address is one of the process, no file has it,
        so that it has no offset and no definition.
        """
        return self._program.in_memory

    @property
    def word_bytes(self) -> int:
        """Bytes of an address of the program."""
        return self._program.word_bytes

    @property
    def in_kernel(self) -> bool:
        """Whether the probe is one of the kernel itself; it has no address then but 0."""
        return self._program.in_kernel

    @property
    def key(self) -> tuple[str, str, int]:
        """What distinguishes the probe from any other of its program."""
        site = self._found.site
        if not self.in_kernel or site.function is None:
            return self.kind, "", self.address
        return self.kind, f"{site.means}:{site.function.symbol}", self.address

    @property
    def pushed_by_call(self) -> int:
        """Bytes by which the stack pointer is less at a function's entry than at its return."""
        return self._found.site.architecture.entry_stack_bytes

    @property
    def goroutine_stack_end(self) -> str | None:
        """The expression of the high end of the goroutine's stack, from which a frame keeps its
        distance when the stack moves; None but at returns of Go, empty where no register has it.

        Source: Go, src/runtime/stack.go (copystack).
        """
        site = self._found.site
        if not site.leaving or site.function is None or not site.language.goroutines:
            return None
        from fetchc.check.goroutine import stack_end

        return stack_end(site)

    @property
    def parameters_stored_later(self) -> bool:
        """Whether it is an entry of a language that promises no convention: what the debug
        information does not place there, it places after the prologue (Rust).
        """
        site = self._found.site
        return site.entry and not site.language.promises_convention

    @property
    def source(self) -> str | None:
        """Where the function is declared (``main.go:17``), None where that is unknown."""
        function = self._found.site.function
        if self._source is None and function is not None:
            with self._lock:
                self._source = (self._program.source_line(function),)
        return None if self._source is None else self._source[0]

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings about the point itself, and the kernel that is to run it."""
        return (*self._found.warnings, *beyond_tables(self._kernel))

    def each(
        self, arguments: Sequence[Argument] = ()
    ) -> tuple[tuple[Probe, tuple[Argument, ...]], ...]:
        """This probe at each of its addresses, with ``arguments`` compiled for that address.

        A Go function's return has several, a source line and an inlined function may have.
        """
        found = self._found.each()
        probes = [Probe(self._program, self._lock, one, self._kernel) for one in found]
        if len(found) == 1:
            return ((self, tuple(arguments)),)
        return tuple([(probe, tuple([one.at(probe) for one in arguments])) for probe in probes])

    def emulated(self) -> Probe:
        """This probe at an instruction that the kernel emulates, where hits take less time.

        Values and hits are the same there, only the address differs. Itself where there is none.
        """
        from fetchc.driver.emulated_points import at_emulated

        with self._lock:
            found = at_emulated(self._found, self._kernel)
        if found is self._found:
            return self
        return Probe(self._program, self._lock, found, self._kernel)

    @property
    def single_stepped(self) -> bool:
        """Whether the kernel executes the probed instruction, the first of a function, in a single
        step, which takes longer than to emulate it; False where that is not known.
        """
        from fetchc.driver.emulated_points import is_single_stepped

        return is_single_stepped(self._found, self._kernel)

    @property
    def next_emulated(self) -> int | None:
        """Offset in the function of the next instruction that the kernel emulates, if one is near.

        Values may be elsewhere there. Raises CompileError FC0905 where there is no disassembler.
        """
        from fetchc.driver.emulated_points import next_emulated

        with self._lock:
            return next_emulated(self._found, self._kernel)

    def variables(self) -> tuple[VisibleVariable, ...]:
        """Every name visible here: its type, its place, its fetch-arg or why there is none."""
        from fetchc.driver.visible_variables import visible

        with self._lock:
            return visible(self._program, self._found, self._kernel)

    def parameters(self) -> tuple[ParameterPlace, ...]:
        """The function's parameters, with the places of their bytes, or why they have none."""
        from fetchc.driver.visible_variables import parameter_places

        with self._lock:
            return parameter_places(self._program, self._found)

    def member(self, text: str) -> VisibleMember:
        """An expression as one of :meth:`members`: its type, its fetch-arg or why there is none.

        Raises CompileError where it cannot be parsed.
        """
        given(text, "an argument", None)
        from fetchc.driver.visible_members import member

        with self._lock:
            return member(self._found, self._kernel, text)

    def members(self, text: str) -> tuple[VisibleMember, ...]:
        """What an expression leads to: members with their offsets, elements, holes.

        Each has its expression, and its fetch-arg or why there is none; empty of a number. Raises
        CompileError where the expression means nothing here.
        """
        given(text, "an argument", None)
        from fetchc.driver.visible_members import members

        with self._lock:
            return members(self._found, self._kernel, text)

    def lines(self) -> tuple[str, tuple[int, ...]]:
        """The source file of the function, and its lines with code of its own.

        Empty where the debug information has none.
        """
        function, found = self.function, None
        with self._lock:
            code_map = self._program.code_map()
            if code_map is not None and function is not None:
                found = code_map.lines_of(function)
        return ("", ()) if found is None else (found[0], tuple(sorted(found[1])))

    def completions(self, text: str) -> list[Candidate]:
        """How an argument that begins with ``text`` can go on; empty where nothing fits."""
        given(text, "an argument", None)
        from fetchc.driver.expression_completion import completions

        with self._lock:
            return completions(self._found, text)

    def asked(self, text: str, follow: int = 0) -> CheckedArgument:
        """Hold one argument against this probe for :meth:`plan`, as a reader wants its value.

        What one fetch-arg cannot hold is no problem here: a structure, a slice. ``follow``: how
        many pointers, one after the other, are shown as what they lead to. Raises CompileError
        where it cannot be fetched.
        """
        given(text, "an argument", None)
        from fetchc.tracer.event_plan import check_argument

        argument = parse_argument(text)
        if argument.point is not None:
            raise reject(
                "FC0206", "the argument names a point of its own", argument.point.span, "not here"
            )
        with self._lock:
            return check_argument(argument, text, self._found, self._kernel, follow)

    def asked_all(self, text: str, follow: int = 0) -> tuple[CheckedArgument, ...]:
        """:meth:`asked`, of each variable that ``$args``, ``$locals`` or ``$results`` stands for.

        One that cannot be fetched here has the reason in place of a value.
        """
        names = self.stands_for(text)
        if names == (text,):
            return (self.asked(text, follow),)
        from fetchc.tracer.event_plan import unavailable

        listed = []
        for name in names:
            try:
                listed.append(self.asked(name, follow))
            except CompileError as refused:
                reason = refused.diagnostics[0].message
                listed.append(unavailable(name, reason.removeprefix(_NOT_HERE.format(name))))
        return tuple(listed)

    def stands_for(self, text: str) -> tuple[str, ...]:
        """The names that ``$args``, ``$locals`` or ``$results`` stands for; of others itself.

        Raises CompileError FC0903 where no debug information has names.
        """
        if text not in VARIABLE_GROUPS:
            return (text,)
        from fetchc.driver.visible_variables import visible

        kinds = VARIABLE_GROUPS[text]
        with self._lock:
            function = self._found.site.function
            # Within unoptimized Go a result with a name is a variable like others.
            named = text == "$locals" and not self.kind.startswith("return")
            kinds += ("result",) if named else ()
            found = visible(self._program, self._found, self._kernel, kinds)
            unnamed = function is not None and self._program.result(function) is not None
        # `.dict` of a generic function is the Go compiler's own: no expression names it.
        names = [
            one.name
            for one in found
            if not one.name.startswith(".")
            and not (named and one.kind == "result" and one.reason is not None)
        ]
        if not names and kinds == ("result",) and unnamed:
            return ("$retval",)
        return tuple(dict.fromkeys(names))

    def plan(
        self,
        wanted: Sequence[str | CheckedArgument],
        group: str,
        event: str | None = None,
        most: int = 0,
    ) -> Plan:
        """The event of the kernel that gives the values of ``wanted`` at this probe.

        ``most``: it is for eBPF programs, which copy so many bytes of a string or slice at most.

        Raises CompileError where one of them cannot be fetched, or all of them are too many.
        """
        from fetchc.tracer.event_plan import CheckedArgument, plan

        expect_all(wanted, (str, CheckedArgument), "expressions")
        listed: list[CheckedArgument] = []
        for one in wanted:
            listed += self.asked_all(one) if isinstance(one, str) else [one]
        with self._lock:
            return plan(self._program, self._found, self._kernel, listed, group, event, most)

    def watch(self, text: str, group: str, event: str) -> Watch:
        """The memory of a variable that is named here, for a watchpoint.

        Raises CompileError, FC0722 where the processor cannot watch it.
        """
        given(text, "a variable", None)
        from fetchc.tracer.watch_plan import watch_of

        with self._lock:
            return watch_of(self._program, self._found, self._kernel, text, group, event)

    def compile(self, text: str, computes: bool = False) -> Argument:
        """Compile one argument; raises CompileError where it has to be refused.

        An argument with a point of its own (``x @ main.f``) is compiled at that. ``computes``: it
        is for a format that computes what operators give (bpftrace, bpf-c), and for no other; a
        container is walked by bpf-c alone.
        """
        given(text, "an argument", None)
        tree = parse_argument(text)
        if tree.point is None:
            return Argument(self, text, tree, computes)
        function = None if tree.point.file is not None else self.function
        name = None if function is None else function.name
        returns = self.kind.startswith("return")
        with self._lock:
            request = PointRequest(name, tree.point, returns, self._kernel)
            found = find_site(self._program, request)
        probe = Probe(self._program, self._lock, found, self._kernel)
        return Argument(probe, text, tree, computes)

    def definition(
        self, arguments: Sequence[Argument], group: str | None = None, event: str | None = None
    ) -> str:
        """What ``uprobe_events`` takes to fetch ``arguments``, companions included.

        One line an address (:meth:`each`), all of one event. Raises CompileError where the
        kernel would refuse or mangle a line, and for an argument of another probe (FC0206).
        """
        self._require_own(arguments)
        for each in arguments:
            each._require_fetchargs()
        if len(places := self.each(arguments)) > 1:
            from fetchc.driver.source_line_points import require_alike

            require_alike([probe.named(argument) for probe, argument in places])
        return "\n".join([probe._line(argument, group, event) for probe, argument in places])

    def _require_own(self, arguments: Sequence[Argument]) -> None:
        expect_all(arguments, Argument, "arguments")
        # Where a value is holds at one point, and what may be written for one kernel.
        for each in arguments:
            other = each.probe
            if other is self or (
                other._program is self._program
                and other.key == self.key
                and other._kernel.name == self._kernel.name
            ):
                continue
            at, kernel = other._found.site.named_after, other._kernel.name
            raise reject(
                "FC0206",
                f"`{each.expression}` was compiled for another point or kernel",
                notes=(f"it holds at `{at}` ({other.kind}), for Linux {kernel}",),
                help="compile it by the probe that it is to be fetched at",
            )

    def _line(self, arguments: Sequence[Argument], group: str | None, event: str | None) -> str:
        from fetchc.driver.probe_output import defined

        fetches = [(each.name, each.part.fetch) for each in self.named(arguments)]
        return defined(self._found.site, fetches, self._kernel, group, event)

    def events(
        self,
        arguments: Sequence[Argument],
        group: str | None = None,
        event: str | None = None,
        conditions: Sequence[Argument] = (),
    ) -> tuple[Event, ...]:
        """What an output format is written from, an event an address.

        A hit is an event where none of the ``conditions`` is 0. Raises CompileError for an argument
        of another probe (FC0206).
        """
        from fetchc.driver.probe_output import event as event_at

        listed = [*arguments, *conditions]
        self._require_own(listed)
        result = []
        for probe, each in self.each(listed):
            names = probe.named(each[: len(arguments)])
            tests = [probe.named([one]) for one in each[len(arguments) :]]
            one = event_at(probe._program, probe._found, names, probe._kernel, group, event, tests)
            result.append(one)
        return tuple(result)

    def written(
        self,
        format: str,
        arguments: Sequence[Argument],
        group: str | None = None,
        event: str | None = None,
        version: str = "",
    ) -> Written:
        """What the tool ``perf`` or ``bpftrace`` takes to fetch ``arguments``; warnings about it.

        ``version`` is that of bpftrace, ``0.27``; empty: the newest that is known. Raises
        CompileError for what the tool cannot carry.
        """
        from fetchc.emit.output_formats import written

        return written(format, self.events(arguments, group, event), version=version)

    def explain(self, text: str) -> Explained:
        """An expression, or a fetch-arg that somebody wrote, hop by hop."""
        given(text, "an argument", None)
        from fetchc.driver.explain_fetch import explain

        with self._lock:
            return explain(text, self._found, self._kernel)

    def named(self, arguments: Sequence[Argument]) -> tuple[Named, ...]:
        """Every fetch-arg of a definition with the name it gets there."""
        from fetchc.driver.probe_output import named

        return named([(each.expression, each.whole) for each in arguments], self._kernel)
