"""The exceptions that leave fetchc; anything else that does is a bug."""

from __future__ import annotations

from fetchc.diag.model import Diagnostic, Label, cut, shortened
from fetchc.source import Span

__all__ = ["CompileError", "DebugInfoError", "Error", "TracerError", "reject", "too_costly"]


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

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.diagnostics,), self.__dict__


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

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.path, self.what, self.section, self.offset), vars(self)

    @property
    def diagnostic(self) -> Diagnostic:
        """The same as data, for the renderers."""
        return Diagnostic(self.code, str(self), notes=self.notes, help=self.help)


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
) -> CompileError:
    """An exception with one diagnostic, for ``raise reject(...)``."""
    primary = None if span is None else Label(span, label)
    return CompileError((Diagnostic(code, message, primary, secondary, notes, help, origin),))


def too_costly(path: str, refused: BaseException) -> DebugInfoError:
    """What is said of a question that met a ceiling: Exceeded says which, MemoryError does not."""
    from fetchc.ceilings import HELP

    what = "more memory than there is" if isinstance(refused, MemoryError) else str(refused)
    return DebugInfoError("FC0905", path, f"to answer this takes {what}", help=HELP)
