"""Call sites (DW_TAG_call_site): the calls in a function's code, and what each of them passes.

Source: DWARF 5, sections 3.3.1.4 (DW_AT_call_all_calls and its like) and 3.4 (call sites); before
it the GNU extensions of the same meaning, gcc's ``include/dwarf2.def``.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from struct import Struct

from fetchc.debuginfo.byte_reader import encode_number, record_layout
from fetchc.debuginfo.dwarf import subprograms
from fetchc.debuginfo.dwarf.call_frames import row
from fetchc.debuginfo.dwarf.constants import (
    DW_AT_abstract_origin,
    DW_AT_calling_convention,
    DW_AT_inline,
    DW_AT_linkage_name,
    DW_AT_location,
    DW_AT_low_pc,
    DW_AT_name,
    DW_AT_noreturn,
    DW_TAG_call_site,
    DW_TAG_call_site_parameter,
    DW_TAG_GNU_call_site,
    DW_TAG_inlined_subroutine,
    DW_TAG_lexical_block,
    DW_TAG_subprogram,
)
from fetchc.debuginfo.dwarf.enclosing_frames import Frame, outer_frame, outermost
from fetchc.debuginfo.dwarf.expressions import DW_OP_reg0, DW_OP_regx, is_register, value_place
from fetchc.debuginfo.dwarf.variables import frame_base_at
from fetchc.program.entities import Absent, Caller, Callers, Uses, is_on_entry
from fetchc.quantities import Address, DwarfRegister
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.program.entities import Function
    from fetchc.target.machines import CallRules

__all__ = [
    "CallSite",
    "CodeUses",
    "call_sites",
    "callers",
    "described_calls",
    "describes_tail_calls",
    "uses",
]

DW_TAG_GNU_call_site_parameter = 0x410A
DW_AT_call_all_calls = 0x7A
DW_AT_call_all_tail_calls = 0x7C
DW_AT_call_return_pc = 0x7D
DW_AT_call_value = 0x7E
DW_AT_call_origin = 0x7F
DW_AT_call_tail_call = 0x82
DW_AT_GNU_call_site_value = 0x2111
DW_AT_GNU_tail_call = 0x2115
DW_AT_GNU_all_tail_call_sites = 0x2116
DW_AT_GNU_all_call_sites = 0x2117

_SITES = frozenset({DW_TAG_call_site, DW_TAG_GNU_call_site})
_PARAMETERS = frozenset({DW_TAG_call_site_parameter, DW_TAG_GNU_call_site_parameter})
_BLOCKS = frozenset({DW_TAG_lexical_block, DW_TAG_inlined_subroutine})
_COMPLETE = (
    DW_AT_call_all_calls,
    DW_AT_call_all_tail_calls,
    DW_AT_GNU_all_call_sites,
    DW_AT_GNU_all_tail_call_sites,
)


class CallSite(Record):
    """One call: where it returns to, None where that is not said (of tail calls).

    ``origin`` is the entry of what is called, None of a call through a pointer. ``values`` are
    the expressions of what registers hold when the callee is entered.
    """

    returns_to: Address | None
    origin: Die | None
    tail: bool
    values: tuple[tuple[DwarfRegister, bytes], ...]


def call_sites(info: DebugInfo, function: Die) -> Iterator[CallSite]:
    """Every call that is described in the code of a concrete subprogram."""
    waiting = [function]
    for die in waiting:  # grows
        for child in info.children(die):
            if child.tag in _BLOCKS:
                waiting.append(child)
            elif child.tag in _SITES:
                yield _site(info, child)


def describes_tail_calls(info: DebugInfo, function: Die) -> bool:
    """Whether all calls by which the function ends are described."""
    for attribute in _COMPLETE:
        holder = info.inherited(function, attribute)
        if holder is not None and holder.flag(attribute):
            return True
    return False


def _site(info: DebugInfo, die: Die) -> CallSite:
    if die.tag == DW_TAG_call_site:
        returns_to, tail = die.address(DW_AT_call_return_pc), die.flag(DW_AT_call_tail_call)
        origin = info.follow(die, DW_AT_call_origin) if _refers(die, DW_AT_call_origin) else None
    else:
        returns_to, tail = die.address(DW_AT_low_pc), die.flag(DW_AT_GNU_tail_call)
        origin = info.follow(die, DW_AT_abstract_origin)
    values = [_value(child) for child in info.children(die) if child.tag in _PARAMETERS]
    return CallSite(returns_to, origin, tail, tuple([one for one in values if one is not None]))


def _refers(die: Die, attribute: int) -> bool:
    # GCC writes an address where it has no entry of what is called.
    return die.has(attribute) and die.address(attribute) is None


def _value(die: Die) -> tuple[DwarfRegister, bytes] | None:
    # Of what is passed in a register; None of the stack.
    place = die.block(DW_AT_location)
    value = die.block(DW_AT_call_value) or die.block(DW_AT_GNU_call_site_value)
    register = None if place is None else _named_register(place)
    return None if register is None or not value else (register, value)


def _named_register(expression: bytes) -> DwarfRegister | None:
    """The register that an expression of one operation names; None of any other."""
    if len(expression) == 1 and is_register(expression[0]):
        return DwarfRegister(expression[0] - DW_OP_reg0)
    if len(expression) == 2 and expression[0] == DW_OP_regx and expression[1] < 0x80:
        return DwarfRegister(expression[1])
    return None


# ------------------------------------------------------------------------------
# Who calls a function, and what its registers contained at its entry.
#
# A register that a function has overwritten has its value of the entry in no place of the
# function. But the address that the function returns to is after a call, and the debug
# information of the caller tells of many calls what they pass: constants, addresses, values that
# the caller keeps where the callee's unwind table finds them. So for each call there is another
# place.
#
# All of it rests on that the frame was entered by the call before the return address. That
# call must be a direct one of this function, by its encoding as by its entry; and no chain of
# tail calls may lead from the function into itself again, for such a call leaves the return
# address as it is. Source: DWARF 5, sections 2.5.1.7 (DW_OP_entry_value) and 3.4; gdb has the
# same rules (gdb/dwarf2/loc.c, dwarf_expr_reg_to_entry_parameter and
# func_verify_no_selftailcall).

_MOST_CALLS = 256  # of one function that are looked at
_DEEPEST = 3  # frames: what a caller passes on may be what it was passed
_MOST_SOUGHT = 64  # functions whose callers are looked for
_MOST_FUNCTIONS = 64  # after tail calls
_DW_CC_normal = 1


def callers(
    elf: Elf, info: DebugInfo, function: Function, address: Address, code: CodeUses | None
) -> Callers:
    """The calls of ``function``, and what they pass, in terms of a probe at ``address`` in it.

    ``code`` is None where the call instructions of the machine are not known.
    """
    rules = row(elf, address, function.address)
    if code is None:
        return _none("the call instructions of this machine are not known")
    if rules is None or rules.signal_frame:
        return _none("the file does not say where the return address is")
    die = None if function.die is None else info.die(function.die)
    ranges = () if die is None else info.ranges(die)
    # A probe in what is split off as cold is in the function that jumps there.
    entered = subprograms.subprogram_at(elf, info, die, ranges[0][0]) if die and ranges else None
    frame = outermost(rules, code.rules)
    return _Search(elf, info, code).of(entered or function, frame, 1)


def _none(reason: str) -> Callers:
    return Callers(Absent("computed", reason), (), reason)


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
        self._callers: dict[Address, tuple[str, tuple[Address, ...]]] = {}
        self._sites: dict[int, tuple[CallSite, ...]] = {}
        self._code: dict[int, list[tuple[Address, Address, Die]]] = {}

    def of(self, function: Function, frame: Frame, depth: int) -> Callers:
        """The callers of ``function``, which runs in ``frame``."""
        cached = self._callers.get(function.address)
        if cached is None:
            if len(self._callers) == _MOST_SOUGHT:
                return _none(
                    f"the callers of more than {_MOST_SOUGHT} functions are not looked for"
                )
            refused = self.refused(function)
            calls = () if refused else tuple(self._uses.calls(function.address))
            cached = self._callers[function.address] = refused, calls
        if cached[0]:
            return _none(cached[0])
        found = []
        for address in cached[1]:
            caller = self.caller(function, frame, address, depth)
            if caller is not None:
                found.append(caller)
                if len(found) == _MOST_CALLS:
                    break
        reason = "" if found else f"no direct call of `{function.name}` in the file is described"
        return Callers(frame.return_address(), tuple(found), reason)

    def caller(self, called: Function, frame: Frame, address: Address, depth: int) -> Caller | None:
        """The call that returns to ``address``; None where no call site describes it."""
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
            value = around.place(value_place(expression, die.unit, base))
            if not isinstance(value, Absent):
                values.append((register, value))
        outer = None
        if depth < _DEEPEST and any(is_on_entry(value) for _, value in values):
            function = subprograms.subprogram_at(self._elf, self._info, die, at)
            outer = None if function is None else self.of(function, around, depth + 1)
        return Caller(address, tuple(values), outer)

    def site(self, called: Function, address: Address) -> tuple[Address, Die, CallSite] | None:
        """What is said of the call of ``called`` before ``address``, and of its function."""
        found = self.holding(Address(address - 1))
        if found is None:
            return None
        for one in self.sites(found[1]):
            if one.returns_to == address:
                return (*found, one) if self.names(one, called) else None
        return None

    def holding(self, address: Address) -> tuple[Address, Die] | None:
        """The function with code at ``address``, and where that range of it begins."""
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
        sites = self._sites.get(die.offset)
        if sites is None:
            sites = self._sites[die.offset] = tuple(call_sites(self._info, die))
        return sites

    def names(self, site: CallSite, called: Function) -> bool:
        """Whether the entry of what is called there is one of ``called``."""
        origin = site.origin
        if origin is None or called.die is None:
            return False
        ranges = self._info.ranges(origin)
        if ranges:
            return ranges[0][0] == called.address
        if self._info.is_instance_of(self._info.die(called.die), origin):
            return True
        return any(name in (called.symbol, called.name) for name in self.spelled(origin))

    def spelled(self, origin: Die) -> Iterator[str]:
        """The names of the function that an entry declares, its symbol's first."""
        for attribute in (DW_AT_linkage_name, DW_AT_name):
            holder = self._info.inherited(origin, attribute)
            name = None if holder is None else holder.string(attribute)
            if name:
                yield name

    def targets(self, site: CallSite) -> tuple[Function, ...]:
        """Every function that the entry may mean; none for one that is not in the file."""
        origin = site.origin
        if origin is None:
            return ()
        for start, _ in self._info.ranges(origin)[:1]:
            here = subprograms.subprogram_at(self._elf, self._info, origin, start)
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
        return (
            None if die is None else subprograms.subprogram_at(self._elf, self._info, die, address)
        )

    def refused(self, function: Function) -> str:
        """Why the return address does not tell how the function was entered; empty if it does."""
        waiting, seen = [function], {function.address}
        for each in waiting:  # grows
            if each.die is None or len(waiting) > _MOST_FUNCTIONS:
                return f"where `{each.name}` ends in calls is not known"
            die = self._info.die(each.die)
            if each is function and self.is_of_its_own(die):
                return f"`{each.name}` need not keep its caller's registers"
            if not describes_tail_calls(self._info, die):
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
        """Whether a function may use registers against the calling convention."""
        for attribute in (DW_AT_noreturn, DW_AT_calling_convention):
            holder = self._info.inherited(die, attribute)
            if holder is None:
                continue
            if holder.flag(attribute) or holder.constant(attribute) not in (None, _DW_CC_normal):
                return True
        return False


# ------------------------------------------------------------------------------
# What a file's code calls and takes the address of, by what is called: one pass for all
# functions.
#
# Code names a place by an opcode and a distance of four bytes from their end. Instructions have
# no mark of where they begin, so bytes that only look like one are found, too.

_PF_X = 1
_DISTANCE = record_layout(True, "i")
_WORD = Struct("=Q")  # an element of the arrays
_END = 1 << 64  # of all addresses; a segment beyond it is damage


class CodeUses:
    """The places in the code that name another one; making it reads nothing."""

    __slots__ = ("_addresses", "_calls", "_elf", "rules")

    def __init__(self, elf: Elf, rules: CallRules) -> None:
        self._elf = elf
        self.rules = rules
        self._calls: _Distances | None = None
        self._addresses: _Distances | None = None

    def calls(self, target: Address) -> Iterator[Address]:
        """Where direct calls of ``target`` return to, in order."""
        if self._calls is None:
            self._calls = _Distances(self._elf, (self.rules.opcode,))
        return self._calls.to(target)

    def takes_address(self, target: Address, size: int) -> bool:
        """Whether an instruction outside the ``size`` bytes of the function ``target`` computes
        its address from a distance.
        """
        if self._addresses is None:
            self._addresses = _Distances(self._elf, self.rules.address_of)
        return any(not target < at <= target + size for at in self._addresses.to(target))


class _Distances:
    # What is named, and after what: 16 bytes for each, half a million in 30 MB of code.
    __slots__ = ("_behind", "_named")

    def __init__(self, elf: Elf, opcodes: Sequence[bytes]) -> None:
        pattern = re.compile(b"|".join([re.escape(one) for one in opcodes]), re.DOTALL)
        segments = [one for one in elf.segments if one.flags & _PF_X and one.file_size]
        segments = [one for one in segments if one.address + one.memory_size < _END]
        low = min([one.address for one in segments], default=0)
        high = max([one.address + one.memory_size for one in segments], default=0)
        named, behind = array("Q"), array("Q")
        for segment in segments:
            code = elf.read(segment.address, segment.file_size)
            last = len(code) - _DISTANCE.size
            for one in pattern.finditer(code):
                at = one.end()
                if at > last:
                    break
                end = segment.address + at + _DISTANCE.size
                target = end + _DISTANCE.unpack_from(code, at)[0]
                if low <= target < high:  # no chance bytes that lead out of all code
                    named.append(target)
                    behind.append(end)
        self._named = named.tobytes()
        self._behind = behind

    def to(self, target: Address) -> Iterator[Address]:
        """The ends of the distances that lead to ``target``, in order."""
        wanted = _WORD.pack(target)
        at = self._named.find(wanted)
        while at >= 0:
            if at % _WORD.size == 0:
                yield Address(self._behind[at // _WORD.size])
            at = self._named.find(wanted, at + 1)


# ------------------------------------------------------------------------------
# How a file uses one of its functions: by calls, or by its address.
#
# A compiler may change how a function is called where it sees all of the calls: one whose address
# is stored keeps what its type tells, and so does one whose calls are not described, which they
# are wherever gcc or clang optimize (clang from DWARF 4 on).

_ET_EXEC = 2

_MOST_USES = 64  # that are looked at


def uses(elf: Elf, info: DebugInfo, function: Function, code: CodeUses | None) -> Uses:
    """How ``function`` is used; no uses where the machine's call instructions are unknown."""
    die = None if function.die is None else info.die(function.die)
    optimized = die is not None and (die.unit.version < 4 or describes_tail_calls(info, die))
    if code is None:
        return Uses((), False, optimized)
    calls: list[Address] = []
    for address in described_calls(elf, info, function, code):
        calls.append(address)
        if len(calls) == _MOST_USES:
            break
    return Uses(tuple(calls), _is_stored(elf, function, code), optimized)


def _is_stored(elf: Elf, function: Function, code: CodeUses) -> bool:
    # An aligned word of the data, which the addend of a relocation is, too; an instruction that
    # computes it from a distance; where the file has one place in memory, four bytes of the code.
    # Not so in the function's own code: AddressSanitizer stores the address of a function in its
    # frame, for its reports. Source: gcc/asan.cc (asan_emit_stack_protection, "frame[2]"); LLVM,
    # lib/Transforms/Instrumentation/AddressSanitizer.cpp ("Write the PC to redzone[2]").
    address, size = function.address, function.size or 0
    if code.takes_address(address, size):
        return True
    word = encode_number(int(address), elf.word_bytes, elf.little_endian)
    for segment in elf.segments:
        if not segment.file_size:
            continue
        data = elf.read(segment.address, segment.file_size)
        if segment.flags & _PF_X:
            own = address - segment.address
            others = data if own < 0 else data[:own] + data[own + size :]
            if elf.kind == _ET_EXEC and address < 1 << 31 and word[:4] in others:
                return True
            continue
        at = data.find(word)
        while at >= 0:
            if (segment.address + at) % elf.word_bytes == 0:
                return True
            at = data.find(word, at + 1)
    return False
