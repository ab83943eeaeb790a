"""Who calls a function, and what its registers held when it was entered.

A register that a function has overwritten has its value of the entry in no place of the function.
But the address that the function returns to is behind a call, and the debug information of the
caller tells of many calls what they pass: constants, addresses, values that the caller keeps where
the callee's unwind table finds them. So for each call there is another place.

All of it rests on that the frame was entered by the call in front of the return address. That call
must be a direct one of this function, by its encoding as by its entry; and no chain of tail calls
may lead from the function into itself again, for such a call leaves the return address as it is.
Source: DWARF 5, sections 2.5.1.7 (DW_OP_entry_value) and 3.4; gdb has the same rules
(gdb/dwarf2/loc.c, dwarf_expr_reg_to_entry_parameter and func_verify_no_selftailcall).
"""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_calling_convention,
    DW_AT_inline,
    DW_AT_linkage_name,
    DW_AT_name,
    DW_AT_noreturn,
    DW_TAG_subprogram,
)
from fetchc.debuginfo.dwarf.locations.call_sites import call_sites, tells_of_tail_calls
from fetchc.debuginfo.dwarf.locations.expr import worth
from fetchc.debuginfo.dwarf.locations.frame import row
from fetchc.debuginfo.dwarf.locations.frames_around import Frame, outer_frame, outermost
from fetchc.debuginfo.dwarf.locations.location import frame_base_at
from fetchc.debuginfo.dwarf.names import functions
from fetchc.program.entities import Absent, Caller, Callers, is_on_entry
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.locations.call_sites import CallSite
    from fetchc.debuginfo.dwarf.locations.code_uses import CodeUses
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.program.entities import Function

__all__ = ["callers", "described_calls"]

_MOST_CALLS = 256  # of one function that are looked at
_DEEPEST = 3  # frames: what a caller passes on may be what it was passed
_MOST_SOUGHT = 64  # functions whose callers are looked for
_MOST_FUNCTIONS = 64  # behind tail calls
_DW_CC_normal = 1


def callers(
    elf: Elf, info: DebugInfo, function: Function, address: Address, code: CodeUses | None
) -> Callers:
    """The calls of ``function``, and what they pass, in terms of a probe at ``address`` in it.

    ``code`` is None where what calls of the machine look like is not told.
    """
    rules = row(elf, address, function.address)
    if code is None:
        return _none("what a call of this machine looks like is not known")
    if rules is None or rules.signal_frame:
        return _none("nothing says where its return address is")
    die = None if function.die is None else info.die(function.die)
    ranges = () if die is None else info.ranges(die)
    # A probe in what is split off as cold is in the function that jumps there.
    entered = functions.holding(elf, info, die, ranges[0][0]) if die and ranges else None
    frame = outermost(rules, code.rules)
    return _Search(elf, info, code).of(entered or function, frame, 1)


def _none(reason: str) -> Callers:
    return Callers(Absent("FC0406", reason), (), reason)


def described_calls(
    elf: Elf, info: DebugInfo, function: Function, code: CodeUses
) -> Iterator[Address]:
    """Where those direct calls of ``function`` return to that the debug information has, too."""
    search = _Search(elf, info, code)
    for address in code.calls(function.address):
        found = search.site(function, address)
        if found is not None and not found[2].tail:
            yield address


class _Search:
    # One question, and the entries that were read for it.
    def __init__(self, elf: Elf, info: DebugInfo, code: CodeUses) -> None:
        self._elf = elf
        self._info = info
        self._uses = code
        self._known: dict[Address, tuple[str, tuple[Address, ...]]] = {}
        self._sites: dict[int, tuple[CallSite, ...]] = {}
        self._code: dict[int, list[tuple[Address, Address, Die]]] = {}

    def of(self, function: Function, frame: Frame, depth: int) -> Callers:
        """The callers of ``function``, which runs in ``frame``."""
        known = self._known.get(function.address)
        if known is None:
            if len(self._known) == _MOST_SOUGHT:
                return _none(
                    f"the callers of more than {_MOST_SOUGHT} functions are not looked for"
                )
            refused = self.refused(function)
            calls = () if refused else tuple(self._uses.calls(function.address))
            known = self._known[function.address] = refused, calls
        if known[0]:
            return _none(known[0])
        found = []
        for address in known[1]:
            caller = self.caller(function, frame, address, depth)
            if caller is not None:
                found.append(caller)
                if len(found) == _MOST_CALLS:
                    break
        reason = "" if found else f"no direct call of `{function.name}` in the file is described"
        return Callers(frame.return_address(), tuple(found), reason)

    def caller(self, called: Function, frame: Frame, address: Address, depth: int) -> Caller | None:
        """The call that returns to ``address``; None where nothing is said of it."""
        found = self.site(called, address)
        if found is None or found[2].tail:
            return None
        start, die, site = found
        at = Address(address - 1)
        rules = row(self._elf, at, start)
        if rules is None:
            return None
        around = outer_frame(frame, rules)
        base = frame_base_at(self._info, die, at)
        values = []
        for register, expression in site.values:
            value = around.place(worth(expression, die.unit, base))
            if not isinstance(value, Absent):
                values.append((register, value))
        outer = None
        if depth < _DEEPEST and any(is_on_entry(value) for _, value in values):
            function = functions.holding(self._elf, self._info, die, at)
            outer = None if function is None else self.of(function, around, depth + 1)
        return Caller(address, tuple(values), outer)

    def site(self, called: Function, address: Address) -> tuple[Address, Die, CallSite] | None:
        """What is said of the call of ``called`` in front of ``address``, and of its function."""
        found = self.holding(Address(address - 1))
        if found is None:
            return None
        for one in self.sites(found[1]):
            if one.returns_to == address:
                return (*found, one) if self.names(one, called) else None
        return None

    def holding(self, address: Address) -> tuple[Address, Die] | None:
        """The function with code at ``address``, and where that stretch of it begins."""
        unit = self._info.unit_of_address(address)
        if unit is None:
            return None
        code = self._code.get(unit.offset)
        if code is None:
            code = [
                (start, end, die)
                for die in self._info.children(unit.top)
                if die.tag == DW_TAG_subprogram
                for start, end in self._info.ranges(die)
            ]
            code.sort(key=lambda one: one[0])
            self._code[unit.offset] = code
        at = bisect_right(code, address, key=lambda one: one[0]) - 1
        if at < 0 or address >= code[at][1]:
            return None
        start, _, die = code[at]
        return start, die

    def sites(self, die: Die) -> tuple[CallSite, ...]:
        """The calls of a function, read once."""
        known = self._sites.get(die.offset)
        if known is None:
            known = self._sites[die.offset] = tuple(call_sites(self._info, die))
        return known

    def names(self, site: CallSite, called: Function) -> bool:
        """Whether the entry of what is called there is one of ``called``."""
        origin = site.origin
        if origin is None or called.die is None:
            return False
        ranges = self._info.ranges(origin)
        if ranges:
            return ranges[0][0] == called.address
        if functions.comes_from(self._info, self._info.die(called.die), origin):
            return True
        return any(name in (called.symbol, called.name) for name in self.spelled(origin))

    def spelled(self, origin: Die) -> Iterator[str]:
        """The names of what an entry declares, that of its symbol first."""
        for attribute in (DW_AT_linkage_name, DW_AT_name):
            holder = self._info.inherited(origin, attribute)
            name = None if holder is None else holder.text(attribute)
            if name:
                yield name

    def targets(self, site: CallSite) -> tuple[Function, ...]:
        """Every function that the entry may mean; none for one that is not in the file."""
        origin = site.origin
        if origin is None:
            return ()
        for start, _ in self._info.ranges(origin)[:1]:
            here = functions.holding(self._elf, self._info, origin, start)
            return () if here is None else (here,)
        if origin.has(DW_AT_inline):
            return ()  # a copy of it, and of which name is not said
        for name in self.spelled(origin):
            found = [self.of_symbol(symbol.address) for symbol in self._elf.symbols_named(name)]
            if found:
                return tuple([one for one in found if one]) if all(found) else ()
        return ()

    def of_symbol(self, address: Address) -> Function | None:
        """The described function that begins at ``address``."""
        die = self._info.function_at(address)
        return None if die is None else functions.holding(self._elf, self._info, die, address)

    def refused(self, function: Function) -> str:
        """Why the return address does not tell how the function was entered; empty if it does."""
        waiting, seen = [function], {function.address}
        for each in waiting:  # grows
            if each.die is None or len(waiting) > _MOST_FUNCTIONS:
                return f"where `{each.name}` ends in calls is not known"
            die = self._info.die(each.die)
            if each is function and self.is_of_its_own(die):
                return f"`{each.name}` need not keep its caller's registers"
            if not tells_of_tail_calls(self._info, die):
                return f"where `{each.name}` ends in calls is not described"
            for site in self.sites(die):
                if not site.tail:
                    continue
                targets = self.targets(site)
                if not targets:
                    what = "a call through a pointer" if site.origin is None else "another file"
                    return f"`{each.name}` may end in {what}, from where it may be entered again"
                if any(one.address == function.address for one in targets):
                    return f"`{function.name}` may be entered again by a call in place of its end"
                waiting += [one for one in targets if one.address not in seen]
                seen.update(one.address for one in targets)
        return ""

    def is_of_its_own(self, die: Die) -> bool:
        """Whether a function may do with registers what others may not."""
        for attribute in (DW_AT_noreturn, DW_AT_calling_convention):
            holder = self._info.inherited(die, attribute)
            if holder is None:
                continue
            if holder.flag(attribute) or holder.constant(attribute) not in (None, _DW_CC_normal):
                return True
        return False
