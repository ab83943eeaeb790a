"""The diagnostics of syntax errors, in the terms of the user.

:mod:`fetchc.syntax.expression_parser` imports this when there is an error. The message comes from
the first of these that has one: the character, the brackets, the table of malformed examples,
the tokens that the parser would accept.
"""

from __future__ import annotations

import functools
import re

from fetchc.diag.diagnostic import reject
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax import expression_tables
from fetchc.syntax.lalr import END, Unexpected, run
from fetchc.syntax.tree import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.diagnostic import CompileError

__all__ = [
    "ANNOTATION",
    "BEGINNINGS",
    "EXAMPLES",
    "Message",
    "accepted",
    "explain",
    "kernel_format",
    "message_for",
]

# ------------------------------------------------------------------------------
# A table of malformed examples, each with its diagnostic.
#
# The parser stops at each example in some state before some token; an error in the same place,
# where the same brackets can be closed, gets the same message. tests/unit/syntax/test_errors.py
# checks that every example gets its own row's message. ``{before}`` is the last token before the
# error, ``{token}`` the one that cannot follow it, ``{text}`` the whole string.


class Message(Record):
    """A message, a label of at most eight words, one action, and examples."""

    message: str
    label: str
    help: str | None
    examples: tuple[str, ...]


# The kernel's annotations for sparse: `__user`.
ANNOTATION = Message(
    "the kernel's annotations are not supported in a type",
    "beside an annotation",
    "leave it out; `:ustring` reads a string in the memory of the running program",
    ("(char __user *)a", "(__user char *)a", "((struct s __user *)a)->b"),
)

# Strings that are no expressions, by how they begin.
BEGINNINGS = (
    (
        r"(\w+=)?[+-][us]?\d+\(",
        Message(
            "this is a fetch-arg, not an expression",
            "the kernel's notation",
            "`fetchc check` and `fetchc explain` take fetch-args",
            ("+0(%di):u64", "n=+0(+8(%di))", "-8(%bp)"),
        ),
    ),
    (
        r"\.{0,2}/",
        Message(
            "an argument begins with a value",
            "a path",
            "a program to start comes after `--`, with its arguments; the one to probe after `-x`",
            ("./server", "/bin/ls"),
        ),
    ),
)

EXAMPLES = (
    Message(
        "expected a field name after `{before}`",
        "a field name is missing",
        None,
        ("a->", "a.", "a->5", "a.%x", "a->[1]", "a.[1]", "a..b", "a->.b", "a->(b)", "a->*b",
         "a.%x", "a->$x", "a.->b", "a->a/b.c", "a. @f", "a-> :u8", "(a->)", "(a.)", "f(a.)"),
    ),
    Message(
        "expected a type between the parentheses",
        "a type is missing",
        "name the type that the interface holds, as in `x.(*dns.Msg)`",
        ("a.()", "a.(5)", "a.(.b)", "a.($x)", "a.(+)"),
    ),
    Message(
        "expected an index between the brackets",
        "an index is missing",
        "write a number, `a[0]`, or a range, `a[0:4]`",
        ("a[)", "a[+]", "a[.b]"),
    ),
    Message(
        "a range has two numbers",
        "too many",
        "write `a[0:4]` for the elements from 0 up to 3",
        ("a[1:2:3:4]", "a[:2:3:4]", "a[1::3]", "a[1:2:]"),
    ),
    Message(
        "one pair of brackets has one index",
        "a second one",
        "index again for each dimension: `a[1][2]`",
        ("a[1,2:3]",),
    ),
    Message(
        "expected a value between the parentheses",
        "a value is missing",
        None,
        ("()", "a+()", "(+)", "(.b)"),
    ),
    Message(
        "expected a value after `{before}`",
        "a value is missing",
        "to write `p->member` in a shell, quote it: `'p->member'`",
        ("a-", "a.b-", "a[0]-"),
    ),
    Message(
        "expected a value in parentheses after the type",
        "no value to convert",
        "write the conversion as `[]byte(x)`",
        ("[]a", "[]a-b", "[]a, b", "[]a/b", "[]a:u8"),
    ),
    Message(
        "expected a value to cast",
        "a value is missing",
        None,
        ("(struct s *)", "(struct s *)+1", "(T *)", "(T *)/2", "([]byte)", "(unsigned long).a"),
    ),
    Message(
        "the name before `=` is one identifier",
        "not an argument's name",
        "write it as `name=expression`; to compare, write `==`",
        ("a.b = c", "a->b = c", "a[0] = c", "(a) = c", "$a = c", "%a = c", "a + b = c",
         "a = b = c", "a@12 = b"),
    ),
    Message(
        "only a variable's name can be followed by `@LINE`",
        "not after a name",
        "a probe point is a function, `FILE:LINE` or an address",
        ("a.b@12", "a->b@12", "a[0]@12", "$a@12", "5@12", "(a)@12", "a@12@13", "a:u8@12"),
    ),
    Message(
        "expected a format after `:`",
        "a format is missing",
        "write one of u8, s32, x64, char, string, symbol, ...",
        ("a:", "a:5", "a: @f", "a:*", "a:(u8)", "a::", "a:$x"),
    ),
    Message(
        "only one format can follow an expression",
        "a second one",
        None,
        ("a:u8:u8", "a:u8[4]:u8"),
    ),
    Message(
        "expected a count between the brackets",
        "a count is missing",
        "write a number, as in `u8[4]`",
        ("a:u8[]", "a:u8[*]"),
    ),
    Message(
        "only a probe point can follow a format",
        "not expected here",
        None,
        ("a:u8 b", "a:u8 + 1", "a:u8.b", "a:u8->b", "a:u8[4] + 1", "a:u8[4][5]", "a:u8, b"),
    ),
    Message(
        "one argument has one expression",
        "another argument?",
        "give each expression as an argument of its own",
        ("a, b", "a.b, c", "a[0], b", "(a), b", "5, b", "$a, b", "a + b, c"),
    ),
    Message(
        "a fetch-arg cannot call a function",
        "a call",
        "probe that function and fetch its result: `-f FUNCTION --return '$retval'`",
        ("a[0](b)", "$a(1)", "5(a)", "(a)[0](b)"),
    ),
    Message(
        "expected a value after `{before}`",
        "a value is missing",
        "end a template's arguments with `>`; to compare, write a value on each side",
        ("a<", "a >", "a >=", "a & ", "a <<", "a ||"),
    ),
    Message(
        "a C++ cast has its operand in parentheses",
        "not in parentheses",
        "write it as `static_cast<T *>(e)`",
        ("static_cast<T *>a", "static_cast<T *>", "static_cast<T>*a"),
    ),
    Message(
        "a name within a template's type is not supported",
        "not supported",
        None,
        ("a<b>::c", "a.b<c>::d"),
    ),
    Message(
        "`sizeof` takes one expression or type",
        "not expected here",
        None,
        ("sizeof()", "sizeof(a, b)", "sizeof(struct s, b)"),
    ),
    Message(
        "`offsetof` takes a type and a path of members",
        "not expected here",
        "write it as `offsetof(struct s, a.b[2])`",
        ("offsetof()", "offsetof(5)", "offsetof(struct s)", "offsetof(s)", "offsetof(s *)",
         "offsetof(s, )", "offsetof(s, 5)"),
    ),
    Message(
        "`container_of` takes a pointer, a type and a path of members",
        "not expected here",
        "write it as `container_of(p, struct s, list)`",
        ("container_of()", "container_of(p)", "container_of(p, )", "container_of(p, 5)",
         "container_of(p, s)", "container_of(p, s, )", "container_of(p, s, 5)",
         "container_of(p, struct s)"),
    ),
    Message(
        "a path has members and indices only",
        "not part of a path",
        "write it as `a.b[2]`",
        ("offsetof(s, a, b)", "offsetof(s, a->b)", "offsetof(s, a b)", "offsetof(s, a.b + 1)",
         "offsetof(s, a[2], b)", "offsetof(s, a[2] + 1)", "container_of(p, s, a, b)"),
    ),
)  # fmt: skip


_PAIRS = {")": "(", "]": "["}
_CLOSERS = {"COMMA": "`,`", "RPAR": "`)`", "RSQB": "`]`", "MORETHAN": "`>`"}
# Terminals that begin a value and cannot continue one.
_VALUES = frozenset(
    ("NAME", "PATH", "QUOTED", "CHARACTER", "INTEGER", "NUMBER", "SPECIAL", "REGISTER",
     "CALL", "SIZEOF", "OFFSETOF", "CONTAINER_OF", "NAMED_CAST")
)  # fmt: skip


class _NoActions:
    """A builder that builds nothing: only where the parser stops is of interest."""

    def __getattr__(self, name: str) -> object:
        return lambda children, span: None


def explain(text: str, start: str, problem: Unexpected) -> CompileError:
    """The diagnostic (FC0101) of the syntax error ``problem`` in ``text``."""
    token = problem.token
    elsewhere = _of_another_tool(text, start, token.span.start)
    at = token.span.start
    if text[at - 1 : at + 1] == "?.":  # `(a?.b)`, where a type could have stood
        return _strange_character(text, "?", Span(at - 1, at))
    null = token.text in ("?", "!") and text[token.span.end : token.span.end + 1] == "."
    if token.kind == "STRING" and elsewhere is None:
        return _strange_character(text, '"', Span(at, at + 1))
    if (not token.kind or null) and elsewhere is None:
        return _strange_character(text, token.text, token.span)
    brackets = _brackets(text, token.span.start, token.kind == END, token.text)
    if brackets is not None and elsewhere is None:
        return brackets
    before = _before(text, token.span.start)
    row = elsewhere or message_for(start, problem)
    row = row or _by_expectation(start, problem, before)
    span = token.span
    if token.kind == END and before is not None:
        span = before
    elif token.kind == "POINT":
        span = Span(span.start, span.start + 1)
    piece = "" if before is None else shown(text[before.start : before.end])
    message = row.message.replace("{before}", piece)
    message = message.replace("{token}", shown(text[span.start : span.end]))
    help = row.help and row.help.replace("{text}", shown(text))
    return reject("FC0101", message, span, row.label, help=help)


def _of_another_tool(text: str, start: str, stop: int) -> Message | None:
    # What the parser does not see: how the whole string begins.
    if start != "argument":
        return None
    if re.search(r"\(.*\b__(user|kernel|iomem|percpu|rcu|force)\b.*\)", text):
        return ANNOTATION
    return next((one for begins, one in BEGINNINGS if re.match(begins, text)), None)


def message_for(start: str, problem: Unexpected) -> Message | None:
    """The row of the table whose examples stop in the same place, if there is one."""
    if start != "argument":
        return None
    terminals = accepted(problem.states)
    same_state = None
    for state, kind, closers, row in _stops():
        if state != problem.states[-1] or not closers <= terminals:
            continue
        if kind == problem.token.kind:
            return row
        if not terminals & {"PLUS", "SPECIAL"}:  # else it is the token that says what is wrong
            same_state = same_state or row
    return same_state


def accepted(states: list[int]) -> frozenset[str]:
    """The terminals that the parser accepts on top of ``states``.

    A state alone says too much: LALR merges states, so that one in a type accepts ``>`` where no
    ``<`` is open. Only after its reductions does the parser refuse that.
    """
    return frozenset(
        kind for kind in expression_tables.STATES[states[-1]] if _accepts(states, kind)
    )


def _accepts(states: list[int], kind: str) -> bool:
    if not (kind.isupper() or kind == END):
        return False  # the name of a rule
    stack = list(states)
    while True:
        move = expression_tables.STATES[stack[-1]].get(kind)
        if move is None or move >= 0:
            return move is not None
        symbol, count, _, _ = expression_tables.RULES[-1 - move]
        del stack[len(stack) - count :]
        stack.append(expression_tables.STATES[stack[-1]][symbol])
        if kind == END and stack[-1] in [last for _, last in expression_tables.STARTS.values()]:
            return True


@functools.cache
def _stops() -> tuple[tuple[int, str, frozenset[str], Message], ...]:
    # Where the parser stops at each example: its state, the kind of the token, and which brackets
    # it could close there.
    stops = []
    for row in EXAMPLES:
        for example in row.examples:
            try:
                run(expression_tables, "argument", example, _NoActions())
            except Unexpected as stop:
                closers = accepted(stop.states) & _CLOSERS.keys()
                stops.append((stop.states[-1], stop.token.kind, closers, row))
    return tuple(stops)


_SYMBOLS = {"and": "&&", "or": "||", "mod": "%", "xor": "^"}
"""Operators that other languages write in words."""


def _by_expectation(start: str, problem: Unexpected, before: Span | None) -> Message:
    terminals = accepted(problem.states)
    closers = [text for kind, text in _CLOSERS.items() if kind in terminals]
    if "SPECIAL" in terminals:
        what = "a value"
    elif "WORDS" in terminals:
        what = "a type"
    elif "NAME" in terminals and "PLUS" not in terminals:
        what = "a name"
    elif "INTEGER" in terminals:
        what = "a number"
    elif problem.token.kind == END:
        return Message("the expression ends too early", "more must follow", None, ())
    elif start == "argument" and "PLUS" in terminals:
        help = "write each expression as an argument of its own, in its own quotes"
        if (symbol := _SYMBOLS.get(problem.token.text)) is not None:
            return Message("`{token}` joins no values", "a word", f"write `{symbol}`", ())
        if problem.token.kind in _VALUES:
            message, label = "`{token}` begins a second expression", "a second expression"
        else:
            message, label = "expected an operator before `{token}`", "no operator before it"
        return Message(message, label, help, ())
    elif closers:
        message = f"expected {' or '.join(closers)} before `{{token}}`"
        return Message(message, "not expected here", None, ())
    else:
        return Message("`{token}` is not expected here", "not expected here", None, ())
    if before is None:
        message = "an argument begins with a value" if what == "a value" else f"expected {what}"
        return Message(message, f"not {what}", None, ())
    label = f"{what} is missing" if problem.token.kind == END else f"not {what}"
    return Message(f"expected {what} after `{{before}}`", label, None, ())


def _strange_character(text: str, character: str, span: Span) -> CompileError:
    if not character.isprintable():
        message = f"the character U+{ord(character):04X} is not printable"
        return reject("FC0101", message, span, "not printable")
    if character in "\"'`":
        key = text[: span.start].rstrip().endswith("[")
        help = "fetch the string itself; `fetchc trace --filter 'EXPR == \"abc\"'` compares it"
        if key:
            help = '`fetchc trace` looks up a key: `m["key"]`'
        return reject("FC0101", "a string in quotes is not a value", span, "a quote", help=help)
    null = character in "?!" and text[span.end : span.end + 1] == "."  # of C#
    help = f"leave the `{character}` out: a null pointer gives no value" if null else ""
    what = f"`{character}` has no meaning in an expression"
    return reject("FC0101", what, span, "not supported", help=help or None)


def _brackets(text: str, stop: int, at_end: bool, token: str) -> CompileError | None:
    # No token but the probe point, which is the last one, has brackets that do not count.
    opened: list[int] = []
    for at, character in enumerate(text[:stop]):
        if character in "([":
            opened.append(at)
        elif character in ")]" and opened:
            opened.pop()
    if at_end and opened:
        span = Span(opened[-1], opened[-1] + 1)
        return reject("FC0101", f"unclosed `{text[opened[-1]]}`", span, "never closed")
    if token in _PAIRS:
        span = Span(stop, stop + 1)
        if not opened:
            return reject(
                "FC0101", f"`{token}` has no opening bracket", span, "nothing is open here"
            )
        if text[opened[-1]] != _PAIRS[token]:
            opener = Span(opened[-1], opened[-1] + 1)
            message = f"`{token}` cannot close `{text[opened[-1]]}`"
            return reject("FC0101", message, opener, f"closed by `{token}`")
    return None


def _before(text: str, stop: int) -> Span | None:
    # The last token before ``stop``, as a reader sees it.
    end = len(text[:stop].rstrip())
    if end == 0:
        return None
    for pattern in (r"->\Z", r"[$%@]?\w+\Z"):
        found = re.search(pattern, text[max(0, end - 64) : end])
        if found:
            return Span(end - len(found[0]), end)
    return Span(end - 1, end)


# ------------------------------------------------------------------------------
# The kernel's names of formats that have other names elsewhere.
# Source: perf-probe(1), bpftrace's and printf's conversions, names of C and Go types.

_WORDS = {
    "int": "s32", "unsigned": "u32", "uint": "u32", "long": "s64", "ulong": "u64", "short": "s16",
    "size_t": "u64", "bool": "u8", "float": "x32", "double": "x64", "f32": "x32", "f64": "x64",
    "ptr": "x64", "pointer": "x64", "hex": "x64", "x": "x64", "d": "s32", "u": "u32", "s": "string",
    "str": "string", "text": "string", "char*": "string", "%s": "string", "%d": "s32",
    "%u": "u32", "%x": "x64", "%p": "x64", "be16": "u16be", "be32": "u32be", "be64": "u64be",
    "__be16": "u16be", "__be32": "u32be", "__be64": "u64be",
}  # fmt: skip
_SIZED = re.compile(r"([ui])(8|16|32|64)\Z|u?int(8|16|32|64)(_t)?\Z")


def kernel_format(word: str) -> str | None:
    """The kernel's name of the format ``word``: s32 of int, u16 of uint16_t; None if unknown."""
    plain = _WORDS.get(word.lower())
    if plain is None and (found := _SIZED.match(word)) is not None:
        plain = f"{'u' if word[0] == 'u' else 's'}{found[2] or found[3]}"
    return plain
