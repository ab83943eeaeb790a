"""What the browser asks about a program, answered with records by the library's own API.

As root the answers come from a process without rights: so a question and its answer are plain data,
and a probe point is named as the options of a command name it.
"""

from __future__ import annotations

from fetchc import CompileError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fetchc import Diagnostic, Member, Probe, Program

__all__ = ["Point", "Questions", "Value"]

_NUMBERS = ("integer", "float", "turned")  # kinds of values that have a histogram


class Point(Record):
    """A place to probe: ``-f FUNCTION``, ``--at AT``, ``--return``.

    ``label`` says what it is; ``reason`` why it cannot be probed, None where it can.
    """

    label: str
    function: str | None
    at: str | None = None
    returns: bool = False
    reason: str | None = None

    @property
    def words(self) -> list[str]:
        """The options of a command that name it."""
        named = [] if self.function is None else ["-f", self.function]
        at = [] if self.at is None else ["--at", self.at]
        return [*named, *at, *["--return"] * self.returns]


class Value(Record):
    """What an expression is at a point.

    ``fetchargs`` have their suffixes, and are empty where it is refused; ``kernels`` are the
    ranges of versions that accept them. ``traced``: ``trace`` shows it, also where one fetch-arg
    cannot hold it. ``counted`` is the option of ``trace`` that counts such values, if one does.
    """

    type: str
    fetchargs: tuple[tuple[str, str], ...]
    kernels: tuple[tuple[str, str | None], ...]
    diagnostics: tuple[Diagnostic, ...]
    traced: bool
    counted: str


class Questions:
    """Answers about one program. ``short`` writes types of C++ as people do."""

    def __init__(self, open: Callable[[], Program], short: Callable[[str], str]) -> None:
        self._open = open
        self._short = short
        self._opened: Program | None = None
        self._probes: dict[Point, Probe] = {}

    @property
    def _program(self) -> Program:
        # Opened by the first question: in the process that answers.
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def functions(self) -> list[str]:
        """Names of all that can be probed, as people write them."""
        return self._program.spelled(self._program.functions())

    def points(self, function: str) -> tuple[Point, ...]:
        """The places in a function to probe; raises CompileError where there are none."""
        entry = Point("entry", function)
        try:
            probe = self._probe(entry)
        except CompileError as refused:
            if refused.reason != "several functions":
                raise
            listed = [one["address"] for one in self._program.described(function)]
            return tuple(
                [Point(f"at {one:#x}", None, f"{one:#x}") for one in listed if isinstance(one, int)]
            )
        if probe.kind != "entry":
            return (Point(probe.kind, function),)
        found = [Point(f"entry   {probe.source or ''}".rstrip(), function)]
        if probe.parameters_stored_later:
            found.append(Point("body    after the prologue", function, "body"))
        found.append(Point("return", function, None, True))
        path, lines = probe.lines()
        file = path.rpartition("/")[2]
        found += [Point(f"line    {file}:{line}", function, f":{line}") for line in lines]
        return tuple(map(self._checked, found))

    def _checked(self, point: Point) -> Point:
        if point.at is not None and point.at[:1] == ":":
            return point  # a function may have hundreds of lines
        try:
            self._probe(point)
        except CompileError as refused:
            return point.replaced(reason=refused.diagnostics[0].message)
        return point

    def _probe(self, point: Point) -> Probe:
        key = point.replaced(label="", reason=None)
        if key not in self._probes:
            probe = self._program.probe(point.function, point.at, point.returns)
            self._probes[key] = probe
        return self._probes[key]

    def variables(self, point: Point) -> tuple[Member, ...]:
        """What is in scope at a point, then what every event has.

        Raises CompileError where the point cannot be probed, or nothing has a name there.
        """
        probe = self._probe(point)
        try:
            variables = probe.variables()
        except CompileError:
            variables = ()
            if not probe.completions("$arg"):
                raise
        found = [probe.member(one.name).replaced(type=one.type) for one in variables]
        names = [one.name for one in found]
        for candidate in probe.completions("$"):
            name = candidate.text
            # Registers by the number of an argument are of use where no argument has a name.
            if name not in names and not (found and name.startswith(("$arg", "$stack"))):
                special = probe.member(name)
                found += [special] if special.reason is None else []
        # A return is probed for the results; what cannot be fetched comes last.
        found.sort(key=lambda one: (one.reason is not None, not one.name.startswith("$ret")))
        return self._shortened(found)

    def members(self, point: Point, expression: str) -> tuple[Member, ...]:
        """What an expression leads to; raises CompileError."""
        return self._shortened(self._probe(point).members(expression))

    def member(self, point: Point, expression: str) -> Member:
        """An expression as one of them; raises CompileError where it cannot be parsed."""
        return self._shortened([self._probe(point).member(expression)])[0]

    def _shortened(self, found: Iterable[Member]) -> tuple[Member, ...]:
        return tuple([one.replaced(type=self._short(one.type)) for one in found])

    def value(self, point: Point, expression: str) -> Value:
        """What an expression is: its fetch-arg, the kernels that take it, warnings; or a refusal.

        Raises CompileError where the point cannot be probed.
        """
        probe = self._probe(point)
        try:
            probe.asked(expression)
            traced = True
        except CompileError:
            traced = False
        try:
            argument = probe.compile(expression)
            parts = argument.whole.parts
            fetchargs = tuple([(part.suffix, part.body) for part in parts])
            if argument.at_one_address:
                fetchargs = (("", argument.at_one_address),)
            decode = argument.decode
            number = decode.kind in _NUMBERS and decode.count is None and argument.at_one_address
            counted = "--histogram" if number else "--count-by"
            warnings = self._worded((*argument.warnings, *probe.warnings))
            kind = self._short(argument.type)
            return Value(kind, fetchargs, argument.kernels, warnings, traced, counted)
        except CompileError as refused:
            counted = "--count-by" if traced else ""
            return Value("", (), (), self._worded(refused.diagnostics), traced, counted)

    def _worded(self, diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        return tuple([one.reworded(self._short) for one in diagnostics])

    def completions(self, point: Point, text: str) -> list[str]:
        """How an expression can go on."""
        return [one.text for one in self._probe(point).completions(text)]

    def answers(self) -> dict[str, Callable[..., object]]:
        """The questions by their names."""
        return {
            "functions": self.functions,
            "points": self.points,
            "variables": self.variables,
            "members": self.members,
            "member": self.member,
            "value": self.value,
            "completions": self.completions,
        }
