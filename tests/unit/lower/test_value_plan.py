"""Plans of values, walked by a third policy: what a program with loads of its own would read.

It writes a load as ``size@address``, with what decides whether or how often it is done. Like any
policy it asks no types.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.check.checker import Checker
from fetchc.check.typed_tree import Computed, Conditional, Dispatched, Typed
from fetchc.ir.fetch import Fetch, Word, body
from fetchc.lower import aggregate_plan as plans
from fetchc.lower.fetches import Lowered, Memory, load_word, number, pointed, scalar
from fetchc.lower.operation_plan import OperationPlan
from fetchc.lower.printed_values import ClosurePlan, FormPlan, SumPlan
from fetchc.lower.string_plan import CountedStringPlan, StringPlan
from fetchc.lower.value_plan import NumberPlan, plan
from fetchc.record import assert_never
from fetchc.syntax.expression_parser import parse_argument
from tests.support.programs import fixture


class Loads:
    """The loads of one value, as text."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker

    def of(self, node: Typed) -> str:
        """The loads of a value: nested as its plan is."""
        checker = self.checker
        match planned := plan(checker, node, reader=True):
            case NumberPlan(node=inner, scalar=described):
                return body(scalar(checker, inner, described).fetch)
            case Lowered(fetch=fetch):
                return body(fetch)
            case StringPlan(node=inner):
                return f"until NUL {self.address(pointed(checker.site, inner), inner)}"
            case CountedStringPlan(length=length):
                assert planned.encoding == "text"
                start = self.address(pointed(checker.site, planned.first), planned.node)
                return f"{self.word(length)} bytes {start}"
            case plans.EntryCountPlan(count=count):
                return f"count {self.word(count)}"
            case plans.ArrayPlan(node=inner, count=count):
                each = self.of(plans.element(checker, inner, 0))
                return f"{count} times {each}"
            case plans.SlicePlan(node=inner, length=length):
                return f"{self.word(length)} times {self.of(plans.element(checker, inner, 0))}"
            case plans.StructPlan(node=inner, layout=layout):
                members = [
                    f"{one.name}={self.of(plans.member(checker, inner, one))}"
                    for one in plans.members(checker, layout)
                ]
                return f"{{{', '.join(members)}}}"
            case plans.EnumPlan(tag=tag):
                assert tag is not None
                cases = [
                    f"{one.value}: {self.of(one.fields) if one.count else one.name}"
                    for one in plans.variants(checker, planned)
                ]
                return f"{self.word(tag)} of {{{', '.join(cases)}}}"
            case plans.RangePlan(node=ranged):
                high = ranged.high if isinstance(ranged.high, int) else self.of(ranged.high)
                return f"{high} times {self.of(plans.range_element(checker, planned, 0))}"
            case plans.InterfacePlan(words=words):
                return " and ".join([self.word(word) for _, word in words])
            case FormPlan(form=form, parts=parts):
                return f"{form} {', '.join([self.word(one.node) for one in parts])}"
            case OperationPlan(operator=operator, operands=operands):
                sides = [self.of(one.node) for one in operands]
                return f" {operator} ".join(sides)
            case Computed() | Conditional() | Dispatched() | ClosurePlan() | SumPlan():
                raise AssertionError(f"not in this test: {planned!r}")
            case (
                plans.SequencePlan() | plans.CellPlan() | plans.VectorPlan()
                | plans.SizedStringPlan() | plans.ReferencePlan() | plans.WideStringPlan()
                | plans.AddressPlan() | plans.ChoicePlan()
                | plans.OptionalPlan() | plans.NotationPlan() | plans.HalvesPlan()
                | plans.UnfetchablePlan()
            ):  # fmt: skip
                raise AssertionError(f"not in this test: {planned!r}")
            case _:
                assert_never(planned)

    def word(self, node: Typed) -> str:
        return body(number(self.checker, node).fetch)

    def address(self, found: Memory, node: Typed) -> str:
        return body(Fetch(load_word(self.checker.site, found, node.span), Word()))


def loads(path: Path, function: str, expression: str) -> str:
    program = fetchc.open(str(path))
    at = "body" if path == RUST else None
    probe = program.probe(next(iter(program.functions(function))), at, kernel="6.1")
    checker = Checker(probe._found.site)
    return Loads(checker).of(checker.check(parse_argument(expression).expression))


C, GO = fixture("c/layouts/gcc-O2-dwarf5"), fixture("go/dnsforward/go1.27")
FEATURES, RUST = fixture("go/features/go1.27"), fixture("rust/requests/rustc-O0")
SERVER = "main.(*server).handleRequest"


@pytest.mark.parametrize(
    ("path", "function", "expression", "expected"),
    [
        (C, "visit", "depth", "%si:s32"),
        (C, "flags", "b->five", "+0(%di):b5@1/8"),
        (C, "visit", "r->in", "{s=+80(%di):s16, i=+84(%di):s32}"),
        (C, "visit", "r->text", "until NUL +0(+136(%di))"),
        (C, "visit", "r->words", "3 times until NUL +0(+232(%di))"),
        (
            C,
            "visit",
            "*r->head",
            "{value=+0(+288(%di)):s32, next=+8(+288(%di)):x64, label=until NUL +0(+16(+288(%di)))}",
        ),
        (C, "visit", "r->list[0:depth]", "%si:s32 times {s=+192(%di):s16, i=+196(%di):s32}"),
        (GO, SERVER, "r->Question[0].Name", "+8(+40(%di)):s64 bytes +0(+0(+40(%di)))"),
        (
            GO,
            SERVER,
            "r->Question",
            "+48(%di):s64 times {Name=+8(+40(%di)):s64 bytes +0(+0(+40(%di))), "
            "Qtype=+16(+40(%di)):u16, Qclass=+18(+40(%di)):u16}",
        ),
        (GO, SERVER, "w", "%bx:x64 and %cx:x64"),
        (
            FEATURES,
            "main.(*store).get",
            "*s",
            "{values=count +0(+0(%ax)):s64, hits=+8(%ax):s32}",
        ),
        (RUST, "*8requests5visit17*", "o", "+80(%sp):u64 of {0: None, None: {__0=+80(%sp):x64}}"),
    ],
)
def test_loads(path: Path, function: str, expression: str, expected: str) -> None:
    assert loads(path, function, expression) == expected
