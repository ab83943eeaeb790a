"""The answers of a Program without DWARF: no places, no lines, nothing inlined, no Go."""

from __future__ import annotations

from fetchc.program.entities import Absent, Callers, Uses
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.entities import Extent, Function, Place, StaticProbe, Variable
    from fetchc.program.protocol import CodeMap, CppFacts, DotnetFacts, Evidence, KernelFacts
    from fetchc.quantities import TypeId

__all__ = ["NoElfFacts", "NoEvidence", "WithoutDwarf"]


class NoElfFacts:
    """:class:`~fetchc.program.protocol.ElfFacts` of a file that is not ELF."""

    __slots__ = ()

    def symbol_addresses(self, name: str) -> tuple[Address, ...]:
        """None: there are no symbols."""
        return ()

    def symbols_with_prefix(self, prefix: str) -> tuple[str, ...]:
        """None: there are no symbols."""
        return ()

    def first_code(self) -> Address:
        """0: there are no segments."""
        return Address(0)

    def begins_symbol(self, address: Address) -> bool:
        """False: there are no symbols."""
        return False

    def has_symbol(self, name: str) -> bool:
        """False: there are no symbols."""
        return False

    def imported(self, name: str) -> tuple[tuple[str, ...], str] | None:
        """None: the file does not say."""
        return None

    def is_ifunc(self, function: Function) -> bool:
        """False: there are no IFUNCs."""
        return False

    def local_entry(self, function: Function) -> int:
        """0: a function has one entry, or the kernel finds the other."""
        return 0

    def static_probes(self) -> tuple[StaticProbe, ...]:
        """None: those are notes in ELF files."""
        return ()

    def bundled_assemblies(self) -> tuple[str, ...]:
        """None: it is one itself, or of another kind."""
        return ()


class NoEvidence:
    """:class:`~fetchc.program.protocol.Evidence` of a file without machine code."""

    __slots__ = ()

    def is_inlined(self, function: Function) -> bool:
        """False: the file does not say."""
        return False

    def is_only_inlined(self, name: str) -> bool:
        """False: every function listed has code of its own."""
        return False

    def lacks_code(self, name: str) -> bool:
        """False: the file does not say."""
        return False

    def folded_with(self, function: Function) -> tuple[str, ...]:
        """None: the file does not say."""
        return ()

    def may_be_merged_with(self, function: Function) -> tuple[str, ...]:
        """None: the file does not say."""
        return ()

    def callers(self, function: Function, address: Address) -> Callers:
        """None: no calls are described."""
        reason = "its debug information describes no calls"
        return Callers(Absent("computed", reason), (), reason)

    def uses(self, function: Function) -> Uses:
        """No uses: only DWARF describes them."""
        return Uses((), False, False)

    def may_be_copied(self, variable: Variable, address: Address) -> bool:
        """False: variables are where they are."""
        return False

    def awaits_within(self, variable: Variable) -> tuple[tuple[Address, Address], ...]:
        """Nothing: the file does not say."""
        return ()

    def is_in_address_table(self, address: Address) -> bool:
        """False: it has no such table."""
        return False

    def is_optimized(self, function: Function) -> bool:
        """False: the file does not say."""
        return False

    def frame_base_is_cfa(self, function: Function) -> bool:
        """False: there are no frames."""
        return False

    def frame_address(self, function: Function, address: Address) -> Place:
        """Absent: the file does not say."""
        return Absent(
            "no location", "without debug information, the address of the frame is not known"
        )

    def frame_is_valid(self, function: Function, address: Address) -> bool:
        """True: no place counts from a frame."""
        return True


class WithoutDwarf:
    """A base of Programs by types and prototypes alone; each question is explained in
    :class:`~fetchc.program.protocol.Program`.
    """

    __slots__ = ()

    elf = NoElfFacts()
    in_memory = False
    cpp: CppFacts | None = None
    go = None

    @property
    def evidence(self) -> Evidence:
        """None."""
        return NoEvidence()

    @property
    def dotnet(self) -> DotnetFacts | None:
        """None."""
        return None

    @property
    def kernel(self) -> KernelFacts | None:
        """None."""
        return None

    def compiled(self, function: Function, address: int) -> Function:
        """The method as it was compiled to ``address``, one of its :meth:`versions`."""
        return function

    def versions(self, address: int) -> tuple[int, ...]:
        """Where a running process has code now of what has code at ``address``; none of a file."""
        return ()

    def debug_info_advice(self) -> tuple[tuple[str, ...], str]:
        """No notes; the help asks for another file."""
        return (), "take a file that describes it"

    def extents(self, variable: Variable, function: Function | None) -> tuple[Extent, ...]:
        """None: there are no places."""
        return ()

    def body_address(self, function: Function) -> Address:
        """The function's first instruction: there is no line table."""
        return function.address

    def code_map(self) -> CodeMap | None:
        """None: there are no lines and no inlined calls."""
        return None

    def array_length(self, array: TypeId, function: Function, address: Address) -> None:
        """None: there are no such arrays."""

    def scope_at(self, function: Function, address: Address) -> Function:
        """``function``: the file does not describe inlined calls."""
        return function

    def enumerators(self, name: str, function: Function | None) -> tuple[tuple[int, TypeId], ...]:
        """None of that name."""
        return ()

    def source_line(self, function: Function) -> str | None:
        """None: there are no lines."""
        return None
