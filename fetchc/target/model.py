"""Registers and calling conventions, as records of the data under ``targets/``.

A new architecture is a file in ``targets/arch``; a new convention of a scheme that is
known is a file in ``targets/abi``. A new scheme is a record of rules below, an engine
in :mod:`fetchc.abi` and a branch in :mod:`fetchc.target.load`. In both, ``"x0..30"``
stands for x0, x1, and so on.
"""

from __future__ import annotations

from fetchc.record import Record
from fetchc.units import ByteOffset, ByteSize, DwarfRegister

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Architecture",
    "CallRules",
    "Convention",
    "EightbyteRules",
    "GoRules",
    "Growth",
    "Instruction",
    "StackCheck",
    "WordRules",
]


class Architecture(Record):
    """A machine's registers, by the kernel's names and by the DWARF numbers.

    ``registers`` are those a fetch-arg can name, by DWARF number; ``named`` is every
    name the kernel takes, some of which have no number. ``unfetchable`` are the
    registers that values can be in and the kernel does not save, by DWARF number:
    their names are for messages. ``aliases`` are names that users and debuggers
    write: the kernel's name and how many of the register's low bits are meant.
    ``refused`` are names known to be out of reach, with the words that complete
    "because ...". At a function's first instruction the CFA is the stack pointer plus
    ``entry_stack_bytes``; ``callee_slots``: above it there is room for the callee to store
    its parameters in. ``result`` is the register behind ``$retval``.
    ``on_wide_kernel``, of a 32-bit machine, are the names that a 64-bit kernel knows
    when it runs such a program; none where it takes no probes of them. ``local_entries``:
    a function can have two entries, and symbols say where the second is. ``addresses_apart``:
    an address tells whether it is the kernel's or a program's.
    """

    name: str
    word_bytes: int
    little_endian: bool
    registers: Mapping[int, str]
    named: frozenset[str]
    unfetchable: Mapping[int, str]
    aliases: Mapping[str, tuple[str, int]]
    refused: Mapping[str, str]
    stack_pointer: DwarfRegister
    entry_stack_bytes: ByteSize
    result: str
    on_wide_kernel: frozenset[str] = frozenset()
    local_entries: bool = False
    callee_slots: bool = False
    addresses_apart: bool = False

    def __hash__(self) -> int:
        return hash(self.name)  # mappings have no hash; a name has one architecture

    def shown(self, register: DwarfRegister) -> str:
        """The register for a message: ``%di``, ``%xmm0``, or its number."""
        name = self.registers.get(register) or self.unfetchable.get(register)
        return f"DWARF register {register}" if name is None else f"%{name}"

    def in_words(self, text: str) -> str:
        """``text`` of a reader that knows registers by number, with their names."""
        import re

        pattern = r"DWARF register (\d+)"
        return re.sub(pattern, lambda found: self.shown(DwarfRegister(int(found[1]))), text)


class CallRules(Record):
    """How code of a machine calls, and what that leaves as it is.

    A direct call is the ``opcode`` and a distance of four bytes, which counts from behind them;
    ``address_of`` are what stands in front of such a distance where it is only added up.
    ``preserved`` are the registers that a function hands back as it was entered with them.
    """

    opcode: bytes
    address_of: tuple[bytes, ...]
    preserved: frozenset[DwarfRegister]
    stack_pointer: DwarfRegister


class Instruction(Record):
    """An encoding of known length: ``prefix``, then bytes of any value up to ``size``.

    ``mask``, as long as the prefix, has the bits of it that count; empty: all do.
    """

    prefix: bytes
    size: ByteSize
    mask: bytes = b""

    def starts(self, code: bytes, position: int) -> bool:
        """Whether ``code`` has its prefix at ``position``."""
        if not self.mask:
            return code.startswith(self.prefix, position)
        raw = code[position : position + len(self.mask)].ljust(len(self.mask), b"\0")
        masked = [byte & bits for byte, bits in zip(raw, self.mask, strict=True)]
        return self.prefix == bytes(masked)


class StackCheck(Record):
    """What a function may begin with to compare the stack pointer with its limit.

    Each of ``sequences`` is a whole check: one entry an instruction, and in that the
    encodings to choose from. Where the last one jumps to the function's body, ``target`` is
    how to read its distance: (first bit, bits, first bit of the distance), of each part.
    ``growth`` is None where no register has an argument.
    """

    sequences: tuple[tuple[tuple[Instruction, ...], ...], ...]
    target: tuple[tuple[int, int, int], ...] = ()
    growth: Growth | None = None


class Growth(Record):
    """The code that lets the stack grow and enters the function anew.

    It is behind the check, or where the check's last instruction jumps: one of ``jumps``, with the
    distance of its target as in :class:`StackCheck`, and bytes to add. Code that keeps no register
    begins with one of ``calls``, with some of ``padding`` in front and ``more`` bytes of the call
    behind. There it goes on afterwards, with that address in the register ``resumed``.
    """

    jumps: tuple[tuple[Instruction, tuple[tuple[int, int, int], ...], int], ...]
    padding: tuple[Instruction, ...]
    calls: tuple[Instruction, ...]
    more: int
    resumed: DwarfRegister


class EightbyteRules(Record):
    """What the System V x86-64 engine needs to know beside the registers.

    ``x87_registers`` hold long double results. ``x87_names`` and ``quad_names`` tell the
    16-byte floating-point types apart, which debug information does not;
    ``wide_integer_names`` are the 16-byte integers that are verified. ``wide_splits``:
    a 16-byte integer may go half into the last register, which the compiler counts as free even
    so, and is aligned to 8.
    ``triviality_stated``: a structure about which the debug information does not say how
    it is passed is passed by value. ``unnamed_bit_fields``: one without a name makes its
    eightbyte INTEGER. ``typedef_alignment``: each member has to keep the alignment that its
    type is declared with, which a typedef can lower; else the scalars in it their own.
    ``receiver_first``: the object of a method is passed in front of the address of a result in
    memory. ``empty``: the class of a structure without members, where it is
    passed at all; ``padding``: that of eight bytes of padding, where they are.
    ``reference_first``: without an object, a first parameter that is a reference is in front too.
    ``plain_structures``: up to 16 bytes they are passed as integers whatever they hold, and
    returned so up to 8. ``stack_alignment``: that of every parameter on the stack, in bytes; 0 if
    each has its own, and 8 at least. ``vectors``: the class of all vectors, where it is
    not by their size. ``result_address_returned`` is as in :class:`WordRules`.
    """

    x87_registers: tuple[DwarfRegister, ...]
    x87_names: tuple[str, ...]
    quad_names: tuple[str, ...]
    wide_integer_names: tuple[str, ...]
    wide_splits: bool
    triviality_stated: bool
    unnamed_bit_fields: bool
    typedef_alignment: bool
    receiver_first: bool = False
    empty: str = ""
    padding: str = ""
    reference_first: bool = False
    plain_structures: bool = False
    stack_alignment: int = 0
    vectors: str = ""
    result_address_returned: bool = True


class WordRules(Record):
    """What the engine of the conventions that pass word by word needs to know.

    Structures: up to ``value_bytes`` go by value (None: all), the others by a pointer, or of
    those sizes only that ``value_sizes`` names. ``float_structures`` says which of them go
    to floating-point registers: ``homogeneous`` ones of up to ``float_members`` numbers of
    one type, ``flat`` ones of two numbers with a floating-point one among them, a ``single``
    number, or none (``""``). ``float_sizes`` and ``vector_sizes`` are those of the numbers
    and vectors that such a register takes, ``float_register_bytes`` the size of the smallest,
    of which a bigger number takes several.

    What finds too few registers goes on the stack as a whole, and ``closes`` them for all that
    follows, or ``splits``. Floating-point numbers without a register go to the stack or, where
    ``floats_overflow``, to integer registers; where ``positions`` they take words of the
    integer registers and the stack even so. ``pairs``: what is aligned to two words starts at
    an even register. On the stack no alignment beyond ``stack_alignment`` counts;
    ``right_adjusted``: what is smaller than its word is at the word's end.

    ``quad`` and ``wide``: how a 16-byte floating-point number and integer go, as ``float``,
    ``words`` or ``reference``, empty where it is not known; ``complex`` likewise, ``parameters``
    for its two numbers like parameters of their own. ``result_bytes`` bounds the
    structures that are returned in integer registers; ``result_address`` is the register of the
    address of the others where it is no argument's, ``result_address_returned`` whether the
    first result register has it when the function has returned. ``triviality_stated`` as in
    :class:`EightbyteRules`. ``regparm``: gcc gives functions local to a file another convention.
    """

    value_bytes: int | None
    value_sizes: tuple[int, ...]
    float_structures: str
    float_members: int
    float_sizes: tuple[int, ...]
    vector_sizes: tuple[int, ...]
    float_register_bytes: int
    floats_overflow: bool
    closes: bool
    splits: bool
    positions: bool
    pairs: bool
    stack_alignment: int
    right_adjusted: bool
    quad: str
    wide: str
    complex: str
    result_bytes: int
    result_address: DwarfRegister | None
    result_address_returned: bool
    triviality_stated: bool
    regparm: bool


class GoRules(Record):
    """What Go's run time adds to its convention.

    ``goroutine_register`` holds the running g in Go code, ``closure_register`` the
    closure's captured variables at its entry; None where the convention has none.
    ``goroutine_loads`` are instructions that a stack check can begin with, and the register
    that holds g behind such a check.
    ``vector_packages`` are prefixes of types that go into vector registers.
    """

    goroutine_register: DwarfRegister | None
    closure_register: DwarfRegister | None
    stack_check: StackCheck | None
    vector_packages: tuple[str, ...]
    goroutine_loads: tuple[tuple[Instruction, DwarfRegister], ...] = ()


class Convention(Record):
    """Where a caller puts arguments and finds results.

    Registers are DWARF numbers in the order of use. ``stack_offset`` is where the first
    argument on the stack is, from the stack pointer at the callee's first instruction.
    """

    name: str
    architecture: str
    word_bytes: int
    stack_pointer: DwarfRegister
    stack_offset: ByteOffset
    integer_registers: tuple[DwarfRegister, ...]
    float_registers: tuple[DwarfRegister, ...]
    result_integer_registers: tuple[DwarfRegister, ...]
    result_float_registers: tuple[DwarfRegister, ...]
    rules: EightbyteRules | WordRules | GoRules
