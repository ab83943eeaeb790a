"""Static probes (USDT) as probe points: ``provider:name``."""

from __future__ import annotations

from fetchc.check.probe_site import ProbePoint, Site
from fetchc.check.special_names import arguments
from fetchc.diag.diagnostic import reject
from fetchc.lang import language_at
from fetchc.target.machines import architecture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import StaticProbe
    from fetchc.program.protocol import Program
    from fetchc.syntax.tree import Point

__all__ = ["described", "static_site"]

SHOWN = 12  # names that a message lists


def described(program: Program, name: str) -> list[dict[str, object]]:
    """Every place of the static probe of exactly that name, with the types of its arguments."""
    return [
        {
            "name": probe.whole_name,
            "address": int(probe.address),
            "signature": f"{probe.whole_name}({', '.join(arguments(probe))})",
            "source": None,
        }
        for probe in program.elf.static_probes()
        if probe.whole_name == name
    ]


def static_site(
    program: Program, name: str, point: Point | None, returns: bool
) -> ProbePoint | None:
    """All places of a static probe as one event; None where ``name`` means none.

    A glob means the one probe that it matches. Raises CompileError FC0203 where it matches
    several, FC0206 for a point in it, FC0202 for another probe of a provider that there is.
    """
    every = program.elf.static_probes()
    found = _named(every, name)
    if not found:
        # A namespace of C++ may be called as the provider is: `ns::run` is a function.
        provider, _, rest = name.partition(":")
        if not rest.startswith(":") and any(probe.provider == provider for probe in every):
            raise _unknown(program, name)
        return None
    here = None if point is None else point.span
    offset = point is not None and (point.offset is not None or point.address is not None)
    if returns or offset:
        raise reject(
            "FC0206",
            f"`{name}` is a static probe: it has its own places and no return",
            here,
            notes=tuple(f"it is at {probe.address:#x}" for probe in found[:SHOWN]),
            help="name it alone: `-f " + found[0].whole_name + "`",
        )
    sites = [_site(program, probe) for probe in found]
    return ProbePoint(sites[0], "static", (), tuple(sites[1:]))


def _named(every: Sequence[StaticProbe], name: str) -> list[StaticProbe]:
    found = [probe for probe in every if probe.whole_name == name]
    if found or not ("*" in name or "?" in name):
        return found
    from fetchc.driver.listings import matching

    names = matching([probe.whole_name for probe in every], name)
    if len(names) > 1:
        raise reject(
            "FC0203",
            f"{len(names)} static probes can be meant by `{name}`",
            notes=tuple(f"`{one}`" for one in names[:SHOWN]),
            help=f"use a full name: `{names[0]}`",
            reason="several functions",
        )
    return [probe for probe in every if probe.whole_name in names]


def _site(program: Program, probe: StaticProbe) -> Site:
    if not program.code(probe.address, 1):
        raise reject(
            "FC0206",
            f"the note of `{probe.whole_name}` says {probe.address:#x}, where there is no code",
            help="look at it: `readelf --notes FILE`",
        )
    function = program.function_at(probe.address)
    rules = language_at(function)
    machine = architecture(program.architecture)
    return Site(
        program, machine, rules, function, probe.address, False, False,
        label=probe.name, static=probe,
    )  # fmt: skip


def _unknown(program: Program, name: str) -> CompileError:
    from fetchc.driver.listings import static_names
    from fetchc.driver.unknown_functions import alike

    close = alike(name, static_names(program))
    return reject(
        "FC0202",
        f"`{program.path}` has no static probe `{name}`",
        notes=(f"names like it: {', '.join(f'`{one}`' for one in close)}",) if close else (),
        help=f"did you mean `{close[0]}`?"
        if close
        else f"list them: `fetchc functions '{name.partition(':')[0]}:*' -x BINARY`",
    )
