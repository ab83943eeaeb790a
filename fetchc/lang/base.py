"""What differs between languages, as one record each; no other module asks which it is.

To add a language: a module here with its record, a line in ``lang/__init__.py`` under
the key that :class:`~fetchc.program.entities.Function` carries (from DW_AT_language),
types that only it has in ``program/types.py`` and their reading in ``debuginfo``, a
corpus directory with cases, a row in the README.
"""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.quantities import TypeId

__all__ = ["Language"]

_NONE: Mapping[str, str] = {}


class Language(Record):
    """The rules of one language.

    ``spell`` writes a type as the language does. ``global_names`` turns a name as
    written inside a function into the names under which the debug information may
    know it, best first. ``return_probe`` says that the kernel's return probe may be set on its
    functions. ``stack_check`` says that functions begin with a check that jumps back to the first
    instruction, so that a probe there counts twice.
    ``convention_first``: its compiler never changes how a function is called, and its
    debug information is wrong about it at times.
    ``functions_meant`` names the functions of a program that a part of a name can mean; None
    where names are written whole.
    ``shared_with`` names what else has its calls in the function that such a part of a name means.
    ``pointer_indexes_array``: ``p[1]`` of a pointer to an array is an element of that array.
    ``closures``: a function value is the address of an object that begins with the code's address.
    ``type_first``: declarations name the type first.
    ``open_arrays``: an array of no or one element at the end of a structure may have more.
    ``word_int``: an ``int`` is as wide as an address.
    ``pointer_cast`` is how a value is read as a pointer to a type, ``pointer_member`` how a member
    of what a pointer leads to is named.
    ``references``: a pointer to an object is a reference to one, not into an array of them.
    ``promises_convention``: how its functions are called is written down somewhere; where it is
    not, only the debug information says where parameters are.
    ``dereferences``: references are followed, as often as there are some, where a member, an
    element or a length is asked for. ``counting`` are the methods after ``len`` and ``cap``.
    ``written`` is the table of types that it prints in a form of their own; empty without one.
    ``return_refusal`` says why returns cannot be probed in any way; empty where they can.
    ``unwound``: exceptions or panics leave functions without a return.
    ``type_rules`` is the key of its rules for types, see :mod:`fetchc.check.type_rules`; empty
    where it has none beyond C's. ``arrays_are_values``: an array is not the address of its first
    element. ``goroutines``: its functions run on goroutines, with a stack and a convention of
    their own; ``system_stack``: they run on the stack that the system gives a thread.
    ``arithmetic`` is the key of its rules for computed numbers, see :mod:`fetchc.ir.arithmetic`;
    ``truth`` is the type of a comparison. ``enumerations``: an operand of one is of its
    ``underlying`` type, or ``promoted`` to an int that holds its enumerators unless its type is
    fixed, or keeps its ``own`` type.
    ``length_type`` is the name and the sign of the type of lengths, which is as wide as an address.
    ``missing_function`` is what to know where a function is not found.
    ``cautions`` gives the warnings about any probe of a function.
    ``methods_named`` are the functions that a method of a type can be, by the names of both; it
    hides what is promoted from below. None where methods and members cannot have one name.
    """

    name: str
    spell: Callable[[Program, TypeId], str]
    global_names: Callable[[str, Function], tuple[str, ...]]
    return_probe: bool
    stack_check: bool
    pointer_indexes_array: bool
    convention_first: bool
    functions_meant: Callable[[str, Program], list[str]] | None = None
    shared_with: Callable[[str, str, Program], list[str]] | None = None
    closures: bool = False
    references: bool = False
    type_first: bool = False
    open_arrays: bool = False
    word_int: bool = False
    pointer_cast: str = "({type} *){value}"
    pointer_member: str = "({pointer})->{name}"
    type_rules: str = ""
    arrays_are_values: bool = False
    goroutines: bool = False
    system_stack: bool = False
    promises_convention: bool = True
    dereferences: bool = False
    counting: Mapping[str, str] = _NONE
    return_refusal: str = ""
    missing_function: str = ""
    arithmetic: str = "c"
    truth: str = "int"
    enumerations: str = "underlying"
    length_type: tuple[str, bool] = ("long", True)
    unwound: bool = False
    written: str = ""
    cautions: Callable[[Program, Function], tuple[Diagnostic, ...]] | None = None
    methods_named: Callable[[Program, str, str], tuple[str, ...]] | None = None
