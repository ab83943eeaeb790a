"""What a closure's code loads through the register that leads to its object.

What a closure captured is in an object that a register of the convention points to. The code loads
each of it once, and no variable that is captured by value is ever assigned again. So what holds on
one way through the code, from the entry on, tells where in the object a value comes from.

Importing capstone is slow; only closures come here.
"""

from __future__ import annotations

from fetchc.code.disassembly import instructions
from fetchc.program.entities import InMemory, InRegister
from fetchc.quantities import Address, ByteOffset, DwarfRegister
from fetchc.record import Record
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from capstone import CsInsn

    from fetchc.target.machines import Architecture

    State = dict["Room", "Content | None"]

__all__ = ["Content", "Fill", "fills"]

Room = InRegister | InMemory
"""A register, or a slot from the stack pointer."""

_WIDEST = 16  # bytes that one instruction stores


class Content(Record):
    """A copy of the object's bytes at ``offset``, or with ``address`` the address of them."""

    offset: ByteOffset
    address: bool


class Fill(Record):
    """From the instruction at ``behind`` on, ``room`` holds ``content``; None: anything else."""

    behind: Address
    room: Room
    content: Content | None


_OBJECT = Content(ByteOffset(0), True)


def fills(
    code: bytes, base: Address, architecture: Architecture, register: DwarfRegister
) -> tuple[Fill, ...]:
    """What the code at ``base`` puts into registers and stack slots, in its order.

    ``register`` has the closure object's address there. Nothing for a machine whose instructions
    are not in the tables; what follows bytes that cannot be decoded is left out. Raises
    CompileError FC0905 where there is no disassembler.
    """
    rules = table("runtime/go/copying").get(architecture.name)
    return () if rules is None else tuple(_Way(architecture, register, rules).follow(code, base))


class _Way:
    """One way through the code: what is where, and what waits at targets of jumps ahead."""

    __slots__ = ("_architecture", "_numbers", "_rules", "_state", "_waiting")

    def __init__(
        self, architecture: Architecture, register: DwarfRegister, rules: dict[str, Any]
    ) -> None:
        self._architecture, self._rules = architecture, rules
        named = {**architecture.unfetchable, **architecture.registers}
        self._numbers = {name: DwarfRegister(number) for number, name in named.items()}
        self._state: State | None = {InRegister(register): _OBJECT}
        self._waiting: dict[int, State] = {}

    def follow(self, code: bytes, base: Address) -> Iterator[Fill]:
        for one in instructions(code, base, self._architecture.name):
            # A state that a jump has brought here is sure; calls in front may never return.
            self._state = self._waiting.pop(one.address, self._state)
            if self._state is None:
                continue
            name = one.mnemonic.removeprefix("c.")
            if name not in self._rules["calls"]:
                self._wait(one)
            if name in self._rules["ends"] or self._writes_counter(one):
                self._state = None
            elif name in self._rules["calls"]:
                # Callees may write to where their arguments are; the object itself is none.
                self._state = {
                    room: content
                    for room, content in self._state.items()
                    if isinstance(room, InMemory) and content == _OBJECT
                }
            else:
                yield from self._step(one, name, self._state)

    def _wait(self, one: CsInsn) -> None:
        import capstone

        assert self._state is not None
        last = one.operands[-1] if one.operands else None
        jumps = one.group(capstone.CS_GRP_JUMP) or one.group(capstone.CS_GRP_BRANCH_RELATIVE)
        if jumps and last is not None and last.type == capstone.CS_OP_IMM:
            self._waiting.setdefault(last.imm, dict(self._state))

    def _writes_counter(self, one: CsInsn) -> bool:
        import capstone

        first = one.operands[0] if one.operands else None
        return (
            first is not None
            and first.type == capstone.CS_OP_REG
            and one.reg_name(first.reg) == "pc"
        )

    def _step(self, one: CsInsn, name: str, state: State) -> Iterator[Fill]:
        behind = Address(one.address + one.size)
        copied = dict(self._copied(one, name, state))
        changed: State = {}
        for room in self._changed(one, name, state):
            changed[room] = None
        for room, content in {**changed, **copied}.items():
            state[room] = content
            yield Fill(behind, room, content)

    def _copied(self, one: CsInsn, name: str, state: State) -> Iterator[tuple[Room, Content]]:
        # What the instruction copies of the object, or of its address.
        import capstone

        rules, operands = self._rules, one.operands
        kinds = tuple([operand.type for operand in operands])
        reg, mem, imm = capstone.CS_OP_REG, capstone.CS_OP_MEM, capstone.CS_OP_IMM
        to: Room | None
        content: Content | None
        if kinds == (mem, reg) and name in rules["stores"]:
            to, content = self._slot(one, operands[0]), self._content_of(one, operands[1], state)
        elif kinds == (reg, mem) and name in rules["stores"] and name not in rules["loads"]:
            to, content = self._slot(one, operands[1]), self._content_of(one, operands[0], state)
        elif kinds == (reg, mem) and name in rules["loads"]:
            to, content = self._register(one, operands[0].reg), self._loaded(one, state)
        elif kinds == (reg, mem) and name in rules["addresses"]:
            to, content = self._register(one, operands[0].reg), self._pointed(one, state)
        elif kinds == (reg, reg, imm) and name in rules["addresses"]:
            to = self._register(one, operands[0].reg)
            content = _moved(self._content_of(one, operands[1], state), operands[2].imm)
        elif kinds == (reg, reg) and name in rules["copies"]:
            to = self._register(one, operands[0].reg)
            content = self._content_of(one, operands[1], state)
        else:
            return
        if to is not None and content is not None:
            yield to, content

    def _loaded(self, one: CsInsn, state: State) -> Content | None:
        # Through the object's address, or a spilled copy from its slot.
        slot = self._slot(one, one.operands[1])
        if slot is not None:
            return state.get(slot)
        through = self._pointed(one, state)
        return None if through is None else Content(through.offset, False)

    def _pointed(self, one: CsInsn, state: State) -> Content | None:
        memory = one.operands[1].mem
        if getattr(memory, "index", 0):
            return None
        base = self._register(one, memory.base)
        return None if base is None else _moved(state.get(base), memory.disp)

    def _content_of(self, one: CsInsn, operand: Any, state: State) -> Content | None:
        whole = getattr(operand, "size", None) in (None, self._architecture.word_bytes)
        room = self._register(one, operand.reg)
        content = None if room is None else state.get(room)
        # The low part of an address is none; of a value, it is its beginning.
        big = not self._architecture.little_endian
        return None if content is None or (not whole and (content.address or big)) else content

    def _slot(self, one: CsInsn, operand: Any) -> InMemory | None:
        pointer = self._architecture.stack_pointer
        if getattr(operand.mem, "index", 0):
            return None
        if self._register(one, operand.mem.base) != InRegister(pointer):
            return None
        return InMemory(pointer, ByteOffset(operand.mem.disp))

    def _changed(self, one: CsInsn, name: str, state: State) -> Iterator[Room]:
        # All that the instruction may write.
        import capstone

        for number in self._written(one, name):
            register = self._register(one, number)
            if register is not None:
                yield register
            if register == InRegister(self._architecture.stack_pointer):
                yield from [room for room in state if isinstance(room, InMemory)]
        for operand in one.operands:
            slot = self._slot(one, operand) if operand.type == capstone.CS_OP_MEM else None
            if slot is not None and name not in self._rules["addresses"]:
                if operand is not one.operands[0] and name in self._rules["loads"]:
                    continue
                yield slot
                for room in state:
                    if isinstance(room, InMemory) and abs(room.offset - slot.offset) < _WIDEST:
                        yield room

    def _written(self, one: CsInsn, name: str) -> tuple[int, ...]:
        import capstone

        try:
            return tuple(one.regs_access()[1])
        except capstone.CsError:  # it does not know for this machine, where only the first can be
            registers = [o.reg for o in one.operands[:1] if o.type == capstone.CS_OP_REG]
            return () if name in self._rules["stores"] else tuple(registers)

    def _register(self, one: CsInsn, number: int) -> InRegister | None:
        name = one.reg_name(number) if number else None
        if not name:
            return None
        kernel, _ = self._architecture.aliases.get(name, (name, 0))
        found = self._numbers.get(kernel)
        return None if found is None else InRegister(found)


def _moved(content: Content | None, by: int) -> Content | None:
    if content is None or not content.address:
        return None
    return Content(ByteOffset(content.offset + by), True)
