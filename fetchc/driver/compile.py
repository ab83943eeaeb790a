"""One argument through all passes."""

from __future__ import annotations

from fetchc.check.checker import Checker
from fetchc.check.probe_site import ProbePoint
from fetchc.check.typed_tree import AssumedCount, Constant
from fetchc.diag.diagnostic import CompileError, Diagnostic, Label, reject
from fetchc.ir.fetch import (
    Bits,
    Decode,
    ElementAddress,
    Fetch,
    Scalar,
    ThreadPointer,
    Word,
    body,
    chain,
)
from fetchc.ir.fetch_rules import verify
from fetchc.lower.arguments import lower
from fetchc.record import Record
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.typed_tree import Typed
    from fetchc.check.walks import Walked
    from fetchc.ir.arithmetic import Calculation
    from fetchc.lower.fetches import Lowered
    from fetchc.syntax.tree import Argument, Format
    from fetchc.target.kernel_versions import Kernel

__all__ = ["Compiled", "Part", "accepted", "compile_argument", "for_kernel", "varies"]


class Part(Record):
    """One fetch-arg of an argument: the value, a companion, or a member of a whole.

    ``body`` is empty where no fetch-arg is the value: of a walk, of which ``entry`` is what is
    fetched of each entry, by name, of an element whose place is computed, and of a thread-local
    variable.
    """

    suffix: str
    fetch: Fetch
    body: str
    decode: Decode
    type: str
    companion: bool
    entry: tuple[Compiled, ...] = ()


class Compiled(Record):
    """An argument that the kernel will take.

    ``name`` is the user's, None where none was given. ``type`` is the expression's, as
    its language writes it. ``computed``: the value is what that gives for the parts, and ``decode``
    what its result means.
    """

    text: str
    name: str | None
    type: str
    parts: tuple[Part, ...]
    warnings: tuple[Diagnostic, ...]
    computed: tuple[Calculation, Decode] | None = None


def compile_argument(
    argument: Argument,
    text: str,
    found: ProbePoint,
    kernel: Kernel,
    whole: bool,
    computes: bool = False,
) -> Compiled:
    """Compile one argument at a site.

    ``whole`` asks for companions and members, where one fetch-arg does not hold it all.
    ``computes``: it is for a program that computes what operators give, and walks containers.
    Raises CompileError with every problem that one pass finds.
    """
    checker = Checker(found.site)
    node = checker.check(argument.expression)
    if checker.walk is not None and not computes:
        raise _walked(checker.walk)
    if checker.index is not None and not computes:
        raise varies(checker.index)
    if checker.walk is not None:
        part = _elements(checker, checker.walk, node, argument.format)
        type = checker.spell(node.type)
        return Compiled(text, argument.name, type, (part,), tuple(checker.warnings))
    lowered, computed = _lowered(checker, node, argument.format, whole, computes)
    if any(not isinstance(one, AssumedCount) for one in checker.assumptions):
        from fetchc.lower.assumptions import companions, unchecked

        if whole:
            lowered += companions(checker)
        checker.warnings += unchecked(checker, whole)
    span = argument.expression.span
    if any(isinstance(one.fetch.store, Bits) and one.decode.signed for one in lowered):
        checker.warnings.append(_unsigned(span))
    parts = []
    for one in lowered:
        fetch = one.fetch if argument.format is not None else for_kernel(one.fetch, kernel)
        start = chain(fetch.value)[0]
        bodiless = computes and isinstance(start, ElementAddress | ThreadPointer)
        if not bodiless:
            accepted(found, fetch, kernel, span)
        parts.append(
            Part(
                one.suffix,
                fetch,
                "" if bodiless else body(fetch),
                one.decode,
                checker.spell(one.type),
                one.companion,
            )
        )
    return Compiled(
        text,
        argument.name,
        checker.spell(node.type),
        tuple(parts),
        tuple(checker.warnings),
        computed,
    )


def _lowered(
    checker: Checker, node: Typed, format: Format | None, whole: bool, computes: bool
) -> tuple[tuple[Lowered, ...], tuple[Calculation, Decode] | None]:
    # What is fetched of a value, and what computes it of that.
    if computes:
        from fetchc.lower.operation_plan import calculation

        given = calculation(checker, node, format, lower)
        if given is not None:
            return given[1], (given[0], given[2])
    if format is None:
        return lower(checker, node, whole), None
    from fetchc.lower.argument_formats import formatted

    return (formatted(checker, node, format),), None


def _elements(checker: Checker, walked: Walked, node: Typed, format: Format | None) -> Part:
    # The walk, and what is fetched of each element: the value, before it the key.
    from fetchc.lower.assumptions import unchecked
    from fetchc.lower.walks import walk

    wanted = [("value", node, format)]
    if walked.key is not None and walked.wanted is None:
        wanted.insert(0, ("key", walked.key, None))
    entry = []
    for name, one, shown in wanted:
        lowered, computed = _lowered(checker, one, shown, True, True)
        parts = [
            Part(each.suffix, each.fetch, "", each.decode, checker.spell(each.type), each.companion)
            for each in lowered
        ]
        entry.append(
            Compiled(f"the {name}", name, checker.spell(one.type), tuple(parts), (), computed)
        )
    checker.warnings += unchecked(checker, whole=False)
    fetch = Fetch(walk(checker, walked), Word())
    return Part("", fetch, "", Decode("list"), checker.spell(node.type), False, tuple(entry))


def _walked(walk: Walked) -> CompileError:
    from fetchc.check.walks import Strided

    help = "`fetchc trace` and `--format bpf-c` walk the container by an eBPF program"
    if isinstance(walk.way, Strided) and isinstance(walk.way.count, Constant):
        help += "; without `list` the array is a fetch-arg"
    what = "the elements are found one after the other, and a fetch-arg has no loop"
    return reject("FC0314", what, walk.span, "has to be walked", help=help)


def varies(index: Span | None = None) -> CompileError:
    """FC0314: an index is known when the program runs."""
    what = "a fetch-arg cannot compute the place of an element"
    help = "`fetchc trace`, `--format bpftrace` and `--format bpf-c` compute the place"
    return reject("FC0314", what, index, "this index varies", help=help)


def for_kernel(fetch: Fetch, kernel: Kernel) -> Fetch:
    """``fetch`` as ``kernel`` can have it: before 4.9 there is no xN, and uN is hexadecimal."""
    store = fetch.store
    if not isinstance(store, Scalar) or store.kind != "x":
        return fetch
    if kernel.version >= kernel.store("hexadecimal").first:
        return fetch
    return Fetch(fetch.value, Scalar("u", store.bits))


def _unsigned(span: Span) -> Diagnostic:
    return Diagnostic(
        "FC0608",
        "the kernel prints these bits unsigned: a negative number shows as a large one",
        Label(span, "a signed number in part of a word"),
        notes=("in the JSON form, `decode` has the width and the sign",),
    )


def accepted(found: ProbePoint, fetch: Fetch, kernel: Kernel, span: Span) -> None:
    """Raise CompileError, about ``span``, where the kernel would refuse or mangle ``fetch``."""
    machine = found.site.architecture
    problems = verify(fetch, kernel, found.site.probe_kind, machine.named)
    if machine.word_bytes != kernel.word_bytes:
        from fetchc.ir.fetch_rules import misread

        misleading = misread(fetch, machine, kernel)
        problems += () if misleading is None else (misleading,)
    if problems:
        raise CompileError(
            tuple(
                p.replaced(primary=p.primary or Label(span, "the kernel rejects it"))
                for p in problems
            )
        )
