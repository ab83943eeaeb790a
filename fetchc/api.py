"""The library's face: open a file, take a probe point, compile expressions.

Reading is lazy and nothing global is kept. A Program and what comes of it may be used from
several threads: one lock a Program lets one of them read at a time.
"""

from __future__ import annotations

from _thread import RLock  # threading itself is dear to import

from fetchc.debuginfo.open import open_binary
from fetchc.diag.errors import CompileError, reject
from fetchc.driver.compile import Compiled, compile_argument
from fetchc.driver.sites import find_site
from fetchc.syntax.parse import parse_argument, parse_point
from fetchc.target.kernel import kernel as kernel_rules
from fetchc.target.kernel import running_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from fetchc.diag.model import Diagnostic
    from fetchc.driver.explaining import Explained
    from fetchc.driver.layout import Layout
    from fetchc.driver.naming import Named
    from fetchc.driver.offsets import Offset
    from fetchc.driver.sites import Found
    from fetchc.driver.variables import Shown
    from fetchc.emit.formats import Event, Written
    from fetchc.ir.decode import Decode
    from fetchc.program import protocol
    from fetchc.program.model import Function
    from fetchc.syntax import tree
    from fetchc.target.kernel import Kernel
    from fetchc.tracer.model import Event as TracedEvent
    from fetchc.tracer.model import Plan
    from fetchc.tracer.planning import Asked

__all__ = ["Argument", "Probe", "Program", "Tracing", "open", "tracing"]


def open(path: str, references: Sequence[str] = ()) -> Program:
    """Open the file at ``path``: ELF, or an image of .NET.

    ``references`` are folders of assemblies that an image refers to. Raises DebugInfoError when it
    cannot be read or is neither.
    """
    return Program(path, references)


def tracing(buffer_kib: int | None = None) -> Tracing:
    """A tracing session, to be used by ``with``; needs privilege, and cleans up after itself.

    ``buffer_kib`` is the size of the kernel's buffer for each processor.
    """
    return Tracing(buffer_kib)


class Program:
    """One file: an executable or a shared library, with or without debug information."""

    def __init__(self, path: str, references: Sequence[str] = ()) -> None:
        self._program: protocol.Program = open_binary(path, tuple(references))
        self._lock = RLock()
        self._kernels: dict[str, Kernel] = {}  # of thousands of probes all have the same

    def _rules(self, version: str | None) -> Kernel:
        wanted = version or running_version()
        if wanted not in self._kernels:
            self._kernels[wanted] = kernel_rules(wanted)
        return self._kernels[wanted]

    @property
    def path(self) -> str:
        """The file, as it was given."""
        return self._program.path

    @property
    def build_id(self) -> str | None:
        """The build-id in lower-case hexadecimal, None where the file has none."""
        return self._program.build_id

    @property
    def architecture(self) -> str:
        """The machine: ``x86_64``, ``aarch64``, ..."""
        return self._program.architecture

    def functions(self, glob: str = "*") -> Iterator[str]:
        """Names of functions with code and of static probes that match ``glob``, sorted."""
        from fetchc.driver.listing import matching, probeable

        with self._lock:
            names = matching(probeable(self._program), glob)
        yield from names

    def types(self, glob: str = "*") -> Iterator[str]:
        """Names of the types that match ``glob``, sorted."""
        from fetchc.driver.listing import matching

        with self._lock:
            names = matching(self._program.type_names(), glob)
        yield from names

    def layouts(self, glob: str) -> list[Layout]:
        """The layouts of the types whose names match ``glob``, by name."""
        from fetchc.driver.listing import layouts

        with self._lock:
            return layouts(self._program, glob)

    def offsets(self, text: str) -> tuple[Offset, ...]:
        """Where ``TYPE.FIELD`` is in its type; of a ``TYPE`` itself and all its members.

        Raises CompileError where there is none, or several that differ.
        """
        from fetchc.driver.offsets import offsets

        with self._lock:
            return offsets(self._program, text)

    def described(self, name: str) -> list[dict[str, object]]:
        """Every function of exactly this name: name, address, signature, source line."""
        from fetchc.driver.listing import described

        with self._lock:
            return described(self._program, name)

    def probe(
        self,
        function: str | None = None,
        at: str | None = None,
        returns: bool = False,
        kernel: str | None = None,
    ) -> Probe:
        """A probe point: a function's entry, ``at="+0x10"`` bytes into it, or its return.

        ``kernel`` is the version whose rules hold: the running one's by default. Raises
        CompileError where the point cannot be found or probed.
        """
        rules = self._rules(kernel)
        point = None if at is None else parse_point(at)
        with self._lock:
            found = find_site(self._program, function, point, returns)
        return Probe(self._program, self._lock, found, rules)

    def point(
        self, text: str, returns: bool = False, kernel: str | None = None
    ) -> tuple[Probe, str]:
        """The probe that an argument names itself (``x @ main.f``), and the argument without it."""
        tree = parse_argument(text)
        rules = self._rules(kernel)
        with self._lock:
            found = find_site(self._program, None, tree.point, returns)
        end = (tree.format or tree.expression).span.end
        return Probe(self._program, self._lock, found, rules), text[:end]

    def argument(
        self,
        text: str,
        probe: Probe | None = None,
        kernel: str | None = None,
        returns: bool = False,
    ) -> Argument:
        """Compile an argument at ``probe``, or at the point that it names itself."""
        if probe is not None:
            return probe.compile(text)
        tree = parse_argument(text)
        rules = self._rules(kernel)
        with self._lock:
            found = find_site(self._program, None, tree.point, returns)
        return Argument(Probe(self._program, self._lock, found, rules), text, tree)


class Probe:
    """A probe point of a program, and the rules of the kernel that is to run it."""

    def __init__(
        self, program: protocol.Program, lock: RLock, found: Found, kernel: Kernel
    ) -> None:
        self._program = program
        self._lock = lock
        self._found = found
        self._kernel = kernel
        self._source: tuple[str | None] | None = None  # read once: a table of lines is long

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
    def in_kernel(self) -> bool:
        """Whether the probe is one of the kernel itself; it has no address then but 0."""
        return self._program.in_kernel

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells the probe from any other of its program."""
        function = self._found.site.function if self.in_kernel else None
        return self.kind, "" if function is None else function.symbol, self.address

    @property
    def pushed_by_call(self) -> int:
        """Bytes by which the stack pointer is less at a function's entry than at its return."""
        return self._found.site.architecture.entry_stack_bytes

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
        """What should be known of the point itself."""
        return self._found.warnings

    def each(
        self, arguments: Sequence[Argument] = ()
    ) -> tuple[tuple[Probe, tuple[Argument, ...]], ...]:
        """This probe at each of its addresses, with ``arguments`` compiled for that address.

        A Go function's return has several, a source line and an inlined function may have: they
        make one event, a definition an address.
        """
        found = self._found.each()
        probes = [Probe(self._program, self._lock, one, self._kernel) for one in found]
        if len(found) == 1:
            return ((self, tuple(arguments)),)
        return tuple([(probe, tuple([one.at(probe) for one in arguments])) for probe in probes])

    def variables(self) -> tuple[Shown, ...]:
        """Every name visible here: its type, its place, its fetch-arg or why there is none."""
        from fetchc.driver.variables import visible

        with self._lock:
            return visible(self._program, self._found, self._kernel)

    def asked(self, text: str) -> Asked:
        """Hold one argument against this probe for :meth:`plan`, as a reader wants its value.

        What one fetch-arg cannot hold is no problem here: a structure, a slice. Raises
        CompileError where it cannot be had.
        """
        from fetchc.tracer.planning import asked

        argument = parse_argument(text)
        if argument.point is not None:
            raise reject(
                "FC0206", "the argument names a point of its own", argument.point.span, "not here"
            )
        with self._lock:
            return asked(argument, text, self._found, self._kernel)

    def plan(self, wanted: Sequence[str | Asked], group: str, event: str | None = None) -> Plan:
        """The event of the kernel that gives the values of ``wanted`` at this probe.

        Raises CompileError where one of them cannot be had, or all of them are too much.
        """
        from fetchc.tracer.planning import plan

        listed = [self.asked(one) if isinstance(one, str) else one for one in wanted]
        with self._lock:
            return plan(self._program, self._found, self._kernel, listed, group, event)

    def compile(self, text: str) -> Argument:
        """Compile one argument; raises CompileError where it has to be refused.

        An argument with a point of its own (``x @ main.f``) is compiled at that.
        """
        tree = parse_argument(text)
        if tree.point is None:
            return Argument(self, text, tree)
        name = None if self.function is None else self.function.name
        with self._lock:
            found = find_site(self._program, name, tree.point, self.kind.startswith("return"))
        return Argument(Probe(self._program, self._lock, found, self._kernel), text, tree)

    def definition(
        self, arguments: Sequence[Argument], group: str | None = None, event: str | None = None
    ) -> str:
        """What ``uprobe_events`` takes to fetch ``arguments``, companions included.

        One line an address (:meth:`each`), all of one event. Raises CompileError where the
        kernel would refuse or mangle a line.
        """
        lines = [probe._line(made, group, event) for probe, made in self.each(arguments)]
        return "\n".join(lines)

    def _line(self, arguments: Sequence[Argument], group: str | None, event: str | None) -> str:
        from fetchc.driver.defining import defined

        fetches = [(each.name, each.part.fetch) for each in self.named(arguments)]
        return defined(self._found.site, fetches, self._kernel, group, event)

    def events(
        self, arguments: Sequence[Argument], group: str | None = None, event: str | None = None
    ) -> tuple[Event, ...]:
        """What an output format is written from, an event an address."""
        from fetchc.driver.backends import event as event_at

        result = []
        for probe, made in self.each(arguments):
            names = probe.named(made)
            one = event_at(probe._program, probe._found, names, probe._kernel, group, event)
            result.append(one)
        return tuple(result)

    def written(
        self,
        format: str,
        arguments: Sequence[Argument],
        group: str | None = None,
        event: str | None = None,
    ) -> Written:
        """What the tool ``perf`` or ``bpftrace`` takes to fetch ``arguments``; warnings about it.

        Raises CompileError for what the tool cannot carry.
        """
        from fetchc.emit.formats import written

        return written(format, self.events(arguments, group, event))

    def explain(self, text: str) -> Explained:
        """An expression, or a fetch-arg that somebody wrote, hop by hop."""
        from fetchc.driver.explaining import explain

        with self._lock:
            return explain(text, self._found, self._kernel)

    def named(self, arguments: Sequence[Argument]) -> tuple[Named, ...]:
        """Every fetch-arg of a definition with the name it gets there."""
        from fetchc.driver.naming import named

        return named([(each.expression, each.whole) for each in arguments], self._kernel)


class Argument:
    """A compiled argument. ``text`` is what the user wrote, ``probe`` where it is fetched."""

    def __init__(self, probe: Probe, text: str, tree: tree.Argument) -> None:
        self.text = text
        self.probe = probe
        self._tree = tree
        self._bare: Compiled | None = None
        self._whole: Compiled | None = None
        self._refusal: CompileError | None = None
        try:
            self._bare = self._compile(whole=False)
        except CompileError as refusal:
            # More than one fetch-arg can hold: a definition can fetch it in parts.
            if refusal.diagnostics[0].code not in ("FC0312", "FC0505"):
                raise
            self._refusal = refusal
            self._whole = self._compile(whole=True)

    def _compile(self, whole: bool) -> Compiled:
        probe = self.probe
        with probe._lock:
            return compile_argument(self._tree, self.text, probe._found, probe._kernel, whole)

    def at(self, probe: Probe) -> Argument:
        """The same argument, compiled for another address."""
        try:
            return Argument(probe, self.text, self._tree)
        except CompileError as refusal:
            from fetchc.driver.several import at_address

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
        body = self._bare.parts[0].body
        if self.probe._found.more:
            from fetchc.driver.several import apart

            found = {argument.at_one_address for _, (argument,) in self.probe.each([self])}
            if len(found) > 1:
                raise apart(self.expression, self._tree.expression.span, found)
        return body

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
        """What can surprise of the bare fetch: a text that runs on, a place by one source."""
        return (self._bare or self.whole).warnings


class Tracing:
    """Probes on the live kernel, and the events of every process that hits them.

    Entering raises TracerError where the kernel or a permission refuses.
    """

    def __init__(self, buffer_kib: int | None = None) -> None:
        from fetchc.tracer.session import Session

        self._session = Session(buffer_kib)
        self._named: set[str] = set()
        self._started = False

    def __enter__(self) -> Tracing:
        self._session.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.__exit__(kind, error, trace)

    def add(self, probe: Probe, expressions: Sequence[str] = ()) -> Plan:
        """Trace ``probe``, with the values of ``expressions``; returns what its events bear.

        Raises CompileError where an expression has to be refused.
        """
        plan = probe.plan(expressions, self._session.group)
        stem, number = plan.event, 1
        while plan.event in self._named:
            number += 1
            plan = probe.plan(expressions, self._session.group, f"{stem}_{number}")
        self._session.add(plan)
        self._named.add(plan.event)
        return plan

    def only(self, *pids: int) -> None:
        """Trace these processes and the children they will have, no others."""
        self._session.only(pids)

    def start(self) -> None:
        """Switch the probes on; :meth:`events` does so as well."""
        if not self._started:
            self._started = True
            self._session.start()

    def stop(self) -> None:
        """Switch the probes off; :meth:`events` ends when what happened until now is read."""
        self._session.stop()

    def events(self, timeout: float | None = None) -> Iterator[TracedEvent]:
        """The events as they happen, in the order of time, with their values in ``args``.

        Ends after :meth:`stop`, or ``timeout`` seconds after the call.
        """
        self.start()
        return self._session.events(timeout)

    @property
    def lost(self) -> int:
        """Events that found the kernel's buffers full, so far."""
        return self._session.lost

    def warnings(self) -> tuple[Diagnostic, ...]:
        """What should be known and was not told before: a traced file that was replaced."""
        return self._session.warnings()
