"""What a place that a user names comes to: the instructions to probe."""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Site
    from fetchc.diag.diagnostic import Diagnostic

__all__ = ["Found"]


class Found(Record):
    """A probe site, how it is called in output, and what should be said of it.

    ``kind``: entry, return, return-site, body, line, inline, static, offset. ``more`` are further
    addresses of the same event: a function may have several return instructions, a line several
    beginnings, an inlined function several copies.
    """

    site: Site
    kind: str
    warnings: tuple[Diagnostic, ...]
    more: tuple[Site, ...] = ()

    def each(self) -> tuple[Found, ...]:
        """This for each of its addresses."""
        if not self.more:
            return (self,)
        return tuple([Found(site, self.kind, self.warnings) for site in (self.site, *self.more)])
