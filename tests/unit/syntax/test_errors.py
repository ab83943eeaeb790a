"""What is refused, why, and where the reason is underlined."""

from __future__ import annotations

import re

import pytest

from fetchc.diag.diagnostic import CompileError, Diagnostic
from fetchc.syntax import expression_tables
from fetchc.syntax.expression_parser import parse_argument, parse_point, parse_type
from fetchc.syntax.lalr import END, Unexpected, run
from fetchc.syntax.syntax_errors import EXAMPLES, Message, accepted, message_for
from fetchc.syntax.tree import BRACKETS, DEPTH, LENGTH

TERMINALS = set(re.findall(r"\?P<(\w+)>", expression_tables.PATTERN)) | {"$END"}
RULES = {rule[0] for rule in expression_tables.RULES} | {
    rule[2] for rule in expression_tables.RULES
}


def refused(text: str) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        parse_argument(text)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def underlined(text: str, diagnostic: Diagnostic) -> str:
    assert diagnostic.primary is not None
    return text[diagnostic.primary.span.start : diagnostic.primary.span.end]


class _Nothing:
    def __getattr__(self, name: str) -> object:
        return lambda parts, span: None


@pytest.mark.parametrize(
    ("row", "example"),
    [(row, example) for row in EXAMPLES for example in row.examples],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_example_gets_its_own_message(row: Message, example: str) -> None:
    with pytest.raises(Unexpected) as caught:
        run(expression_tables, "argument", example, _Nothing())
    assert message_for("argument", caught.value) is row
    assert refused(example).code == "FC0101"


def test_labels_are_short() -> None:
    assert all(len(row.label.split()) <= 8 for row in EXAMPLES)


@pytest.mark.parametrize(
    ("text", "message", "span"),
    [
        ("a->", "expected a field name after `->`", "->"),
        ("a.%x", "expected a field name after `.`", "%x"),
        ("a[0", "unclosed `[`", "["),
        ("f((a)", "unclosed `(`", "("),
        ("a)", "`)` has no opening bracket", ")"),
        ("(a]", "`]` cannot close `(`", "("),
        ("a[int *]", "an index must be a number", "int *"),
        ("a[1, int *]", "an index must be a number", "1"),
        ("[]byte(int *)", "`byte` takes a value, not a type", "int *"),
        ("a b", "`b` begins a second expression", "b"),
        ("a[0] sizeof(b)", "`sizeof(` begins a second expression", "sizeof("),
        ("a and b", "`and` joins no values", "and"),
        ("a == 1 or b", "`or` joins no values", "or"),
        ("a > 1500ms", "`1500ms` is not a number", "1500ms"),
        ("a : u8 : s8", "only one format can follow an expression", ":"),
        ("f(a : u8)", "expected `,` or `)` before `:`", ":"),
        ("[]a", "expected a value in parentheses after the type", "a"),
        ("[]byte - b", "expected a value in parentheses after the type", "-"),
        # No `<` is open, though a type stands there as in `a<b c`.
        ("sizeof(long int x)", "expected `)` before `x`", "x"),
        ("(map[long int x]b)a", "expected `]` before `x`", "x"),
        ("a as b c", "`c` begins a second expression", "c"),
        ("a + * ", "expected a value after `*`", "*"),
        ("a + ]", "`]` has no opening bracket", "]"),
        ("a + , b", "expected a value after `+`", ","),
        ("a + @f", "expected a value after `+`", "@"),
        ("+a", "an argument begins with a value", "+"),
        ("(char __user *)a", "the kernel's annotations are not supported in a type", "__user"),
        ("(__user char *)a", "the kernel's annotations are not supported in a type", "char"),
        ("+0(%di):u64", "this is a fetch-arg, not an expression", "+"),
        ("n=-8(%bp)", "this is a fetch-arg, not an expression", "("),
        ("./server", "an argument begins with a value", "."),
        ("(a+b)c", "expected an operator between these two values", "(a+b)"),
        ("(a+b*)c", "expected a value after `*`", ")"),
        ("f(int *)", "`f` takes a value, not a type", "int *"),
        ("fd & ", "expected a value after `&`", "&"),
        ("a ==", "expected a value after `=`", "="),
        ("a ? b", "the expression ends too early", "b"),
        ("a & b == c", "`&` beside `==` groups differently in C and in Go", "&"),
        ("1 << n + 1", "`<<` beside `+` groups differently in C and in Go", "<<"),
        ("a.&b", "expected a field name after `.`", "&"),
        ("12abc", "`12abc` is not a number", "12abc"),
        ("08", "`08` is not a number", "08"),
        ("a[0x1ffffffffffffffff]", "`0x1ffffffffffffffff` needs more than 64 bits",
         "0x1ffffffffffffffff"),
        ("a:u7", "`u7` is not a format", "u7"),
        ("a:u8[n]", "a format's count must be a number", "n"),
        ("(a?.b)", "`?` has no meaning in an expression", "?"),
        ("(int*?)a", "`?` comes directly after a type's name", "?"),
        ("(int??)a", "`?` comes directly after a type's name", "?"),
        ("((int, a+b))c", "the elements of a tuple type are types", "a+b"),
        ('"a"', "a string in quotes is not a value", '"'),
        ("c == 'ab'", "a string in quotes is not a value", "'"),
        (r"c == '\q'", r"there is no escape `\q`", r"'\q'"),
        ("c == 'é'", "the number of `é` depends on the language", "'é'"),
        (r"c == '\xff'", r"the number of `\xff` depends on the language", r"'\xff'"),
        ("a\0b", "the character U+0000 is not printable", "\0"),
        ("a\udc80", "the character U+DC80 is not printable", "\udc80"),
        ("a@", "expected a probe point: a function, `FILE:LINE` or an address", "@"),
        ("a@f+4%return", "a probe point has only one of `+OFFSET`, `:LINE` and `%return`", "f+4"),
        ("a@f:0", "`0` is not a line number", "0"),
        ("a@f+0x", "`0x` is not a number", "0x"),
        ("a@f\x01", "a control character (code 1) in a probe point", "\x01"),
        ("sizeof(char *[4]*)", "`*` cannot follow `[N]` in a type", "*"),
        ("sizeof(unsigned long[4][])", "an array of C# has no count in its type", "[]"),
        ("sizeof(*unsigned long[])", "C# has no pointers to arrays", "*unsigned long[]"),
        ("(a<b>)", "`<` begins a template's arguments, which only a type has", "a<b>"),
    ],
)  # fmt: skip
def test_messages(text: str, message: str, span: str) -> None:
    diagnostic = refused(text)
    assert (diagnostic.code, diagnostic.message) == ("FC0101", message)
    assert underlined(text, diagnostic) == span


@pytest.mark.parametrize(
    ("text", "some", "missing"),
    [
        ("a as b", {"PLUS", "COLON", END}, {"RPAR", "COMMA"}),
        ("f(a as b", {"RPAR", "COMMA"}, {"COLON", END}),
    ],
)
def test_what_the_parser_accepts_depends_on_what_is_open(
    text: str, some: set[str], missing: set[str]
) -> None:
    with pytest.raises(Unexpected) as caught:
        run(expression_tables, "argument", f"{text} b", _Nothing())
    terminals = accepted(caught.value.states)
    assert some <= terminals
    assert not missing & terminals
    state = expression_tables.STATES[caught.value.states[-1]]
    assert missing <= state.keys()  # the state alone would say otherwise


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
def test_empty(text: str) -> None:
    assert refused(text).code == "FC0104"
    with pytest.raises(CompileError, match="FC0104"):
        parse_point(text)
    with pytest.raises(CompileError, match="FC0104"):
        parse_type(text)


@pytest.mark.parametrize("text", ["1a=x", "é=x", "a::b=x", "12=x"])
def test_argument_names(text: str) -> None:
    diagnostic = refused(text)
    assert diagnostic.code == "FC0207"
    assert underlined(text, diagnostic) == text[:-2]


@pytest.mark.parametrize(
    "text",
    [
        "a" * (LENGTH + 1),
        "x" * 10_000,
        "(" * 1000 + "a" + ")" * 1000,
        "a" + "[" * 1000,
        "a" + "[0]" * 1000,
        "*" * 1000 + "a",
        "-" * 1000 + "1",
        "a" + ".b" * 1000,
        "a" + "+1" * 1000,
        "a[" + "1+" * 1000 + "1]",
        "a[" + "-" * 1000 + "1]",
        "(T)" * 1000 + "x",
        "(" + "*" * 1000 + "T)(x)",
        "(T" + "*" * 1000 + ")(x)",
        "sizeof(struct s " + "*" * 1000 + ")",
        "x.(" + "[]" * 1000 + "int)",
        "f(" * 1000 + "x" + ")" * 1000,
    ],
    ids=lambda text: text[:12],
)
def test_too_long_or_too_deep(text: str) -> None:
    assert refused(text).code == "FC0102"


def test_limits_are_inclusive() -> None:
    parse_argument("a" * LENGTH)
    parse_argument("(" * BRACKETS + "a" + ")" * BRACKETS)
    parse_argument("*" * (DEPTH - 3) + "a")


@pytest.mark.parametrize("text", ["5", "*", "[4]", "map[", "s s", "struct s, b", "a.", "[]"])
def test_types_that_are_none(text: str) -> None:
    with pytest.raises(CompileError, match="FC0101"):
        parse_type(text)


def test_no_message_speaks_of_the_grammar() -> None:
    pieces = ["a", "->", ".", "[", "]", "(", ")", "0", "*", "&", "-", "/", ",", ":", "<", ">", "=",
              "$x", "%x", "sizeof(", "offsetof(", "struct s", "unsigned int", "@f",
              "@3"]  # fmt: skip
    prefixes = [p for row in EXAMPLES for e in row.examples for p in (e, e[:-1])]
    for prefix in prefixes:
        for piece in pieces:
            try:
                parse_argument(f"{prefix} {piece}")
            except CompileError as error:
                said = error.diagnostics[0].message
                words = set(re.findall(r"[\w$]+", re.sub(r"`[^`]*`", "", said)))
                assert not words & TERMINALS, said
                assert not {word for word in words if "_" in word} & RULES, said
                assert "{" not in said


def test_what_a_shell_leaves_of_an_arrow_is_explained() -> None:
    with pytest.raises(CompileError) as caught:
        parse_argument("p-")  # of p->member, the rest of which became a file's name
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "expected a value after `-`"
    assert diagnostic.help == "to write `p->member` in a shell, quote it: `'p->member'`"
