"""A question: expressions at one probe point, and what becomes of each."""

from __future__ import annotations

from fetchc.diag.diagnostic import CompileError, DebugInfoError, Diagnostic
from fetchc.record import Record
from fetchc.syntax.tree import VARIABLE_GROUPS
from fetchc.target.kernel_versions import running_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.api.library import Program
    from fetchc.api.probe import Argument, Probe

__all__ = ["Outcome", "Question", "by_probe"]


class Outcome:
    """One expression: its argument, or why it was refused."""

    __slots__ = ("argument", "refused", "text", "warnings", "whole")

    def __init__(self, text: str, whole: bool) -> None:
        self.text = text
        self.whole = whole
        self.argument: Argument | None = None
        self.refused: tuple[Diagnostic, ...] = ()
        self.warnings: tuple[Diagnostic, ...] = ()  # of what has no argument of its own

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything to say about the expression."""
        if self.argument is None:
            return self.refused + self.warnings
        return self.argument.whole.warnings if self.whole else self.argument.warnings


class Question(Record):
    """Expressions at one probe point, as ``compile`` and a line of a batch ask for them.

    ``whole`` asks for companions and members, as definitions have them; ``computes`` is for a
    format whose tool computes what operators give. ``id`` comes back as it was.
    """

    binary: str
    expressions: tuple[str, ...]
    function: str | None = None
    at: str | None = None
    returns: bool = False
    kernel: str = "running"  # a version, or `running` for that of this machine
    references: tuple[str, ...] = ()
    debug_file: str | None = None
    debug_dirs: tuple[str, ...] = ()
    id: str | int | None = None
    active: int | None = None
    whole: bool = True
    computes: bool = False

    @property
    def opening(self) -> tuple[str, tuple[str, ...], str | None, tuple[str, ...]]:
        """What :class:`~fetchc.api.library.Program` takes."""
        return self.binary, self.references, self.debug_file, self.debug_dirs

    @property
    def version(self) -> str:
        """The kernel whose rules hold."""
        return running_version() if self.kernel == "running" else self.kernel

    def probe(self, program: Program) -> Probe | None:
        """The probe point of all expressions; None where each names its own."""
        if self.function is None and self.at is None:
            return None
        return program.probe(self.function, self.at, self.returns, self.version, self.active)

    def outcomes(self, program: Program, probe: Probe | None) -> list[Outcome]:
        """What becomes of each expression, at ``probe`` or at the point that it names itself.

        A refusal is an outcome, too. ``$args`` has one of each parameter that can be fetched.
        """
        found = []
        for text in self.expressions:
            if probe is not None and text in VARIABLE_GROUPS:
                found += self._each(program, probe, text)
            else:
                found.append(self._outcome(program, probe, text))
        return found

    def _outcome(self, program: Program, probe: Probe | None, text: str) -> Outcome:
        one = Outcome(text, self.whole)
        try:
            if probe is None:
                argument = program.argument(
                    text, self.returns, self.version, self.active, self.computes
                )
            else:
                argument = probe.compile(text, self.computes)
            if self.whole:
                argument.whole  # noqa: B018 - compiled now, so that a refusal is seen now
            else:
                argument.fetcharg  # noqa: B018 - as above
            one.argument = argument
        except CompileError as refusal:
            one.refused = refusal.diagnostics
        except DebugInfoError as unreadable:
            one.refused = (unreadable.diagnostic,)
        return one

    def _each(self, program: Program, probe: Probe, text: str) -> list[Outcome]:
        whole = Outcome(text, self.whole)
        try:
            each = [self._outcome(program, probe, name) for name in probe.stands_for(text)]
        except CompileError as refusal:
            whole.refused = refusal.diagnostics
            return [whole]
        found = [one for one in each if one.argument is not None]
        refused = {one.text: one.refused[0] for one in each if one.argument is None}
        if not each:
            what = f"`{probe.named_after}` has nothing here that `{text}` stands for"
            whole.refused = (Diagnostic("FC0201", what, help="name an expression"),)
        elif refused:
            listed = ", ".join([f"`{name}`" for name in refused])
            why = tuple(dict.fromkeys([one.message for one in refused.values()]))
            help = f"`fetchc trace '{text}'` shows more than one fetch-arg can hold"
            code = "FC0605" if found else "FC0401"
            left = (Diagnostic(code, f"`{text}` leaves out {listed}", notes=why, help=help),)
            whole.refused, whole.warnings = ((), left) if found else (left, ())
        return [*found, whole] if whole.diagnostics else found


def by_probe(outcomes: list[Outcome]) -> list[tuple[Probe, list[Argument]]]:
    """The compiled arguments, gathered by the point they are fetched at."""
    groups: dict[tuple[str, str, int], tuple[Probe, list[Argument]]] = {}
    for each in outcomes:
        if each.argument is not None:
            probe = each.argument.probe
            groups.setdefault(probe.key, (probe, []))[1].append(each.argument)
    return list(groups.values())
