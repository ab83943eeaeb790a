"""Probe points where the body of an inlined function begins, in each function that has a copy."""

from __future__ import annotations

from fetchc.check.probe_site import Site
from fetchc.driver.points.statements import code_map
from fetchc.lang import language
from fetchc.target.machines import architecture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.protocol import Program

__all__ = ["inlined_sites"]


def inlined_sites(program: Program, name: str) -> tuple[Site, ...]:
    """The sites of every inlined copy, by address; none where no copy is known.

    The event is called after the copied function.
    """
    machine = architecture(program.architecture)
    lines = code_map(program, None)
    found = {(one.address, one.function.address): one for one in lines.instances(name)}
    return tuple(
        [
            Site(
                program,
                machine,
                language(one.function.language),
                one.function,
                one.address,
                False,
                False,
                instance=one,
                label=one.name,
            )
            for one in found.values()
        ]
    )
