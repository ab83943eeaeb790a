"""A question of a batch: what one line of JSON, or one object, asks."""

from __future__ import annotations

import json

from fetchc.diag.diagnostic import reject
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from fetchc.diag.diagnostic import CompileError

__all__ = ["Question", "identity", "read_line", "read_question"]

_KEYS = {
    "binary": "a text", "function": "a text", "expressions": "a list of texts", "at": "a text",
    "return": "true or false", "kernel": "a text", "reference": "a list of texts",
    "debug_file": "a text", "debug_dir": "a list of texts", "id": "a text or a whole number",
}  # fmt: skip
_EXAMPLE = '{"binary": "./server", "function": "handle", "expressions": ["r->size"]}'


class Question(Record):
    """Expressions at one probe point, as ``compile`` takes them; ``id`` comes back as it was."""

    binary: str
    expressions: tuple[str, ...]
    function: str | None = None
    at: str | None = None
    returns: bool = False
    kernel: str = "running"  # a version, or what stands for the one at hand
    references: tuple[str, ...] = ()
    debug_file: str | None = None
    debug_dirs: tuple[str, ...] = ()
    id: str | int | None = None

    @property
    def opening(self) -> tuple[str, tuple[str, ...], str | None, tuple[str, ...]]:
        """What :class:`~fetchc.api.program.Program` is made of."""
        return self.binary, self.references, self.debug_file, self.debug_dirs


def read_line(line: bytes) -> object:
    """What one line of JSON says; CompileError FC0105 where it is none."""
    try:
        return json.loads(
            line.decode(), object_pairs_hook=_unlike_keys, parse_constant=_no_constant
        )
    except json.JSONDecodeError as broken:
        at = len(broken.doc[: broken.pos].encode()) + 1
        raise _no_question(f"not JSON: {broken.msg.lower()}, at byte {at}") from None
    except UnicodeDecodeError as broken:
        raise _no_question(f"not UTF-8 at byte {broken.start + 1}") from None
    except ValueError as broken:
        raise _no_question(f"not JSON: {broken}") from None
    except RecursionError:
        raise _no_question("nested too deeply") from None


def read_question(given: object, kernel: str = "running") -> Question:
    """The question that an object asks; CompileError FC0105 where it has another shape.

    ``kernel`` is for one that names none.
    """
    if not isinstance(given, dict):
        raise _no_question("not an object")
    unknown = [key for key in given if key not in _KEYS]
    if unknown:
        raise _no_question(f"it has no key {_shown(unknown[0])}", f"its keys are {_listed()}")
    for key, value in given.items():
        if value is not None and not _fits(key, value):
            raise _no_question(f"`{key}` is not {_KEYS[key]}")
    for key in ("binary", "expressions"):
        if not given.get(key):
            raise _no_question(f"`{key}` is missing or empty")
    return Question(
        binary=given["binary"],
        expressions=tuple(given["expressions"]),
        function=given.get("function"),
        at=given.get("at"),
        returns=bool(given.get("return")),
        kernel=given.get("kernel") or kernel,
        references=tuple(given.get("reference") or ()),
        debug_file=given.get("debug_file"),
        debug_dirs=tuple(given.get("debug_dir") or ()),
        id=given.get("id"),
    )


def identity(given: object) -> str | int | None:
    """The ``id`` of what may be no question."""
    found = given.get("id") if isinstance(given, dict) else None
    return found if found is not None and _fits("id", found) else None


def _fits(key: str, value: object) -> bool:
    kind = _KEYS[key]
    if kind == "a text":
        return _is_text(value)
    if kind == "true or false":
        return isinstance(value, bool)
    if kind == "a list of texts":
        return isinstance(value, list | tuple) and all(map(_is_text, value))
    return _is_text(value) or (isinstance(value, int) and not isinstance(value, bool))


def _is_text(value: object) -> bool:
    # JSON can spell halves of characters. Bytes that are no UTF-8 are such halves too, and
    # nothing else is: a name with another one is of no file and in none.
    if not isinstance(value, str):
        return False
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _unlike_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is there twice")
    return made


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _shown(key: object) -> str:
    text = str(key)
    return f"`{text}`" if len(text) < 40 else f"`{text[:40]}...`"


def _listed() -> str:
    return ", ".join(f"`{key}`" for key in _KEYS)


def _no_question(what: str, *notes: str) -> CompileError:
    return reject("FC0105", f"no question: {what}", notes=notes, help=f"a question is {_EXAMPLE}")
