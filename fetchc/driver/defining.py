"""The definition of a probe, from what it fetches."""

from __future__ import annotations

import os

from fetchc.diag.diagnostic import CompileError, reject
from fetchc.emit.probe_definition import Probed, definition, event_name, group_name, verify_event
from fetchc.ir.fetch import body
from fetchc.quantities import FileOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.check.probe_site import Site
    from fetchc.ir.fetch import Fetch
    from fetchc.target.kernel_versions import Kernel

__all__ = ["defined"]


def defined(
    site: Site,
    fetches: Sequence[tuple[str, Fetch]],
    kernel: Kernel,
    group: str | None = None,
    event: str | None = None,
) -> str:
    """The line that fetches ``fetches``, each with its name, at ``site``.

    Raises CompileError where the kernel would refuse or mangle the line.
    """
    group = group or group_name(site.program.path)
    event = event or event_name(site.named_after)
    probed = _probed(site)
    problems = verify_event(probed, group, event, fetches, kernel)
    if problems:
        raise CompileError(problems)
    bodies = [(name, body(fetch)) for name, fetch in fetches]
    return definition(probed, group, event, bodies)


def _probed(site: Site) -> Probed:
    kind, program = site.probe_kind, site.program
    if not program.in_kernel:
        counter = None if site.static is None else site.static.semaphore
        reference = None if counter is None else program.file_offset(counter)
        offset = program.file_offset(site.address)
        return Probed(kind, os.path.abspath(program.path), offset, reference, site.active)
    if site.function is None:
        raise reject(
            "FC0206",
            f"a probe of the kernel names its function, and none is known at {site.address:#x}",
        )
    offset = FileOffset(site.address - site.function.address)
    return Probed(kind, site.function.symbol, offset, None, site.active)
