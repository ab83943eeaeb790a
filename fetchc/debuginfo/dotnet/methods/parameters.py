"""The parameters of a method's code: those that are declared, ``this``, and hidden ones."""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.assembly import PARAMETER
from fetchc.debuginfo.dotnet.metadata.signatures import Generic, Primitive
from fetchc.debuginfo.dotnet.types.closed import Instance
from fetchc.program.entities import Variable
from fetchc.program.types import IntType, PointerType
from fetchc.quantities import ByteSize, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.metadata.signatures import Signature
    from fetchc.debuginfo.dotnet.methods.methods import Method
    from fetchc.debuginfo.dotnet.types.types import DotnetTypes
    from fetchc.quantities import TypeId

    Arguments = tuple[tuple[int, ...], tuple[int, ...]]

__all__ = ["CONTEXT", "parameters"]

CONTEXT = "<type arguments>"  # the name of the hidden parameter of shared generic code


def parameters(
    types: DotnetTypes, assembly: Assembly, method: Method, given: Arguments, die: DieOffset
) -> tuple[Variable, ...]:
    """In the order in which they are passed.

    ``given`` are the closed type arguments of the method's type and of itself, ``die`` is what the
    method's Function has.
    """
    of_type, of_method = given
    signature = assembly.method_signature(method.row)
    names = assembly.parameter_names(method.row)
    owner = types.closed.number(Instance(assembly, method.owner, of_type))
    kind = types.closed.kind(owner)
    found: list[tuple[str, TypeId, bool]] = []
    if signature.receives:
        this = types.variable(owner)
        if kind in ("value", "enum"):
            this = types.intern(PointerType("", ByteSize(8), this, reference=True))
        found.append(("this", this, True))
    value = kind in ("value", "enum", "interface")  # a default method of an interface
    mono = assembly.kind == "Mono"  # which has a register of its own for it, r10
    if not mono and _takes_context(signature.receives, value, signature.generic > 0, method):
        found.append((CONTEXT, types.intern(IntType("nint", ByteSize(8), True)), True))
    for position, one in enumerate(signature.parameters, 1):
        closed = types.closed.close(assembly, one, of_type, of_method)
        name = names.get(position) or f"arg{position}"
        row = assembly.parameter_row(method.row, position)
        tuples = assembly.tuple_names(row, PARAMETER) if row else ()
        found.append((name, types.variable_of(one, closed, tuples), False))
    return tuple(
        [
            Variable(name, kind_id, "parameter", DieOffset(die << 16 | at), 0, artificial)
            for at, (name, kind_id, artificial) in enumerate(found)
        ]
    )


def _takes_context(receives: bool, value: bool, signature_generic: bool, method: Method) -> bool:
    # Whether shared code gets its type arguments as a hidden parameter. Code that is shared by all
    # classes knows them from ``this``, unless it has none, it is a structure's, or the method has
    # type arguments of its own. Source: dotnet/runtime, docs/design/coreclr/botr/clr-abi.md,
    # "Generics".
    shared = any(_is_shared(one) for one in (*method.of_type, *method.of_method))
    return shared and (not receives or value or signature_generic)


def _is_shared(signature: Signature) -> bool:
    if isinstance(signature, Generic):
        return any(_is_shared(one) for one in signature.arguments)
    return signature == Primitive("__Canon")
