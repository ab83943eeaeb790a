"""Random calculations, as C of a compiler, have the values of ``ir/arithmetic``."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fetchc.emit.c_calculations import Expression, Statements, c_type, either
from fetchc.ir.arithmetic import LAZY, RULES, TRUTH, Calculation, Fetched, Number, evaluate
from fetchc.ir.arithmetic import converted as as_number
from fetchc.target.machines import table
from tests.support.toolchains import require

_SEED = int(os.environ.get("FETCHC_SEEDS", "1").split("-")[0])
_MANY = 4000 if os.environ.get("FETCHC_LONG") else 80
_ROWS = 12
_POSITIONS = 8
_NUMBERS = tuple([Number(bits, signed) for bits in (8, 16, 32, 64) for signed in (False, True)])
_TWO = ("+", "-", "*", "/", "%", "&", "|", "^", "&^", "<<", ">>", "min", "max")
_COMPARED = ("==", "!=", "<", "<=", ">", ">=")
_HELPERS = ("quotient", "remainder", "multiply_unsigned", "multiply_signed")
Operand = Calculation | Fetched | float

_PROGRAM = """
#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>
{helpers}
{functions}
static void (*const all[])(const __s64 *, const bool *, bool *, __u64 *) = {{ {names} }};
int main(void)
{{
    __s64 given[{positions}];
    for (int failed; scanf("%d", &failed) == 1;) {{
        bool unread[{positions}];
        for (int n = 0; n < {positions}; n++) {{
            unread[n] = failed >> n & 1;
            scanf("%lld", &given[n]);
        }}
        for (unsigned n = 0; n < sizeof all / sizeof *all; n++) {{
            bool fault = false;
            __u64 value = 0;
            all[n](given, unread, &fault, &value);
            if (fault) printf("- "); else printf("%llu ", value);
        }}
        puts("");
    }}
}}
"""
_FUNCTION = """
static void f{number}(const __s64 *given, const bool *unread, bool *fault, __u64 *result)
{{
    (void)given; (void)unread;
    {lines}
    if ({faults}) *fault = true;
    else {{ {type} outcome = {value}; *result = (__u64)(__s64)outcome; }}
}}
"""


def drawn(chosen: random.Random, depth: int, rules: str, types: Sequence[Number]) -> Calculation:
    """A calculation of fetched values of ``types``, by position."""

    def operand(number: Number) -> tuple[Operand, Number]:
        if depth and chosen.random() < 0.6:
            inner = drawn(chosen, depth - 1, rules, types)
            return inner, inner.result
        if chosen.random() < 0.2:
            low = -(1 << number.bits - 1) if number.signed else 0
            most = (1 << number.bits) - 1
            return chosen.choice((low, low + most, 1, 7 % most, low + most // 3)), number
        at = chosen.randrange(_POSITIONS)
        return Fetched(at), types[at]

    number = chosen.choice(_NUMBERS[4:] if rules == "c" else _NUMBERS)
    kind = chosen.random()
    if kind < 0.1:
        operator = chosen.choice(("&&", "||"))
        result = chosen.choice((TRUTH, Number(32, True)))
        both = tuple([operand(number) for _ in range(2)])
        return Calculation(operator, both, TRUTH, rules, result)
    if kind < 0.2:
        both = tuple([operand(number) for _ in range(3)])
        return Calculation("?:", both, number, rules, number)
    if kind < 0.25:
        at = chosen.randrange(_POSITIONS - 3)
        index = operand(number)
        return Calculation("[]", (index, (Fetched(at), types[at])), number, rules, number, 3)
    if kind < 0.4:
        operator = chosen.choice(("-", "~", "convert", "!"))
        result = TRUTH if operator == "!" else number
        return Calculation(operator, (operand(number),), number, rules, result)
    operator = chosen.choice(_TWO + _COMPARED)
    result = chosen.choice((TRUTH, Number(32, True))) if operator in _COMPARED else number
    return Calculation(operator, (operand(number), operand(number)), number, rules, result)


def computed(node: Operand, number: Number, row: Sequence[int], failed: int) -> float | None:
    """What the language has; ``failed`` are bits of positions that could not be read."""
    if isinstance(node, Fetched):
        return None if failed >> node.position & 1 else row[node.position]
    if not isinstance(node, Calculation):
        return node

    def operand(at: int) -> float | None:
        value, own = node.operands[at]
        found = computed(value, own, row, failed)
        return None if found is None else as_number(found, own, RULES["c"])

    if node.operator in LAZY:
        found = first = operand(0)
        if first is None:
            return None
        if node.operator == "?:":
            found = operand(1 if first else 2)
        elif node.operator == "[]":
            value, own = node.operands[1]
            assert isinstance(value, Fetched)
            if not 0 <= first < node.count:
                return None
            at = value.position + int(first)
            found = None if failed >> at & 1 else as_number(row[at], own, RULES["c"])
        elif bool(first) == (node.operator == "&&"):
            found = operand(1)
        return None if found is None else as_number(found, node.number, RULES["c"])
    values = [one for at in range(len(node.operands)) if (one := operand(at)) is not None]
    if len(values) < len(node.operands):
        return None
    return evaluate(node.operator, node.number, values, RULES[node.rules])


def function(number: int, node: Calculation, types: Sequence[Number]) -> str:
    """The calculation as a function of C."""

    def fetched(position: int, index: str) -> Expression:
        at, name = str(position), statements.named("operand")
        if index:
            at = f"{position} + ({index} < {node_count} ? {index} : 0)"
        statements.lines.append(f"{c_type(types[position])} {name} = given[{at}];")
        unread = statements.named("unread_")
        statements.lines.append(f"bool {unread} = unread[{at}];")
        statements.faults.append(unread)
        return Expression(name, types[position])

    node_count = 3
    statements = Statements(fetched, AssertionError)
    value = statements.converted(statements.computed(node), node.result).text
    faults, lines = either(statements.faults) or "false", " ".join(statements.lines)
    return _FUNCTION.format(
        number=number, lines=lines, faults=faults, value=value, type=c_type(node.result)
    )


def edge(chosen: random.Random, number: Number) -> int:
    low = -(1 << number.bits - 1) if number.signed else 0
    high = low + (1 << number.bits) - 1
    return chosen.choice((low, high, 0, 1, 2, max(low, -1), high // 3, chosen.randint(low, high)))


def nodes_of(rules: str) -> tuple[list[Calculation], list[Number], random.Random]:
    """Drawn calculations, and the types of what they fetch."""
    chosen = random.Random(f"{rules}-{_SEED}")
    types = [chosen.choice((*_NUMBERS, TRUTH)) for _ in range(_POSITIONS)]
    types[1:4] = types[:1] * 3  # elements of a list have one type
    nodes = [drawn(chosen, chosen.choice((0, 1, 2, 3)), rules, types) for _ in range(_MANY)]
    # `[]` has its three elements where the types are the same.
    nodes = [node for node in nodes if "Fetched" in repr(node) and _alike(node, types)]
    return nodes, types, chosen


def differences(folder: Path, rules: str, wrong: tuple[str, str] = ("", "")) -> list[str]:
    """Each value that the compiled calculations have otherwise; ``wrong`` changes their C."""
    require("gcc")
    nodes, types, chosen = nodes_of(rules)
    functions = "".join([function(at, node, types) for at, node in enumerate(nodes)])
    text = table("backend/libbpf")["text"]
    source = _PROGRAM.format(
        helpers="".join([text[one] for one in _HELPERS]),
        functions=functions.replace(*wrong) if wrong[0] else functions,
        names=", ".join([f"f{at}" for at in range(len(nodes))]),
        positions=_POSITIONS,
    )
    (folder / "all.c").write_text(source)
    flags = ["-O1", "-Wparentheses", "-Werror=parentheses"]
    flags += ["-fsanitize=undefined", "-fno-sanitize-recover"]
    command = ["gcc", *flags, "all.c", "-o", "all"]
    subprocess.run(command, cwd=folder, check=True, timeout=600)
    rows = [[edge(chosen, one) for one in types] for _ in range(_ROWS)]
    failed = [0] * (_ROWS // 2) + [1 << n % _POSITIONS for n in range(_ROWS - _ROWS // 2)]
    lines = [
        " ".join(map(str, [bits, *[one if one < 1 << 63 else one - (1 << 64) for one in row]]))
        for bits, row in zip(failed, rows, strict=True)
    ]
    ran = subprocess.run(
        ["./all"], cwd=folder, input="\n".join(lines), capture_output=True, text=True, check=True
    )
    found = []
    for bits, row, line in zip(failed, rows, ran.stdout.splitlines(), strict=True):
        for node, got in zip(nodes, line.split(), strict=True):
            value = computed(node, node.result, row, bits)
            if value is not None:
                value = as_number(value, node.result, RULES["c"])
            wanted = "-" if value is None else str(int(value) & (1 << 64) - 1)
            if got != wanted:
                found.append(f"{node} of {row} without {bits:b}: {got} is not {wanted}")
    return found


def _alike(node: Operand, types: Sequence[Number]) -> bool:
    if not isinstance(node, Calculation):
        return True
    if node.operator == "[]":
        first = node.operands[1][0]
        assert isinstance(first, Fetched)
        if len(set(types[first.position : first.position + node.count])) != 1:
            return False
    return all(_alike(one, types) for one, _ in node.operands)


@pytest.mark.parametrize("rules", list(RULES))
def test_calculations_in_c_have_the_values_of_the_language(rules: str, tmp_path: Path) -> None:
    assert differences(tmp_path, rules)[:3] == []


@pytest.mark.parametrize(("right", "wrong"), [(" < ", " <= "), (" - ", " + ")])
def test_a_wrong_operator_is_noticed(right: str, wrong: str, tmp_path: Path) -> None:
    assert differences(tmp_path, "go", (right, wrong))


@pytest.mark.parametrize("rules", list(RULES))
def test_clang_compiles_calculations_for_bpf(rules: str, tmp_path: Path) -> None:
    require("clang")
    nodes, types, _ = nodes_of(rules)
    text = table("backend/libbpf")["text"]
    source = "#include <linux/types.h>\n#include <stdbool.h>\n#define __always_inline inline\n"
    source += "".join([text[one] for one in _HELPERS])
    source += "".join([function(at, one, types) for at, one in enumerate(nodes)])
    (tmp_path / "all.c").write_text(source.replace("static void", "void"))
    include = next(Path("/usr/include").glob("*/asm")).parent
    command = ["clang", "-O2", "-target", "bpf", "-w", f"-I{include}", "-c", "all.c"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=600)
