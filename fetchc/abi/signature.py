"""The parameters that a call passes: with the hidden ones, without those no caller passes."""

from __future__ import annotations

from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent
from fetchc.program.types import (
    DeclaredType,
    FunctionType,
    IntType,
    NamedType,
    QualifiedType,
    StructType,
    VoidType,
)
from fetchc.quantities import ByteSize, TypeId
from fetchc.record import Record
from fetchc.target.machines import GoRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fetchc.program.entities import Function, Place, Variable
    from fetchc.program.protocol import Program
    from fetchc.program.types import Type
    from fetchc.target.machines import Convention

__all__ = [
    "MAX_NESTING",
    "Passed",
    "UnclassifiedError",
    "bare",
    "dictionary_position",
    "goes_by_reference",
    "malformed",
    "missing_receiver",
    "one_by_one",
    "passed",
    "round_up",
    "size_of",
    "stated_size",
    "unaddressed",
    "unclassified",
    "undecided",
]

_DICTIONARY = ".dict"

# Bodies that reach the dictionary through their closure: f.func1, f.func1.2, f-range1,
# f.gowrap1, f.deferwrap1, and method values (-fm).
# Source: Go, src/cmd/compile/internal/ir/func.go (closureName).
_CLOSURE = r"(?:\.func\d+|-range\d+|\.gowrap\d+|\.deferwrap\d+)(?:[.-]\w+)*$|-fm$"

_LITERAL = "func"  # of closures, whose names are func1, func2, ...
_LISTS_RECEIVERS = (1, 22)  # and later, also those without a name

# type:.eq.T, type..hash.T: the compiler generates them for a type.
_GENERATED = ("type:.", "type..")

# Constructors and destructors of classes with virtual bases, as gcc declares them: the
# first is never passed, whether the second is depends on which copy this is.
# Source: gcc, gcc/cp/class.cc (in_charge_identifier, vtt_parm_identifier).
_IN_CHARGE = "__in_chrg"
_VIRTUAL_TABLE = "__vtt_parm"


class Passed(Record):
    """The types of a call, and which declared variable is which.

    ``positions`` has one entry a variable: its index in ``parameters`` or, for a result,
    in ``results``; an Absent where the variable is not passed or its place is unknown.
    """

    positions: tuple[int | Absent, ...]
    parameters: tuple[TypeId, ...]
    results: tuple[TypeId, ...]


def passed(
    program: Program,
    convention: Convention,
    function: Function,
    variables: tuple[Variable, ...],
) -> Passed:
    """The parameters of ``function`` as its callers pass them."""
    go = isinstance(convention.rules, GoRules)
    positions: list[int | Absent] = []
    parameters: list[TypeId] = []
    results: list[TypeId] = []
    dictionary: int | Absent | None = None
    if go and not any(variable.name == _DICTIONARY for variable in variables):
        dictionary = dictionary_position(function)
    stopped = dictionary if isinstance(dictionary, Absent) else None
    receiver = missing_receiver(program, function, variables) if go else None
    if receiver is not None:
        parameters.append(receiver)
    for variable in variables:
        if variable.kind == "result":
            positions.append(len(results))
            results.append(variable.type)
            continue
        if dictionary == len(parameters):
            parameters.append(_word(program))
        if variable.artificial and variable.name == _IN_CHARGE:
            positions.append(Absent("no location", "no caller passes it"))
            continue
        if variable.artificial and variable.name == _VIRTUAL_TABLE:
            stopped = Absent(
                "no location", "whether a table of virtual bases is passed is not said"
            )
        if stopped is not None:
            positions.append(stopped)
            continue
        positions.append(len(parameters))
        parameters.append(variable.type)
    if dictionary == len(parameters):
        parameters.append(_word(program))
    if not go:
        result = program.result(function)
        results = [] if result is None else [result]
    return Passed(tuple(positions), tuple(parameters), tuple(results))


def dictionary_position(function: Function) -> int | Absent | None:
    """Where a generic Go function takes its hidden dictionary among its parameters.

    A generic body is compiled once a shape (``main.Sum[go.shape.int]``) and gets a
    dictionary of its type arguments: first, or since Go 1.20 after a receiver. None for
    other functions, for closures (theirs is captured) and for generated ones.
    Source: Go, src/cmd/compile/internal/noder/reader.go (shapedMethodExpr, dictParam);
    read live in 1.19, 1.26 and 1.27.
    """
    name = function.name
    if "[go.shape." not in name or name.startswith(_GENERATED):
        return None
    import re  # generic functions are rare

    from fetchc.program.go_symbol_names import without_type_arguments

    plain = without_type_arguments(name)
    # The last element of the package path, then what the package declares.
    declared = plain[plain.rfind("/") + 1 :].partition(".")[2]
    if re.search(_CLOSURE, declared):
        return None
    if "." not in declared:
        return 0
    version = function.compiler.go_version
    if version is None:
        return Absent(
            "no location", "the Go version, which places the hidden dictionary, is not known"
        )
    return 1 if version >= (1, 20) else 0


def missing_receiver(
    program: Program, function: Function, variables: tuple[Variable, ...]
) -> TypeId | None:
    """The type of a Go method's receiver that the debug information leaves out, None elsewhere.

    Up to Go 1.21 it does where the receiver has no name, as in every wrapper that the compiler
    makes around a promoted method. Its first parameter is then of another type.
    """
    version = function.compiler.go_version
    if version is None or version >= _LISTS_RECEIVERS or "[" in function.symbol:
        return None
    start = function.symbol.rfind("/") + 1
    package, _, declared = function.symbol[start:].partition(".")
    package = function.symbol[:start] + package
    holder, _, method = declared.rpartition(".")
    # A method is the last part and no closure: f.func1, init.0, f-fm.
    if not holder or "-" in method or not method.replace("_", "a").isalnum():
        return None
    pointed = holder.startswith("(*") and holder.endswith(")")
    name = holder[2:-1] if pointed else holder
    if "." in name or method[:1].isdecimal() or method.startswith(_LITERAL):
        return None
    wanted = f"{'*' * pointed}{package}.{name}"
    first = next((one.type for one in variables if one.kind != "result"), None)
    if first is not None and getattr(program.type(first), "name", "") == wanted:
        return None
    if pointed:
        return _word(program)
    found = program.types_named(wanted, function)
    return found[0] if len(found) == 1 else None


def _word(program: Program) -> TypeId:
    return program.intern(IntType("uintptr", ByteSize(program.word_bytes), False))


# ------------------------------------------------------------------------------
# What the engines share: types after their names, and what cannot be classified.
#
# A type whose debug information does not say enough raises :class:`UnclassifiedError`, which the
# engines turn into an Absent place; a type that contradicts itself raises DebugInfoError.

MAX_NESTING = 200  # aggregates in aggregates; std::tuple of a hundred members nests as deep
_MAX_NAMES = 200  # typedefs and qualifiers in a row


class UnclassifiedError(Exception):
    """The convention cannot place this type; the text completes "because ..."."""


def unclassified(error: UnclassifiedError) -> Absent:
    """The Absent of a parameter that cannot be classified."""
    from fetchc.program.entities import Absent

    return Absent("no location", str(error))


def undecided(error: UnclassifiedError, before: str = "a parameter in front") -> Absent:
    """The place of a parameter that depends on what is ``before`` it and cannot be classified."""
    from fetchc.program.entities import Absent

    return Absent("no location", f"where it is depends on {before}: {error}")


def one_by_one(
    parameters: Iterable[TypeId], place: Callable[[int, TypeId], Place], stopped: Absent | None
) -> tuple[Place, ...]:
    """What ``place`` says of each position and parameter, up to one that cannot be classified.

    The places after that one are unknown. With ``stopped``, all places are ``stopped``.
    """
    found: list[Place] = []
    for position, parameter in enumerate(parameters):
        if stopped is not None:
            found.append(stopped)
            continue
        try:
            found.append(place(position, parameter))
        except UnclassifiedError as error:
            found.append(unclassified(error))
            stopped = undecided(error)
    return tuple(found)


def unaddressed() -> Absent:
    """The place of a result in memory where no register leads to it any more."""
    from fetchc.program.entities import Absent

    what = "it is in memory, and no register keeps its address until the function returns"
    return Absent("no location", what)


def malformed(program: Program, type_id: TypeId, what: str) -> DebugInfoError:
    """An error located at the type's entry."""
    if type_id < 0:  # an interned type has no entry
        return DebugInfoError("FC0904", program.path, what)
    return DebugInfoError("FC0904", program.path, what, ".debug_info", type_id)


def bare(program: Program, type_id: TypeId) -> tuple[TypeId, Type]:
    """The type behind typedefs and qualifiers, a declaration replaced by its definition."""
    first = type_id
    for _ in range(_MAX_NAMES):
        found = program.type(type_id)
        match found:
            case NamedType(target=target):
                type_id = target
            case QualifiedType(qualifier=qualifier, target=target):
                inner = program.type(target)
                if qualifier == "atomic" and isinstance(inner, StructType):
                    # It can be larger and more aligned than the structure, unsaid.
                    raise UnclassifiedError(f"`_Atomic {inner.name}` has no stated size")
                type_id = target
            case DeclaredType(name=name):
                defined = program.completed(type_id)
                if defined == type_id:
                    raise UnclassifiedError(f"`{name}` is declared and nowhere defined")
                type_id = defined
            case _:
                return type_id, found
    raise malformed(program, first, "a type is its own name")


def size_of(program: Program, type_id: TypeId) -> int:
    """Bytes of the type; UnclassifiedError where it has no stated size."""
    type_id, found = bare(program, type_id)
    size = None if isinstance(found, VoidType | FunctionType) else stated_size(found)
    if size is None:
        raise UnclassifiedError("the type of a parameter has no size")
    if size < 0:
        raise malformed(program, type_id, "a type of negative size")
    return size


def stated_size(found: Type) -> int | None:
    """The size in bytes that a type states; None for kinds that state none."""
    size: int | None = getattr(found, "size", None)
    return size


def goes_by_reference(
    program: Program, type_id: TypeId, found: StructType, triviality_stated: bool
) -> bool:
    """Whether a pointer to the structure is passed instead of it.

    Where the debug information has to state it and does not (``triviality_stated`` is what a
    convention says of its compilers), the declaration of the class tells.
    """
    answer = found.by_reference
    if answer is None and not triviality_stated:
        answer = None if program.cpp is None else program.cpp.passed_by_reference(type_id)
        if answer is None:
            raise UnclassifiedError(
                f"the compiler does not say whether `{found.name}` is passed by reference"
            )
    return bool(answer)


def round_up(value: int, alignment: int) -> int:
    """The next multiple of ``alignment``."""
    return -(-value // alignment) * alignment
