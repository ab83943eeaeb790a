"""Plans whose records look alike become probes of one event of the kernel.

Disabling an event waits for all processors: 50 ms each on Linux 6.18, 51 s for 1,000 of them. From
5.4 on one event can have any number of probes, when the names and types of their arguments are
equal (10,000 of one event are disabled in 0.07 s). An argument of its own, a constant, then
says whose a record is. Probes of other events (``e``) have one each: 7.3 refuses a second.
"""

from __future__ import annotations

import os
import re

from fetchc.record import Record
from fetchc.tracer.kernel.install import file_of
from fetchc.tracer.model import WHICH, Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fetchc.target.kernel_versions import Kernel

    Signature = tuple[tuple[str, str], ...]

__all__ = ["Shared", "shared"]

_TYPE = re.compile(
    r"(?:[usx](?P<plain>\d+)|b\d+@\d+/(?P<container>\d+)|\w*)(?:\[(?P<count>\d+)\])?"
)
_SIZES = {"": 8, "char": 1, "string": 4, "ustring": 4, "symstr": 4, "symbol": 8}
_WHICH_BYTES = 4
_ALONE = "e:"
_MOST = 999_999  # plans: more than the kernel has numbers for events


class Shared(Record):
    """An event of the kernel: its name, its definitions, its plans in the order of their numbers.

    One with a single plan has no argument :data:`WHICH`.
    """

    event: str
    definitions: tuple[str, ...]
    plans: tuple[Plan, ...]


def shared(plans: Sequence[Plan], filters: Mapping[str, str], kernel: Kernel) -> list[Shared]:
    """Distribute ``plans``, each to one event, within the limits of ``kernel``.

    ``filters`` are the kernel filters of plans, by the plan's event: they are those of the
    whole event, so that only plans with the same one share.
    """
    alike: dict[object, list[Plan]] = {}
    for number, plan in enumerate(plans):
        signature = _signature(plan.definitions[0])
        line = plan.definitions[0]
        key = (file_of(line), line[0], signature, filters.get(plan.event))
        room = _fits(plan, signature, kernel)
        alike.setdefault(key if room else number, []).append(plan)
    return [_event(group) for group in alike.values()]


def _event(plans: list[Plan]) -> Shared:
    event = plans[0].event
    if len(plans) == 1:
        return Shared(event, plans[0].definitions, tuple(plans))
    lines = []
    for number, plan in enumerate(plans):
        for line in plan.definitions:
            rest = line.split(" ", 1)[1]
            letter = line.partition(":")[0]
            lines.append(f"{letter}:{plan.group}/{event} {rest} {_which(number)}")
    return Shared(event, tuple(lines), tuple(plans))


def _signature(line: str) -> Signature:
    # Names and types of the arguments; no fetch-arg that fetchc makes has another colon.
    named = [word.partition("=") for word in line.split()[2:]]
    return tuple((name, body.partition(":")[2]) for name, _, body in named)


def _which(number: int) -> str:
    return f"{WHICH}=\\{number}:u32"


def _fits(plan: Plan, signature: Signature, kernel: Kernel) -> bool:
    if plan.definitions[0].startswith(_ALONE):
        return False
    if not kernel.has("several_probes_in_event") or len(signature) >= kernel.arguments:
        return False
    longest = max(len(os.fsencode(line)) for line in plan.definitions)
    # The event is called as one of the others, which may have a longer name.
    longest += kernel.event_name_bytes - len(plan.event)
    if longest + 1 + len(_which(_MOST)) > kernel.line_bytes:
        return False
    if kernel.event_bytes is None:
        return True
    return sum(_bytes(type) for _, type in signature) + _WHICH_BYTES <= kernel.event_bytes


def _bytes(type: str) -> int:
    matched = _TYPE.fullmatch(type)
    if matched is None:
        raise ValueError(f"`{type}` is no type of a fetch-arg")
    bits = matched["plain"] or matched["container"]
    size = int(bits) // 8 if bits else _SIZES[type.partition("[")[0]]
    return size * int(matched["count"] or 1)
