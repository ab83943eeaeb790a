"""The questions that are put to damaged files: command lines of fetchc, one list a kind of file."""

from __future__ import annotations

Question = tuple[str, ...]

PLAIN: tuple[Question, ...] = (
    ("functions", "-x", "program", "--long", "--no-cache"),
    ("types", "-x", "program", "--no-cache"),
)


def compiled(function: str, *expressions: str, more: tuple[str, ...] = ()) -> Question:
    """``compile`` of some expressions at a function."""
    words = ("compile", *expressions, "-x", "program", "-f", function, "--kernel", "6.1")
    return (*words, "--no-cache", *more)


def planned(function: str, *expressions: str, at: str = "") -> Question:
    """The plan of ``trace`` for expressions, whole structures among them."""
    place = ("--at", at) if at else ()
    return ("planned", *expressions, "-x", "program", "-f", function, "--no-cache", *place)


def about(function: str, *expressions: str, at: str = "") -> tuple[Question, ...]:
    """The usual questions about a function."""
    place = ("--at", at) if at else ()
    return (
        ("variables", function, "-x", "program", "--kernel", "6.1", "--no-cache", *place),
        *[compiled(function, one, more=place) for one in expressions],
        compiled(function, *expressions, more=(*place, "--format", "json")),
        ("explain", expressions[0], "-x", "program", "-f", function, "--kernel", "6.1",
         "--no-cache", *place),
    )  # fmt: skip


C_QUESTIONS = (
    *PLAIN,
    *about("visit", "r->head->value", "r->list[2].i", "r->text", "r->grid[1][2]", "shared_counter"),
    *about("by_value", "p.x", "q.c", "s.in.i", "o.bytes"),
    ("variables", "chain", "-x", "program", "--at", "body", "--kernel", "6.1", "--no-cache"),
    ("variables", "ten", "-x", "program", "--at", "+0x8", "--kernel", "6.1", "--no-cache"),
    planned("visit", "r", "*r", "r->head", "r->list", "r->text", "r->grid"),
    planned("by_value", "p", "q", "s", "o.bytes"),
    *about("flags", "b->five", "p->high", "b->forty"),
    compiled("chain", "rows[1][1].i", "words[2]", "(struct node *)%di", more=("--format", "probe")),
    compiled("visit", "$retval", more=("--return",)),
    ("offsets", "struct record.list", "struct bits.forty", "-x", "program", "--no-cache"),
    ("types", "struct record", "-x", "program", "--no-cache"),
    ("compile", "n", "-x", "program", "-f", "globals", "--at", "shapes.c:68", "--kernel", "6.1"),
)
CPP_QUESTIONS = (
    ("functions", "*Contact*", "-x", "program", "--long", "--no-cache"),
    ("types", "*Cont*", "-x", "program", "--no-cache"),
    *about("related", "right", "((Derived *)right)->own", "left", "derived->kind"),
    *about(
        "library",
        "of.view",
        "of.contacts[1].calls",
        "of.small",
        "of.unique->firstName",
        "of.row[1]",
    ),
    planned("library", "of", "of.view", "of.contacts", "of.small", "of.unique", "of.row"),
    planned("related", "*left", "*right", "derived"),
    ("variables", "AddressBook::AddContact", "-x", "program", "--kernel", "6.1", "--no-cache"),
    compiled("Derived::Sum", "this->own", "inner", "kind"),
    ("offsets", "Library.view", "Derived.own", "-x", "program", "--no-cache"),
)
GO_QUESTIONS = (
    ("functions", "main.*", "-x", "program", "--long", "--no-cache"),
    ("types", "main.*", "-x", "program", "--no-cache"),
    *about("main.(*server).handleRequest", "r.Question[0].Name", "s", "w.data", "len(r.Question)"),
    planned("main.(*server).handleRequest", "*r", "r.Question", "w", "*s"),
    compiled("main.(*server).handleRequest", "r", "w", more=("--format", "probe")),
    compiled("main.(*server).handleRequest", "$ret0", more=("--return",)),
    ("offsets", "main.Msg.Question", "-x", "program", "--no-cache"),
)
STRIPPED_QUESTIONS = (
    ("functions", "main.*", "-x", "program", "--long", "--no-cache"),
    ("types", "main.*", "-x", "program", "--no-cache"),
    *about("main.(*server).handle", "(*main.Msg)($arg4).Question[0].Qtype", "$goid")[1:],
    compiled("main.find", "$goid", more=("--return",)),
    ("offsets", "main.Msg.Question", "-x", "program", "--no-cache"),
)
RUST_QUESTIONS = (
    *PLAIN[:1],
    planned("handle", "r", "v", "n", "s", at="body"),
    ("types", "*equest*", "-x", "program", "--no-cache"),
    *about("handle", "r.id", "n", "s", "v[1]", at="body"),
    *about("visit", "p.x", "b.x", "o", "name", at="body"),
    compiled("handle", "r", "v", more=("--format", "probe")),
)
DOTNET_QUESTIONS = (
    *PLAIN,
    *about("Server.Handle(Request)", "request.numbers[2]", "request.Name", "request.names[1]"),
    *about("EchoProvider.calculateEchoValue", "echo", "echo.Length"),
    *about("Server.Move", "by.Y", "request"),
    *about("Server.Receive", "(int)box", "((Request)message).Name"),
    planned("Server.Handle(Request)", "request", "request.names", "request.numbers"),
    ("offsets", "sample.Request.Name", "-x", "program", "--no-cache"),
    ("types", "List<string>", "-x", "program", "--no-cache"),
)

MADE_QUESTIONS = (
    *PLAIN,
    *about("visit", "r->next->value", "n", "r->self", "r->x", "r->m"),
    planned("visit", "*r", "n", "r->self", "r->m"),
    compiled("visit", "*r", "n", "k", more=("--format", "probe")),
    ("variables", "visit", "-x", "program", "--kernel", "6.1", "--no-cache", "--at", "+0x9"),
    compiled("visit", "k", more=("--at", "+0x9")),
    ("offsets", "struct node.self", "struct s.x", "-x", "program"),
)
SMALL_QUESTIONS = (
    *PLAIN,
    *about("visit", "r->next->node->value", "r->row[1][2]", "r->text", "r->inner", "r->first"),
    planned("visit", "*r", "n", "r->row", "r->text", "r->inner", "more"),
    planned("visit", "*p", "k", "r->bits", "counter", "n", at="+0x9"),
    compiled("visit", "*r", "n", "more", more=("--format", "probe")),
    *about("visit", "p->colour", "k", "r->bits", "counter", "n[2][1]", at="+0x9"),
    (
        "compile",
        "p->either.d @ inlined%inline",
        "p->next->row[2] @ visit+0x9",
        "-x",
        "program",
        "--kernel",
        "6.1",
        "--no-cache",
    ),
    compiled("visit", "(struct record *)%di", "((record *)$arg1)->next", "$retval"),
    ("offsets", "record.row", "record.first", "record.bits", "-x", "program"),
    ("types", "*record", "-x", "program", "--no-cache"),
)


PLACES = (
    ("types", "struct node", "-x", "program", "--no-cache"),
    ("offsets", "record.row", "colour", "either.d", "struct node.next", "-x", "program"),
    compiled("visit", "(struct record *)%di", "((either *)$arg1)->i", "(word)n[1][1]", "r->text"),
    ("variables", "visit", "-x", "program", "--kernel", "6.1", "--no-cache"),
)
KERNEL = (
    ("functions", "-x", "program", "--long"),
    ("types", "-x", "program"),
    ("types", "struct node", "-x", "program"),
    ("variables", "visit", "-x", "program", "--kernel", "6.18"),
    (
        "compile",
        "n->text",
        "n->row[2]",
        "n->y",
        "n->bits",
        "n->either.l",
        "count",
        "-x",
        "program",
        "-f",
        "visit",
        "--kernel",
        "6.18",
    ),
    (
        "compile",
        "*n",
        "-x",
        "program",
        "-f",
        "fprobe:visit",
        "--kernel",
        "6.18",
        "--format",
        "probe",
        "--return",
    ),
    (
        "compile",
        "(struct node *)%di",
        "shared.word",
        "sizeof(struct node)",
        "-x",
        "program",
        "-f",
        "leave",
        "--kernel",
        "6.18",
    ),
    ("planned", "*n", "n->text", "n->row", "n->either", "count", "-x", "program", "-f", "visit"),
    ("explain", "n->next->colour", "-x", "program", "-f", "visit", "--kernel", "6.18"),
    ("offsets", "struct node.bits", "union either", "-x", "program"),
)
STATIC = (
    ("functions", "-x", "program", "--long", "--no-cache"),
    ("variables", "srv:begin", "-x", "program", "--kernel", "6.1", "--no-cache"),
    compiled("srv:begin", "$arg1", "$arg2", "(int)$arg3"),
    compiled("srv:begin", "$arg1", more=("--format", "probe")),
    compiled("srv:begin", "$arg2", more=("--format", "json")),
    ("explain", "$arg1", "-x", "program", "-f", "srv:begin", "--kernel", "6.1", "--no-cache"),
)
