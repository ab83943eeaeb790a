"""What fetchc has to say about an argument, as data."""

from __future__ import annotations

from errno import EACCES, EMFILE, ENFILE, ENOENT, EPERM

from fetchc.record import Record
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, Self

    # What callers branch on. The code of a diagnostic is for people: it may change its meaning.
    Reason = Literal[
        # Values: the kinds of fetchc.program.entities.Absent, and what one fetch-arg holds.
        "no location",
        "vector register",
        "thread-local",
        "in pieces",
        "no address",
        "computed",
        "contradicted",
        "at return",
        "not for this probe",
        "several fetch-args",  # a definition or `trace` can fetch it
        "array count",
        # Limits of the kernel.
        "event too large",
        "fetch-arg too long",
        "mangled",  # a fetch that the kernel takes, and reads wrongly
        "not in definitions",  # of this kernel; an eBPF program fetches it
        "refused program",  # by the verifier
        # Names.
        "unknown name",
        "unknown type",
        "several functions",
        "no length",  # of a type without `len`
        "no debug information",  # of a function, so no name is known in it
        # Probe points.
        "undecodable code",
        "different locations",  # at the addresses of one event
        "program may end",
        "calls not seen",
        "lost by stack growth",
        "may be stale",
        # Files.
        "not an ELF file",
    ]

__all__ = [
    "CompileError",
    "DebugInfoError",
    "Diagnostic",
    "Error",
    "Label",
    "TracerError",
    "cut",
    "reject",
    "shortened",
    "too_costly",
]

LONGEST = 2000  # characters of a message, a note or a help: names of a file can have megabytes
_END = 200  # of them from the end, where a message says what is wrong


class Label(Record):
    """A place in the argument's text and at most eight words about it."""

    span: Span
    text: str


class Diagnostic(Record):
    """One cause, said once.

    ``message`` stands alone: lower case, no full stop, names in back-ticks. ``notes``
    are facts that help to decide, ``help`` is one action that will work, ``origin``
    says where the fact was read (file, section and offset). ``reason`` is what code that
    catches the refusal branches on, where any does.
    """

    code: str
    message: str
    primary: Label | None = None
    secondary: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    origin: str | None = None
    reason: Reason | None = None

    @property
    def span(self) -> Span | None:
        """The characters of the argument that it is about, None where it is about none."""
        return None if self.primary is None else self.primary.span

    @property
    def severity(self) -> str:
        """``warning`` for the FC06 family (right, but it can surprise), else ``error``."""
        return "warning" if self.code.startswith("FC06") else "error"

    def reworded(self, word: Callable[[str], str]) -> Diagnostic:
        """The same diagnostic with ``word`` of each of its strings; its places stay."""
        primary, secondary = self.primary, self.secondary
        return self.replaced(
            message=word(self.message),
            primary=None if primary is None else Label(primary.span, word(primary.text)),
            secondary=tuple([Label(each.span, word(each.text)) for each in secondary]),
            notes=tuple([word(each) for each in self.notes]),
            help=None if self.help is None else word(self.help),
            origin=None if self.origin is None else word(self.origin),
        )

    @property
    def blames_file(self) -> bool:
        """Whether the file cannot be read, and the expression is not to blame.

        A file that cannot be read has no place in an expression; a name that it lacks has one.
        """
        return self.code.startswith("FC09") and self.primary is None


def cut(text: str) -> str:
    """``text`` without its middle where it is longer than anybody reads."""
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - _END]} … {text[-_END:]}"


def shortened(diagnostic: Diagnostic) -> Diagnostic:
    """The same diagnostic, of which each text has a bounded length."""
    labels = [each for each in (diagnostic.primary, *diagnostic.secondary) if each is not None]
    texts = (diagnostic.message, diagnostic.help or "", diagnostic.origin or "", *diagnostic.notes)
    if max(map(len, texts)) <= LONGEST and all(len(each.text) <= LONGEST for each in labels):
        return diagnostic
    return diagnostic.reworded(cut)


# ------------------------------------------------------------------------------
# The exceptions that leave fetchc; anything else that does is a bug.


class Error(Exception):
    """Base of every exception of the library. They can be pickled: pools of processes do that."""


class CompileError(Error):
    """An argument was refused; ``diagnostics`` says why, one for each cause.

    ``text`` is what their places are in where that is no argument: the point ``--at`` or the
    name of a function; else empty.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        diagnostics = tuple([shortened(each) for each in diagnostics])
        super().__init__("; ".join(f"{d.code}: {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics
        self.text = ""

    @property
    def reason(self) -> Reason | None:
        """The reason of its first diagnostic."""
        return self.diagnostics[0].reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.diagnostics,), self.__dict__


_HELP = {
    **dict.fromkeys((EMFILE, ENFILE), "allow more open files: `ulimit -n`"),
    **dict.fromkeys((EACCES, EPERM), "run fetchc as root, or as a user who can read it"),
    ENOENT: "name a file that exists",
}
"""What helps against an error of the kernel."""


class DebugInfoError(Error):
    """A file could not be read: ``path``, ``section`` and ``offset`` say where.

    ``code`` is of the FC09 family. ``section`` is None for the file as a whole;
    ``offset`` counts bytes from the start of the (decompressed) section.
    """

    def __init__(
        self,
        code: str,
        path: str,
        what: str,
        section: str | None = None,
        offset: int | None = None,
        help: str | None = None,
        notes: tuple[str, ...] = (),
        reason: Reason | None = None,
    ) -> None:
        what = cut(what)
        place = path
        if section is not None:
            place += f": {section}"
            if offset is not None:
                place += f"+{offset:#x}"
        super().__init__(f"{place}: {what}")
        self.code = code
        self.path = path
        self.what = what
        self.section = section
        self.offset = offset
        self.help = help
        self.notes = notes
        self.reason = reason

    @classmethod
    def of(cls, path: str, refused: OSError) -> Self:
        """FC0901 of a file that the kernel does not open, read or map."""
        what = f"cannot be read: {refused.strerror or refused}"
        return cls("FC0901", path, what, help=_HELP.get(refused.errno or 0))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.path, self.what, self.section, self.offset), vars(self)

    @property
    def diagnostic(self) -> Diagnostic:
        """The same as data, for the renderers."""
        return Diagnostic(
            self.code, str(self), notes=self.notes, help=self.help, reason=self.reason
        )


class TracerError(Error):
    """The kernel, or a permission, refused; ``diagnostics`` says what and what helps.

    Their codes are of the FC07 family. ``text`` is what their places are in: the definition that
    was refused, or empty.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...], text: str = "") -> None:
        diagnostics = tuple([shortened(each) for each in diagnostics])
        super().__init__("; ".join(f"{d.code}: {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics
        self.text = text

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.diagnostics, self.text), self.__dict__


def reject(
    code: str,
    message: str,
    span: Span | None = None,
    label: str = "",
    *,
    secondary: tuple[Label, ...] = (),
    notes: tuple[str, ...] = (),
    help: str | None = None,
    origin: str | None = None,
    reason: Reason | None = None,
) -> CompileError:
    """An exception with one diagnostic, for ``raise reject(...)``."""
    primary = None if span is None else Label(span, label)
    said = Diagnostic(code, message, primary, secondary, notes, help, origin, reason)
    return CompileError((said,))


def too_costly(path: str, refused: BaseException) -> DebugInfoError:
    """What is said of a question that met a ceiling: Exceeded says which, MemoryError does not."""
    from fetchc.ceilings import HELP

    what = "more memory than there is" if isinstance(refused, MemoryError) else str(refused)
    return DebugInfoError("FC0905", path, f"the answer takes {what}", help=HELP)
