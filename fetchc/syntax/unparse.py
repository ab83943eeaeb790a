"""From a tree back to canonical text, for diagnostics, look-ups and round trips."""

from __future__ import annotations

from fetchc.record import assert_never
from fetchc.syntax.tree import (
    AddressOf,
    Argument,
    ArrayOf,
    Assertion,
    Binary,
    Call,
    Cast,
    ChannelOf,
    ContainerOf,
    Dereference,
    Expression,
    FloatNumber,
    Index,
    IndexStep,
    Integer,
    MapOf,
    Member,
    MethodCall,
    Name,
    NamedType,
    Negate,
    OffsetOf,
    Path,
    Point,
    PointerTo,
    Range,
    Register,
    RowOf,
    SizeOf,
    SliceOf,
    Special,
    StringLiteral,
    Ternary,
    TypeName,
    Unary,
    grouped_otherwise,
)

__all__ = ["unparse", "unparse_point", "unparse_type"]

# How tightly each form binds; an operand that binds less tightly gets parentheses.
_CHOICE, _UNARY, _POSTFIX = 0, 12, 13
_LEVELS = ("||", "&&", "|", "^", "& &^", "== !=", "< <= > >=", "<< >>", "+ -", "* / %")
_PRECEDENCE = {
    operator: level for level, each in enumerate(_LEVELS, 1) for operator in each.split()
}

# Names that grammar/expression.lark's CAST_WORD takes for types when in parentheses.
_C_WORDS = frozenset(
    "int char short long float double void signed unsigned _Bool bool".split()  # noqa: SIM905
)


def unparse(node: Argument | Expression) -> str:
    """Canonical text of an argument or expression; parsing it gives the same tree again."""
    if not isinstance(node, Argument):
        return _text(node)[0]
    text = "" if node.name is None else f"{node.name}="
    text += unparse(node.expression)
    if node.format is not None:
        text += f":{node.format.text}"
    if node.point is not None:
        text += f" @ {unparse_point(node.point)}"
    return text


def unparse_point(point: Point) -> str:
    """Canonical text of a probe point, without the at sign."""
    if point.address is not None:
        return f"{point.address:#x}"
    text = point.file or point.function or ""
    if point.offset is not None:
        text += f"+{point.offset:#x}"
    if point.line is not None:
        text += f":{point.line}"
    if point.part:
        text += f"%{point.part}"
    return text + ("%return" if point.returns else "")


def unparse_type(type: TypeName) -> str:
    """Canonical text of a type's name.

    Stars follow the name of a C type and before everything that only Go can
    spell, which is then as Go's debug information has it: ``[]*main.T``.
    """
    return _type(type, prefix=_is_go(type))


def _type(type: TypeName, prefix: bool) -> str:
    match type:
        case NamedType(keyword=keyword, name=name, arguments=arguments, brackets=brackets):
            text = name if keyword is None else f"{keyword} {name}"
            if arguments:
                go = brackets == "["
                inner = [
                    str(argument)
                    if isinstance(argument, int)
                    else _type(argument, go or _is_go(argument))
                    for argument in arguments
                ]
                # Go's debug information has no blank after the comma.
                text += f"[{','.join(inner)}]" if go else f"<{', '.join(inner)}>"
            return text
        case PointerTo(target=target):
            if prefix:
                return "*" + _type(target, prefix)
            text = _type(target, prefix)
            return text + "*" if text.endswith("*") else text + " *"
        case ArrayOf(element=element, count=count):
            return f"[{count}]{_type(element, prefix=True)}"
        case SliceOf(element=element):
            return f"[]{_type(element, prefix=True)}"
        case RowOf():
            ranks = ""
            while isinstance(type, RowOf):
                ranks += f"[{',' * (type.rank - 1)}]"
                type = type.element
            return _type(type, prefix=False) + ranks
        case MapOf(key=key, value=value):
            return f"map[{_type(key, prefix=True)}]{_type(value, prefix=True)}"
        case ChannelOf(element=element, direction=direction):
            return f"{direction} {_type(element, prefix=True)}"
        case _:
            assert_never(type)


def _is_go(type: TypeName) -> bool:
    while isinstance(type, PointerTo):
        type = type.target
    if isinstance(type, NamedType):
        return type.brackets == "[" or "." in type.name or "{" in type.name
    return not isinstance(type, RowOf)


def _text(node: Expression) -> tuple[str, int]:
    # The text and how tightly its outermost form binds.
    match node:
        case Name(text=text, line=line):
            return (text if line is None else f"{text}@{line}"), _POSTFIX
        case Special(name=name):
            return f"${name}", _POSTFIX
        case Register(name=name):
            return f"%{name}", _POSTFIX
        case Integer(value=value, suffix=suffix, is_decimal=is_decimal):
            return f"{value if is_decimal else hex(value)}{suffix}", _POSTFIX
        case FloatNumber(value=real, suffix=suffix):
            return f"{real!r}{suffix}", _POSTFIX
        case StringLiteral(value=raw):
            return quoted(raw), _POSTFIX
        case Member(base=base, name=name, arrow=arrow):
            return f"{_operand(base, _POSTFIX)}{'->' if arrow else '.'}{name}", _POSTFIX
        case Index(base=base, index=index, further=further):
            indices = ", ".join(map(_bound, (index, *further)))
            return f"{_operand(base, _POSTFIX)}[{indices}]", _POSTFIX
        case Range(base=base, low=low, high=high, room=room):
            bounds = [_bound(low), "" if high is None else _bound(high)]
            if room is not None:
                bounds.append(_bound(room))
            return f"{_operand(base, _POSTFIX)}[{':'.join(bounds)}]", _POSTFIX
        case Assertion(base=base, type=type):
            return f"{_operand(base, _POSTFIX)}.({unparse_type(type)})", _POSTFIX
        case MethodCall(base=base, name=name, arguments=arguments):
            return f"{_operand(base, _POSTFIX)}.{name}({_list(arguments)})", _POSTFIX
        case Call(function=function, arguments=(first, *rest), type=type) if type is not None:
            inner = f"{_text(first)[0]}, {unparse_type(type)}, {_list(tuple(rest))}"
            return f"{function}({inner})", _POSTFIX
        case Call(function=function, arguments=arguments):
            return f"{function}({_list(arguments)})", _POSTFIX
        case SizeOf(operand=operand):
            # With the stars before it, a pointer would be read as a value again.
            inner = _text(operand)[0] if isinstance(operand, Expression) else _c_type(operand)
            return f"sizeof({inner})", _POSTFIX
        case OffsetOf(type=type, path=path):
            return f"offsetof({unparse_type(type)}, {_path(path)})", _POSTFIX
        case ContainerOf(operand=operand, type=type, path=path):
            inner = f"{_text(operand)[0]}, {unparse_type(type)}, {_path(path)}"
            return f"container_of({inner})", _POSTFIX
        case Dereference(operand=operand):
            return f"*{_operand(operand, _UNARY)}", _UNARY
        case AddressOf(operand=operand):
            return f"&{_operand(operand, _UNARY)}", _UNARY
        case Negate(operand=operand):
            return f"-{_operand(operand, _UNARY)}", _UNARY
        case Unary(operator="~", operand=operand):
            return f"~({_text(operand)[0]})", _UNARY  # `~r0` is a name of Go
        case Unary(operator=operator, operand=operand):
            return f"{operator}{_operand(operand, _UNARY)}", _UNARY
        case Cast(type=type, operand=operand, reinterprets=True):
            return f"reinterpret_cast<{unparse_type(type)}>({unparse(operand)})", _POSTFIX
        case Cast(type=type, operand=operand):
            return _cast(type, operand)
        case Binary(operator=operator, left=left, right=right):
            binding = _PRECEDENCE[operator]
            sides = _side(operator, left, binding), _side(operator, right, binding + 1)
            return f"{sides[0]} {operator} {sides[1]}", binding
        case Ternary(condition=condition, if_true=if_true, if_false=if_false):
            text = f"{_operand(condition, _CHOICE + 1)} ? {_text(if_true)[0]}"
            return f"{text} : {_text(if_false)[0]}", _CHOICE
        case _:
            assert_never(node)


def _side(operator: str, node: Expression, at_least: int) -> str:
    other = isinstance(node, Binary) and grouped_otherwise(operator, node.operator)
    return f"({_text(node)[0]})" if other else _operand(node, at_least)


def _operand(node: Expression, at_least: int) -> str:
    text, binding = _text(node)
    return text if binding >= at_least else f"({text})"


def _bound(bound: int | Expression) -> str:
    return str(bound) if isinstance(bound, int) else _text(bound)[0]


def _cast(type: TypeName, operand: Expression) -> tuple[str, int]:
    text, binding = _text(operand)
    if text in _C_WORDS:
        return f"({unparse_type(type)}){text}", _UNARY  # `(T)(char)-x` would be two casts
    if _is_go(type):
        return f"({unparse_type(type)})({text})", _POSTFIX
    # Without knowing types, `(name)-x` is a subtraction.
    bare = isinstance(operand, Cast) or binding >= _POSTFIX
    return f"({unparse_type(type)}){text if bare else f'({text})'}", _UNARY


def _c_type(type: TypeName) -> str:
    innermost = type
    while isinstance(innermost, PointerTo):
        innermost = innermost.target
    return _type(type, prefix=not isinstance(innermost, NamedType))


def _list(arguments: tuple[Expression, ...]) -> str:
    return ", ".join([_text(argument)[0] for argument in arguments])


def _path(path: Path) -> str:
    text = ""
    for step in path.steps:
        text += f"[{step.index}]" if isinstance(step, IndexStep) else f".{step.name}"
    return text.removeprefix(".")


def quoted(raw: bytes) -> str:
    """A string in double quotes, as the parser reads it."""
    text = raw.decode("utf-8", "surrogateescape").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join([one if one.isprintable() else _escaped(one) for one in text]) + '"'


def _escaped(character: str) -> str:
    return "".join([f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape")])
