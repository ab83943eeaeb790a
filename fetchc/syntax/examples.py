"""What users get wrong, and what to tell them: a table of malformed examples.

The parser stops at each example in some state before some token; an error in the same
place gets the same message. tests/unit/syntax/test_errors.py holds the table to itself:
every example must get its own row's message. ``{before}`` is the last piece of text
before the error, ``{token}`` the one that cannot follow it.
"""

from __future__ import annotations

from fetchc.record import Record

__all__ = ["ANNOTATION", "BEGINNINGS", "COMPARISON", "EXAMPLES", "Complaint"]


class Complaint(Record):
    """A message, a label of at most eight words, one action, and texts that deserve them."""

    message: str
    label: str
    help: str | None
    examples: tuple[str, ...]


COMPARISON = Complaint(
    "a comparison is not something that can be fetched",
    "nothing compares values here",
    "fetch the value, and compare in a trace: `fetchc trace --filter '{text}'`",
    ("a == 1", "a > b", "a.b > c", "a[0] > 1", "5 > 1", "$a > 1"),
)

# Of the kernel's source, for its own checker: `__user`.
ANNOTATION = Complaint(
    "the kernel's annotations are no part of a type here",
    "stands beside an annotation",
    "leave it out; a text of the running program is read by `:ustring`",
    ("(char __user *)a", "(__user char *)a", "((struct s __user *)a)->b"),
)

# Whole texts that belong elsewhere, by how they begin.
BEGINNINGS = (
    (
        r"(\w+=)?[+-][us]?\d+\(",
        Complaint(
            "this is a fetch-arg, and no expression",
            "of the kernel's notation",
            "`fetchc check` and `fetchc explain` take fetch-args",
            ("+0(%di):u64", "n=+0(+8(%di))", "-8(%bp)"),
        ),
    ),
    (
        r"\.{0,2}/",
        Complaint(
            "an argument begins with a value",
            "a path",
            "a program to start stands behind `--`, with its arguments; the one to probe at `-x`",
            ("./server", "/bin/ls"),
        ),
    ),
)

EXAMPLES = (
    Complaint(
        "expected a field name after `{before}`",
        "a field name is missing",
        None,
        ("a->", "a.", "a->5", "a.%x", "a->[1]", "a.[1]", "a..b", "a->.b", "a->(b)", "a->*b",
         "a.%x", "a->$x", "a.->b", "a->a/b.c", "a. @f", "a-> :u8", "(a->)", "(a.)", "f(a.)"),
    ),
    Complaint(
        "expected a type between the parentheses",
        "a type is missing",
        "name the type that the interface holds, as in `x.(*dns.Msg)`",
        ("a.()", "a.(5)", "a.(.b)", "a.($x)", "a.(+)"),
    ),
    Complaint(
        "expected an index between the brackets",
        "an index is missing",
        "write a number, `a[0]`, or a range, `a[0:4]`",
        ("a[)", "a[+]", "a[.b]"),
    ),
    Complaint(
        "a range has two numbers",
        "too many",
        "write `a[0:4]` for the elements from 0 up to 3",
        ("a[1:2:3:4]", "a[:2:3:4]", "a[1::3]", "a[1:2:]"),
    ),
    Complaint(
        "only one index can stand between the brackets",
        "a second one",
        "index again for each dimension: `a[1][2]`",
        ("a[1,2:3]",),
    ),
    Complaint(
        "expected a value between the parentheses",
        "a value is missing",
        None,
        ("()", "a+()", "(+)", "(.b)"),
    ),
    Complaint(
        "expected a value after `{before}`",
        "a value is missing",
        "to write `p->member` in a shell, quote it: `'p->member'`",
        ("a-", "a.b-", "a[0]-"),
    ),
    Complaint(
        "expected a value to cast",
        "a value is missing",
        None,
        ("(struct s *)", "(struct s *)+1", "(T *)", "(T *)/2", "([]byte)", "(unsigned long).a"),
    ),
    COMPARISON,
    Complaint(
        "only one identifier can stand before `=`",
        "not an argument's name",
        None,
        ("a.b = c", "a->b = c", "a[0] = c", "(a) = c", "$a = c", "%a = c", "a + b = c",
         "a = b = c", "a@12 = b"),
    ),
    Complaint(
        "only a variable's name can be followed by `@LINE`",
        "not behind a name",
        "a probe point is a function, `FILE:LINE` or an address",
        ("a.b@12", "a->b@12", "a[0]@12", "$a@12", "5@12", "(a)@12", "a@12@13", "a:u8@12"),
    ),
    Complaint(
        "expected a format after `:`",
        "a format is missing",
        "write one of u8, s32, x64, char, string, symbol, ...",
        ("a:", "a:5", "a: @f", "a:*", "a:(u8)", "a::", "a:$x"),
    ),
    Complaint(
        "only one format can follow an expression",
        "a second one",
        None,
        ("a:u8:u8", "a:u8[4]:u8"),
    ),
    Complaint(
        "expected a count between the brackets",
        "a count is missing",
        "write a number, as in `u8[4]`",
        ("a:u8[]", "a:u8[*]"),
    ),
    Complaint(
        "only a probe point can follow a format",
        "not expected here",
        None,
        ("a:u8 b", "a:u8 + 1", "a:u8.b", "a:u8->b", "a:u8[4] + 1", "a:u8[4][5]", "a:u8, b"),
    ),
    Complaint(
        "one argument has one expression",
        "another argument?",
        "give each expression as an argument of its own",
        ("a, b", "a.b, c", "a[0], b", "(a), b", "5, b", "$a, b", "a + b, c"),
    ),
    Complaint(
        "no function can be called when a probe fires",
        "this would be a call",
        None,
        ("a[0](b)", "$a(1)", "5(a)", "(a)[0](b)"),
    ),
    Complaint(
        "`<` begins a template's arguments, and they do not end in `>`",
        "not closed",
        None,
        ("a<", "a<b", "a<b+1", "a<b c", "a<5 + 1", "a<b.c", "a<5"),
    ),
    Complaint(
        "a name within a template's type is not supported",
        "not supported",
        None,
        ("a<b>::c", "a.b<c>::d"),
    ),
    Complaint(
        "`sizeof` takes one expression or type",
        "not expected here",
        None,
        ("sizeof()", "sizeof(a, b)", "sizeof(struct s, b)"),
    ),
    Complaint(
        "`offsetof` takes a type and a path of members",
        "not expected here",
        "write it as `offsetof(struct s, a.b[2])`",
        ("offsetof()", "offsetof(5)", "offsetof(struct s)", "offsetof(s)", "offsetof(s *)",
         "offsetof(s, )", "offsetof(s, 5)"),
    ),
    Complaint(
        "`container_of` takes a pointer, a type and a path of members",
        "not expected here",
        "write it as `container_of(p, struct s, list)`",
        ("container_of()", "container_of(p)", "container_of(p, )", "container_of(p, 5)",
         "container_of(p, s)", "container_of(p, s, )", "container_of(p, s, 5)",
         "container_of(p, struct s)"),
    ),
    Complaint(
        "a path has members and indices only",
        "not part of a path",
        "write it as `a.b[2]`",
        ("offsetof(s, a, b)", "offsetof(s, a->b)", "offsetof(s, a b)", "offsetof(s, a.b + 1)",
         "offsetof(s, a[2], b)", "offsetof(s, a[2] + 1)", "container_of(p, s, a, b)"),
    ),
)  # fmt: skip
