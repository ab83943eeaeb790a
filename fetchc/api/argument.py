"""An argument that is compiled for a probe point."""

from __future__ import annotations

from fetchc.diag.diagnostic import CompileError
from fetchc.driver.compile import Compiled, compile_argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.api.probe import Probe
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.ir.fetch import Decode
    from fetchc.syntax import tree


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
        body = self._bare.parts[0].body
        if self.probe._found.more:
            from fetchc.driver.source_line_points import apart

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
