"""What became of one expression of a question."""

from __future__ import annotations

from fetchc.diag.diagnostic import CompileError, DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.api.library import Program
    from fetchc.api.probe import Argument, Probe
    from fetchc.diag.diagnostic import Diagnostic

__all__ = ["Outcome", "by_probe", "outcome"]


class Outcome:
    """One expression: its argument, or why it was refused."""

    __slots__ = ("argument", "refused", "text", "whole")

    def __init__(self, text: str, whole: bool) -> None:
        self.text = text
        self.whole = whole
        self.argument: Argument | None = None
        self.refused: tuple[Diagnostic, ...] = ()

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything to say about the expression."""
        if self.argument is None:
            return self.refused
        return self.argument.whole.warnings if self.whole else self.argument.warnings


def outcome(
    program: Program,
    shared: Probe | None,
    text: str,
    kernel: str,
    whole: bool,
    returns: bool,
    active: int | None = None,
) -> Outcome:
    """Compile ``text`` at the probe ``shared``, or at the point that it names itself.

    ``whole`` asks for companions and members. A refusal is an outcome, too.
    """
    result = Outcome(text, whole)
    try:
        argument = program.argument(text, shared, kernel, returns, active)
        if whole:
            argument.whole  # noqa: B018 - compiled now, so that a refusal is seen now
        else:
            argument.fetcharg  # noqa: B018 - as above
        result.argument = argument
    except CompileError as refusal:
        result.refused = refusal.diagnostics
    except DebugInfoError as unreadable:
        result.refused = (unreadable.diagnostic,)
    return result


def by_probe(outcomes: list[Outcome]) -> list[tuple[Probe, list[Argument]]]:
    """The compiled arguments, gathered by the point they are fetched at."""
    groups: dict[tuple[str, str, int], tuple[Probe, list[Argument]]] = {}
    for each in outcomes:
        if each.argument is not None:
            probe = each.argument.probe
            groups.setdefault(probe.key, (probe, []))[1].append(each.argument)
    return list(groups.values())
