"""Texts and the trees they make; canonical text stands in for trees where it tells them apart."""

from __future__ import annotations

import pytest

from fetchc.source import Span
from fetchc.syntax.expression_parser import as_type, parse_argument, parse_point, parse_type
from fetchc.syntax.tree import (
    Argument,
    ArrayOf,
    Binary,
    Cast,
    ContainerOf,
    Dereference,
    FieldStep,
    Index,
    IndexStep,
    Integer,
    MapOf,
    Member,
    Name,
    NamedType,
    OffsetOf,
    Point,
    PointerTo,
    Range,
    RowOf,
    SizeOf,
    SliceOf,
)
from fetchc.syntax.unparse import unparse, unparse_point, unparse_type

# A string, and what it means with blanks and parentheses as unparse() sets them.
CANONICAL = {
    # members and indices
    "r->Question[0].Name": "r->Question[0].Name",
    " a . b -> c ": "a.b->c",
    "t.0.1.x": "t.__0.__1.x",
    "*p->x": "*p->x",
    "(*p).x": "(*p).x",
    "&p->x": "&p->x",
    "a[1+2*3]": "a[7]",
    "a[-8/3]": "a[-2]",
    "a[:4]": "a[0:4]",
    "a[1:4].b": "a[1:4].b",
    "v.size()": "v.size()",
    "x.(*dns.Msg).Id": "x.(*dns.Msg).Id",
    "x.(map[string]int)": "x.(map[string]int)",
    # characters
    "c == 'x'": "c == 120",
    "a['\\n']": "a[10]",
    r"a[0 + '\12' + '\x1B' + '\'' + '\\']": "a[168]",
    # names
    "n@12": "n@12",
    "n@12->a.b + n@12.c": "n@12->a.b + n@12.c",
    "n@12.c:5": "n @ 12.c:5",
    "n@12.c:u8": "n@12.c:u8",
    "([]byte)(char)": "([]byte)char",
    "n@12:u8@main.go:17": "n@12:u8 @ main.go:17",
    "n @ main.f": "n @ main.f",
    "ns::var.x": "ns::var.x",
    "::var": "::var",
    "github.com/miekg/dns.ErrId.err": "github.com/miekg/dns.ErrId.err",
    "größe->größe": "größe->größe",
    "~r0": "~r0",
    "~p12": "~p12",
    "short.char": "short.char",
    "struct": "struct",
    "map[0]": "map[0]",
    "$retval": "$retval",
    "$arg1:u8": "$arg1:u8",
    "%ax": "%ax",
    # arithmetic
    "p+8/2-1": "p + 8 / 2 - 1",
    "p-(1-2)": "p - (1 - 2)",
    "(p+1)*2": "(p + 1) * 2",
    "a/b.c": "a/b.c",  # one name: a package's path
    "a / b.c": "a / b.c",
    "a/2": "a / 2",
    "-1": "-1",
    "0x10 + 010 + 0b11 + 5UL": "16 + 8 + 3 + 5ul",
    # casts as C binds them
    "(struct s *)p->next": "(struct s *)p->next",
    "((struct s *)p)->next": "((struct s *)p)->next",
    "(unsigned  long)-1": "(unsigned long)(-1)",
    "(T **)p->x": "(T **)p->x",
    "(T *)(x).f": "(T *)x.f",
    "(char)-x": "(char)(-x)",
    "(const int)*p": "(int)(*p)",
    "(char const *)p": "(char *)p",
    "(const char *)p": "(char *)p",
    "(T const * const)p": "(T *)p",
    "(ns::T *)p": "(ns::T *)p",
    "(T &)p": "*(T *)(&p)",
    "(std::map<int, char *> *)p->x": "(std::map<int, char *> *)p->x",
    "(name)x.y": "(name)x.y",
    "(name)(x).f": "(name)x.f",
    "(a)(b)(c)": "(a)(b)c",
    # and what only looks like one
    "(name)-x": "name - x",
    "(name)*x": "name * x",
    "(name)": "name",
    # casts as Go binds them
    "(dns.Msg)(x).Id": "(dns.Msg)(x).Id",
    "(*dns.Msg)(x).Id": "(*dns.Msg)(x).Id",
    "(*github.com/miekg/dns.Msg)(x).Id": "(*github.com/miekg/dns.Msg)(x).Id",
    # casts as C# writes them
    "(int[])x.f": "(int[])x.f",
    "((List<int[]>[,])x)[1,2].f": "((List<int[]>[,])x)[1, 2].f",
    "(x as Square).Side": "((Square)x).Side",
    "x + 1 as int:u8": "(int)(x + 1):u8",
    "as + a.as": "as + a.as",
    "(*T)(x).Id": "((T *)x).Id",
    "([]byte)(x)[0]": "([]byte)(x)[0]",
    "([4]int)(x)": "([4]int)(x)",
    "(*[]byte)(x)": "(*[]byte)(x)",
    "(map[string]*T)(x)": "(map[string]*T)(x)",
    "(chan int)(x)": "(chan int)(x)",
    "(interface{})(x)": "(interface {})(x)",
    "(*main.List[int])(x).head": "(*main.List[int])(x).head",
    "(main.Pair[int,*T])(x)": "(main.Pair[int,*T])(x)",
    "uint32(x)": "uint32(x)",
    "dns.Msg(x)": "dns.Msg(x)",
    "github.com/miekg/dns.Type(x)": "github.com/miekg/dns.Type(x)",
    # what takes a type
    "sizeof(struct s *)/2": "sizeof(struct s *) / 2",
    "sizeof (int)": "sizeof(int)",
    "sizeof(*p)": "sizeof(*p)",
    "sizeof(unsigned long[4])": "sizeof([4]unsigned long)",
    "sizeof(main.List[int])": "sizeof(main.List[int])",
    "offsetof(struct s, a.b[2].c)": "offsetof(struct s, a.b[2].c)",
    "container_of(p->list, struct s, list)": "container_of(p->list, struct s, list)",
    "len(char)": "len(char)",
    # the whole argument
    "name = x:x32[4]@f+16": "name=x:x32[4] @ f+0x10",
    "int=x": "int=x",
    "x @ f\n": "x @ f",
}


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text(text: str) -> None:
    assert unparse(parse_argument(text)) == CANONICAL[text]


@pytest.mark.parametrize("text", CANONICAL.values())
def test_canonical_text_is_a_fixed_point(text: str) -> None:
    assert unparse(parse_argument(text)) == text


def _at(text: str, piece: str) -> Span:
    return Span(text.index(piece), text.index(piece) + len(piece))


def test_tree_and_spans_of_the_seed() -> None:
    text = "name=r->Question[0].Name"
    r = Name("r", None, _at(text, "r"))
    question = Member(r, "Question", True, _at(text, "Question"), _at(text, "r->Question"))
    first = Index(question, 0, _at(text, "0"), _at(text, "r->Question[0]"))
    name = Member(first, "Name", False, _at(text, "Name"), _at(text, "r->Question[0].Name"))
    assert parse_argument(text) == Argument("name", name, None, None, Span(0, len(text)))


def test_spans_hold_the_parentheses_of_a_base() -> None:
    text = "(p + 1)->x"
    tree = parse_argument(text).expression
    assert isinstance(tree, Member)
    assert tree.span == Span(0, len(text))
    assert tree.base.span == _at(text, "p + 1")


def test_a_go_conversion_starts_at_its_parenthesis() -> None:
    text = "1 + (*dns.Msg)(x).Id"
    tree = parse_argument(text).expression
    assert isinstance(tree, Binary)
    assert tree.right.span == _at(text, "(*dns.Msg)(x).Id")
    assert isinstance(tree.right, Member)
    assert tree.right.base.span == _at(text, "(*dns.Msg)(x)")
    assert isinstance(tree.right.base, Cast)


def test_a_line_is_of_the_name() -> None:
    assert parse_argument("n@12").expression == Name("n", 12, Span(0, 4))


def test_a_negative_index_and_a_range_are_folded() -> None:
    index = parse_argument("a[-1]").expression
    assert isinstance(index, Index)
    assert (index.index, index.index_span) == (-1, Span(2, 4))
    range_ = parse_argument("a[1:2+2]").expression
    assert isinstance(range_, Range)
    assert (range_.low, range_.high, range_.range_span) == (1, 4, Span(2, 7))


def test_an_index_may_be_a_name() -> None:
    index = parse_argument("a[Mode::On]").expression
    assert isinstance(index, Index)
    assert index.index == Name("Mode::On", None, Span(2, 10))
    assert unparse(parse_argument("a[x.y, 1+1][n+1]").expression) == "a[x.y, 2][n + 1]"


def test_an_index_in_a_type_is_an_argument() -> None:
    cast = parse_argument("(a.List[b.T])(x).f").expression
    assert isinstance(cast, Member)
    assert isinstance(cast.base, Cast)
    assert isinstance(cast.base.type, NamedType)
    assert cast.base.type.arguments == (NamedType(None, "b.T", (), "", Span(8, 11)),)


def test_a_full_slice_has_three_numbers() -> None:
    range_ = parse_argument("a[1:2:n]").expression
    assert isinstance(range_, Range)
    assert (range_.low, range_.high, range_.room) == (1, 2, Name("n", None, Span(6, 7)))
    assert unparse(parse_argument("a[:2:3]").expression) == "a[0:2:3]"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("[]byte(x)", "([]byte)(x)"),
        ("[]byte(x)[1]", "([]byte)(x)[1]"),
        ("len([]rune (x.y))", "len(([]rune)(x.y))"),
        ("[][]*pkg.T(x)", "([][]*pkg.T)(x)"),
        ("-[]a.org/b/pkg.T(x)[0]", "-([]a.org/b/pkg.T)(x)[0]"),
    ],
)
def test_a_conversion_to_a_slice_needs_no_brackets(text: str, canonical: str) -> None:
    assert unparse(parse_argument(text).expression) == canonical
    assert unparse(parse_argument(canonical).expression) == canonical


def test_the_bounds_of_a_range_may_vary() -> None:
    range_ = parse_argument("a[i:r->n]:x8").expression
    assert isinstance(range_, Range)
    assert range_.low == Name("i", None, Span(2, 3))
    assert isinstance(range_.high, Member)
    assert range_.range_span == Span(2, 8)
    assert unparse(range_) == "a[i:r->n]"
    both = parse_argument("a[n - 1:(m)]").expression
    assert isinstance(both, Range)
    assert isinstance(both.low, Binary)
    assert unparse(both) == "a[n - 1:m]"


def test_paths() -> None:
    tree = parse_argument("offsetof(struct s, a[2].b)").expression
    assert isinstance(tree, OffsetOf)
    assert tree.type == NamedType("struct", "s", (), "", Span(9, 17))
    assert tree.path.steps == (
        FieldStep("a", Span(19, 20)),
        IndexStep(2, Span(21, 22)),
        FieldStep("b", Span(24, 25)),
    )
    tree = parse_argument("container_of(p, s, a)").expression
    assert isinstance(tree, ContainerOf)
    assert tree.path.span == Span(19, 20)


def test_sizeof_keeps_what_may_be_a_value() -> None:
    tree = parse_argument("sizeof(*dns.Msg)").expression
    assert isinstance(tree, SizeOf)
    assert isinstance(tree.operand, Dereference)
    type = as_type(tree.operand)
    assert type is not None
    assert unparse_type(type) == "*dns.Msg"
    assert as_type(Integer(1, Span(0, 1))) is None


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("struct  s", "struct s"),
        ("unsigned long *", "unsigned long *"),
        ("char const *const*", "char **"),
        ("char *[4]", "[4]*char"),
        ("int[2][3]", "[2][3]int"),
        ("int[][,]", "int[][,]"),
        ("Ns.T*[]", "Ns.T *[]"),
        ("*dns.Msg", "*dns.Msg"),
        ("[]*github.com/miekg/dns.Msg", "[]*github.com/miekg/dns.Msg"),
        ("[]Name", "[]Name"),  # as plain as a value
        ("[]a.B", "[]a.B"),
        ("map[string][]int", "map[string][]int"),
        ("<-chan int", "<-chan int"),
        ("chan <- struct{}", "chan<- struct {}"),
        ("main.Pair[int, *T]", "main.Pair[int,*T]"),
        ("std::array<char*,4> *", "std::array<char *, 4> *"),
    ],
)
def test_types(text: str, canonical: str) -> None:
    type = parse_type(text)
    assert unparse_type(type) == canonical
    assert unparse_type(parse_type(canonical)) == canonical


def test_shapes_of_types() -> None:
    word = NamedType(None, "int", (), "", Span(0, 3))
    assert parse_type("int *") == PointerTo(word, Span(0, 5))
    assert parse_type("int[2][3]") == ArrayOf(ArrayOf(word, 3, Span(0, 9)), 2, Span(0, 9))
    assert isinstance(parse_type("[]int"), SliceOf)
    # The brackets that are written first are the outermost array's, as in C#.
    inner = RowOf(word, 2, Span(0, 8))
    assert parse_type("int[][,]") == RowOf(inner, 1, Span(0, 8))
    assert isinstance(parse_type("map[int]int"), MapOf)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("main.(*server).run", {"function": "main.(*server).run"}),
        ("github.com/miekg/dns.(*Msg).Pack", {"function": "github.com/miekg/dns.(*Msg).Pack"}),
        ("main.Max[go.shape.int]", {"function": "main.Max[go.shape.int]"}),
        ("main.f.func1 + 0x10", {"function": "main.f.func1", "offset": 16}),
        ("f:17", {"function": "f", "line": 17}),
        ("f%return", {"function": "f", "returns": True}),
        ("ns::f(int, char const*)+4", {"function": "ns::f(int, char const*)", "offset": 4}),
        ("ns::A::operator+", {"function": "ns::A::operator+"}),
        ("::f", {"function": "::f"}),
        ("src/my-file.c:12", {"file": "src/my-file.c", "line": 12}),
        ("a b/main.go : 17", {"file": "a b/main.go", "line": 17}),
        ("0x401234", {"address": 0x401234}),
        ("+0", {"offset": 0}),
        (":17", {"line": 17}),
        ("%return", {"returns": True}),
        ("%body", {"part": "body"}),
        ("ns::f(int) % inline", {"function": "ns::f(int)", "part": "inline"}),
    ],
)
def test_points(text: str, expected: dict[str, object]) -> None:
    point = parse_point(text)
    nothing = Point(None, None, None, None, False, None, Span(0, len(text)))
    got = {
        field: getattr(point, field)
        for field in ("function", "offset", "line", "file", "returns", "address", "part")
        if getattr(point, field) != getattr(nothing, field)
    }
    assert got == expected
    assert point.span == Span(0, len(text))
    assert unparse_point(parse_point(unparse_point(point))) == unparse_point(point)
    behind = parse_argument(f"x @ {text}").point
    assert behind is not None
    assert unparse_point(behind) == unparse_point(point)
    assert behind.span == Span(4, 4 + len(text))


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("int?", "System.Nullable<int>"),
        ("int?[]", "System.Nullable<int>[]"),
        ("string[]?", "string[]"),
        ("N.Point?[,]", "System.Nullable<N.Point>[,]"),
        ("(int, string)", "System.ValueTuple<int, string>"),
        ("(int, A<byte?>)?",
         "System.Nullable<System.ValueTuple<int, A<System.Nullable<byte>>>>"),
        ("List<(int, int[])>", "List<System.ValueTuple<int, int[]>>"),
        ("((int, N.P), A)[]", "System.ValueTuple<System.ValueTuple<int, N.P>, A>[]"),
    ],
)  # fmt: skip
def test_types_that_csharp_writes_with_signs(written: str, plain: str) -> None:
    assert unparse_type(parse_type(written)) == plain
    for expression in (f"({written})a", f"sizeof({written})", f"f(({written})a.b)"):
        assert unparse(parse_argument(expression).expression) == unparse(
            parse_argument(expression.replace(written, plain)).expression
        )
