"""An assembly inside of a single-file program, by the name that people give it."""

from __future__ import annotations

from fetchc.debuginfo.dotnet.image.bundle import bundle_of
from fetchc.debuginfo.dotnet.program import DotnetProgram
from fetchc.debuginfo.safe_open import is_regular
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata.framework import Process

__all__ = ["open_in_bundle"]

SHOWN = 8  # names of assemblies in a message


def open_in_bundle(
    path: str, references: tuple[str, ...], process: Process | None = None
) -> DotnetProgram | None:
    """The image that ``HOST:NAME`` names; None where no such file is a bundle.

    Raises DebugInfoError FC0901 where it has no such image.
    """
    host, mark, name = path.rpartition(":")
    bundle = bundle_of(host) if mark and is_regular(host) else None
    if bundle is None:
        return None
    entry = bundle.assembly(name)
    if entry is None:
        listed = ", ".join(f"`{one}`" for one in bundle.names()[:SHOWN])
        what = f"it has no assembly `{name}`; it has {listed}"
        raise DebugInfoError("FC0901", host, what)
    return DotnetProgram(host, references, bundle, bundle.image(entry), process)
