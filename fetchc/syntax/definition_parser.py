"""Read the definition of a probe: grammar/definition.lark, and the path's end.

As :mod:`fetchc.syntax.fetcharg_parser` does, it keeps every piece as text with its place.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax import definition_tables
from fetchc.syntax.fetcharg_parser import Piece
from fetchc.syntax.lalr import Token, Unexpected, run

__all__ = ["DefinitionText", "PlaceText", "is_definition", "read_definition"]

# The kernel cuts lines at 4096 bytes; more is read here, to say by how much it is too long.
_CHARACTERS = 1 << 16


class PlaceText(Record):
    """``PATH:OFFSET(REFERENCE)SUFFIX``; None is what is not written.

    ``reference`` is without its brackets; ``unclosed`` says that the second one is missing,
    ``extra`` is what follows it, ``suffix`` begins with its percent sign.
    """

    path: Piece
    offset: Piece | None
    reference: Piece | None
    unclosed: bool
    extra: Piece | None
    suffix: Piece | None


class DefinitionText(Record):
    """A line. ``letter`` may hold digits; ``names`` is GROUP/EVENT, or the text at that place.

    ``group`` is None where there is no separator, ``event`` where there are no names at all;
    ``separator`` is ``/`` or ``.``. ``word`` is what is probed, ``place`` the same as a file
    and an offset; both are None where the line ends before them.
    """

    letter: Piece
    names: Piece | None
    separator: str
    group: Piece | None
    event: Piece | None
    word: Piece | None
    place: PlaceText | None
    arguments: tuple[Piece, ...]


def is_definition(text: str) -> bool:
    """Whether ``text`` is meant as a whole line and not as one fetch-arg.

    A line begins with a letter, maybe a number, and a colon or a blank.
    """
    words = text.split(maxsplit=1)
    word = words[0] if words else ""
    letter = word[:1]
    if not (letter == "-" or (letter.isascii() and letter.isalpha())):
        return False
    number = word[1:].partition(":")[0]
    if number.strip("0123456789"):  # a bad number, or something else
        return letter in "pr" and number[0].isdecimal() and len(words) > 1 and "=" not in word
    return ":" in word or (len(words) > 1 and "=" not in word)


def read_definition(text: str) -> DefinitionText:
    """The tree of a line without its newline.

    Raises CompileError: FC0102 for a string that is absurdly long, FC0101 for a control
    character and for what is no line at all.
    """
    if len(text) > _CHARACTERS:
        what = f"the definition has {len(text)} characters"
        raise reject("FC0102", what, Span(_CHARACTERS, len(text)), "too long")
    for at, character in enumerate(text):
        # The kernel splits at blanks of the C locale; other blanks are part of a word.
        if (character.isspace() and character not in " \t") or character == "\0":
            span = Span(at, at + 1)
            raise reject("FC0101", "a definition is one line", span, "ends the line")
    try:
        tree: DefinitionText = run(definition_tables, "definition", text, _Builder())
    except Unexpected as problem:
        span = problem.token.span
        raise reject("FC0101", "this is not a definition", span, "not expected here") from None
    return tree


class _Builder:
    """Makes a :class:`DefinitionText`; see :mod:`fetchc.syntax.lalr` for how it is called."""

    __slots__ = ()

    def head_unnamed(self, children: list[Token], span: Span) -> list[Piece]:
        """``p``."""
        return [_piece(children[0])]

    def head(self, children: list[Token], span: Span) -> list[Piece]:
        """``p:group/event``."""
        letter, names = [_piece(part) for part in children]
        return [letter, Piece(names.text[1:], Span(names.span.start + 1, names.span.end))]

    def placeless(self, children: list[list[Piece]], span: Span) -> DefinitionText:
        """Nothing after the first word."""
        return _definition(children[0], None, ())

    def bare(self, children: list[object], span: Span) -> DefinitionText:
        """A probe without arguments."""
        head, word = children
        assert isinstance(head, list)
        return _definition(head, _piece(word), ())

    def full(self, children: list[object], span: Span) -> DefinitionText:
        """A probe with arguments."""
        head, word, arguments = children
        assert isinstance(head, list)
        assert isinstance(arguments, list)
        return _definition(head, _piece(word), tuple(arguments))

    def list_start(self, children: list[Token], span: Span) -> list[Piece]:
        """The first argument."""
        return [_piece(children[0])]

    def list_more(self, children: list[object], span: Span) -> list[Piece]:
        """One more argument."""
        listed, word = children
        assert isinstance(listed, list)
        listed.append(_piece(word))
        return listed


def _piece(token: object) -> Piece:
    assert isinstance(token, Token)
    return Piece(token.text, token.span)


def _part(piece: Piece, start: int, end: int | None = None) -> Piece:
    # A piece of a piece.
    text = piece.text[start:end]
    return Piece(text, Span(piece.span.start + start, piece.span.start + start + len(text)))


def _definition(
    head: list[Piece], word: Piece | None, arguments: tuple[Piece, ...]
) -> DefinitionText:
    letter = head[0]
    place = None if word is None else _place(word)
    if len(head) == 1:
        return DefinitionText(letter, None, "", None, None, word, place, arguments)
    names = head[1]
    # The first slash; a dot only where there is none (traceprobe_parse_event_name).
    at = names.text.find("/")
    if at < 0:
        at = names.text.find(".")
    if at < 0:
        return DefinitionText(letter, names, "", None, names, word, place, arguments)
    group, event = _part(names, 0, at), _part(names, at + 1)
    return DefinitionText(letter, names, names.text[at], group, event, word, place, arguments)


def _place(word: Piece) -> PlaceText:
    # The last colon ends the path; what follows it: OFFSET, (REFERENCE), %SUFFIX. The order of
    # looking is that of trace_uprobe.c, __trace_uprobe_create.
    colon = word.text.rfind(":")
    if colon < 0:
        return PlaceText(word, None, None, False, None, None)
    path, rest = _part(word, 0, colon), _part(word, colon + 1)
    reference = extra = suffix = None
    unclosed = False
    bracket = rest.text.find("(")
    if bracket >= 0:
        close = rest.text.find(")", bracket)
        unclosed = close < 0
        reference = _part(rest, bracket + 1, None if unclosed else close)
        if not unclosed and close + 1 < len(rest.text):
            extra = _part(rest, close + 1)
        rest = _part(rest, 0, bracket)
    percent = rest.text.find("%")
    if percent >= 0:
        suffix, rest = _part(rest, percent), _part(rest, 0, percent)
    return PlaceText(path, rest, reference, unclosed, extra, suffix)
