"""The probe site: what a name can mean and where values are, at one address."""

from __future__ import annotations

from fetchc.lang import language
from fetchc.program.types import (
    ArrayType,
    ComplexType,
    DeclaredType,
    FunctionType,
    InterfaceType,
    IntType,
    NamedType,
    PointerType,
    QualifiedType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    VoidType,
)
from fetchc.quantities import ByteSize, TypeId
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.lang.base import Language
    from fetchc.program.entities import Function, Instance, StaticProbe
    from fetchc.program.protocol import Program
    from fetchc.program.types import Member, Type
    from fetchc.quantities import Address
    from fetchc.target.machines import Architecture

__all__ = [
    "ProbePoint",
    "Site",
    "SiteTypes",
    "has_own_returns",
    "must_not_be_returned_from",
    "steps",
]

_DEEPEST = 64  # typedefs, qualifiers or dimensions in a row; only a cyclic, hostile type has more


def steps(program: Program, type_id: TypeId) -> Iterator[Type]:
    """The type, then each one that typedefs and qualifiers lead to, the last one none of them.

    It ends after as many as no compiler writes: a hostile type leads to itself.
    """
    resolved = program.type(type_id)
    yield resolved
    for _ in range(_DEEPEST):
        if not isinstance(resolved, NamedType | QualifiedType):
            return
        resolved = program.type(resolved.target)
        yield resolved


class Site(Record):
    """Where a probe sits.

    ``address`` is the probed instruction. At ``entry`` the parameters are where the
    convention puts them (the function's first instruction, or after Go's stack check,
    which leaves registers and stack pointer alone). ``returns`` is for return probes,
    ``leaving`` for a return instruction: the results are there, the frame is gone.
    ``function`` is None for a bare address. ``instance`` is the copy of another function's body
    that begins there; ``label`` what the event is called after, where not after the function.
    ``static`` is the probe that the program's author put there. ``means`` is how a kernel is
    probed where not by a kprobe: fprobe, tprobe (a tracepoint), eprobe (another event). ``active``
    is for how many calls at a time a return probe of the kernel has room, None for its own choice.
    """

    program: Program
    architecture: Architecture
    language: Language
    function: Function | None
    address: Address
    entry: bool
    returns: bool
    leaving: bool = False
    instance: Instance | None = None
    label: str = ""
    static: StaticProbe | None = None
    means: str = ""
    active: int | None = None

    @property
    def named_after(self) -> str:
        """What a definition's event is called after."""
        if self.label or self.function is None:
            return self.label or f"at_{self.address:x}"
        return self.function.name

    @property
    def scope(self) -> Function | None:
        """The function whose file and namespace names outside functions are looked up in.

        Within the inlined copy of a function it is that one, as it is for its variables.
        """
        function = self.function
        if function is None or function.die is None or self.entry or self.returns or self.leaving:
            return function
        if self.instance is not None:
            return self.program.scope_at(function, self.instance.address)
        return self.program.scope_at(function, self.address)

    @property
    def probe_kind(self) -> str:
        """The kind of probe, a key of the kernel's rules: uprobe, uretprobe, kprobe, ..."""
        if not self.program.in_kernel:
            return "uretprobe" if self.returns else "uprobe"
        if self.returns:
            return "fexit" if self.means else "kretprobe"
        return self.means or ("kprobe" if self.entry else "kprobe_inside")

    @property
    def by_name(self) -> bool:
        """Whether the kernel gives parameters by names of its own, not by registers."""
        return self.program.in_kernel and (self.returns or self.means != "")


def has_own_returns(site: Site) -> bool:
    """Whether results are where the run-time of the program's main language puts them (Go).

    In a Go program that is all code that names no other compiler: assembly, and functions without
    debug information.
    """
    if site.function is None or site.program.in_memory:
        return False
    return must_not_be_returned_from(site.program, site.function)


def must_not_be_returned_from(program: Program, function: Function) -> bool:
    """Whether a return probe of the function would end the program, whatever it does."""
    own = language(function.language)
    if not own.return_probe:
        return True
    return not own.system_stack and not language(program.main_language()).return_probe


class ProbePoint(Record):
    """A probe site, how it is called in output, and what should be said of it.

    ``kind``: entry, return, return-site, body, line, inline, static, offset. ``more`` are further
    addresses of the same event: a function may have several return instructions, a line several
    beginnings, an inlined function several copies.
    """

    site: Site
    kind: str
    warnings: tuple[Diagnostic, ...]
    more: tuple[Site, ...] = ()

    def each(self) -> tuple[ProbePoint, ...]:
        """This for each of its addresses."""
        if not self.more:
            return (self,)
        return tuple(
            [ProbePoint(site, self.kind, self.warnings) for site in (self.site, *self.more)]
        )


class SiteTypes:
    """The types of a program, as the language of a probe site writes and measures them."""

    __slots__ = ("_resolved", "program", "site")

    def __init__(self, site: Site) -> None:
        self.site = site
        self.program = site.program
        self._resolved: dict[TypeId, Type] = {}  # one expression asks 40 times, of 15 types

    def spell(self, type_id: TypeId) -> str:
        """The type as the site's language writes it."""
        return self.site.language.spell(self.program, type_id)

    def bare(self, type_id: TypeId) -> TypeId:
        """The type behind typedefs and qualifiers, completed where it was only declared."""
        for _ in range(_DEEPEST):
            resolved = self.program.type(type_id)
            if isinstance(resolved, NamedType | QualifiedType):
                type_id = resolved.target
            elif isinstance(resolved, DeclaredType):
                return self.program.completed(type_id)
            else:
                return type_id
        return type_id

    def resolved(self, type_id: TypeId) -> Type:
        """The type itself, behind typedefs and qualifiers."""
        found = self._resolved.get(type_id)
        if found is None:
            found = self._resolved[type_id] = self.program.type(self.bare(type_id))
        return found

    def innermost(self, type_id: TypeId) -> Type:
        """The element of an array of however many dimensions; of another type, the type itself."""
        resolved = self.resolved(type_id)
        for _ in range(_DEEPEST):
            if not isinstance(resolved, ArrayType):
                break
            resolved = self.resolved(resolved.element)
        return resolved

    def size(self, type_id: TypeId) -> ByteSize | None:
        """Bytes of a type, None where it has no size (void, functions, declarations)."""
        match self.resolved(type_id):
            case VoidType() | FunctionType() | DeclaredType() | NamedType() | QualifiedType():
                return None
            case ArrayType(element=element, count=count, size=size):
                if size is not None or count is None:
                    return size
                each = self.size(element)
                return None if each is None else ByteSize(each * count)
            case sized:
                return sized.size

    def pointer_to(self, target: TypeId) -> TypeId:
        """The type of pointers to ``target``."""
        return self.program.intern(PointerType("", ByteSize(self.program.word_bytes), target))

    def array_of(self, element: TypeId, count: int, each: int, encoding: str = "") -> TypeId:
        """The type of ``count`` elements of ``each`` bytes."""
        return self.program.intern(
            ArrayType("", element, count, ByteSize(count * each), False, encoding)
        )

    def word(self, signed: bool = False) -> TypeId:
        """The type of a machine word: registers, sizes, constants."""
        name = "long" if signed else "unsigned long"
        return self.program.intern(IntType(name, ByteSize(self.program.word_bytes), signed))

    def length_type(self) -> TypeId:
        """The type of what ``len`` gives for an array."""
        name, signed = self.site.language.length_type
        return self.program.intern(IntType(name, ByteSize(self.program.word_bytes), signed))

    def members_of(self, type_id: TypeId) -> tuple[Member, ...]:
        """The members that a type itself has; none of what is not a structure."""
        match self.resolved(type_id):
            case (
                StructType(members=members)
                | StringType(members=members)
                | SliceType(members=members)
                | SequenceType(members=members)
                | InterfaceType(members=members)
            ):
                return members
            case ComplexType() | IntType() as resolved:
                from fetchc.check.number_halves import halves

                both = halves(self, resolved)
                return () if both is None else both.members
            case _:
                return ()

    def promoted_from(self, type_id: TypeId) -> TypeId:
        """What an embedded member of that type promotes from: its type, or its pointer's target."""
        bare = self.bare(type_id)
        resolved = self.program.type(bare)
        return self.bare(resolved.target) if isinstance(resolved, PointerType) else bare
