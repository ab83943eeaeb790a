"""Drawing calculations in Rust: operators of one type, conversions, conditions.

An operand is an ``Option`` in the program: where Rust panics (a sum that is too large, a division
by zero, a shift by the width or more) there is no value, and a trace shows a fault.
"""

from __future__ import annotations

from random import Random

from fetchc.conformance.rust_drawing import RustExpression, RustProbe, RustProgram, Scalar

__all__ = ["draw_operators"]

_BITS = {f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32, 64)}
_FLOATS = ("f32", "f64")
_MEMBERS = {f"m{at}": type for at, type in enumerate([*_BITS, *_FLOATS, "bool"])}
_CHECKED = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem"}
_COMPARED = ("==", "!=", "<", "<=", ">", ">=")
_DECLARED = (
    f"struct Values {{ {', '.join(f'{name}: {type}' for name, type in _MEMBERS.items())} }}",
    "fn one<A, R>(a: Option<A>, of: impl Fn(A) -> Option<R>) -> Option<R> { a.and_then(of) }",
    "fn two<A, B, R>(a: Option<A>, b: Option<B>, of: impl Fn(A, B) -> Option<R>) -> Option<R> {",
    "    match (a, b) { (Some(a), Some(b)) => of(a, b), _ => None } }",
    'fn value<T: Shown>(a: Option<T>) -> String { a.map_or("null".into(), |it| it.shown()) }',
)


def draw_operators(random: Random, functions: int, expressions: int) -> RustProgram:
    """Functions that take the edges of all types, and ``expressions`` of each over them."""
    probes = []
    for number in range(functions):
        given = ", ".join(f"{name}: {_value(random, type)}" for name, type in _MEMBERS.items())
        taken = ("v0", Scalar("&Values"), f"&Values {{ {given} }}")
        found: dict[str, RustExpression] = {}
        while len(found) < expressions:
            type = random.choice([*_MEMBERS.values(), "bool"])
            text, written = _drawn(random, type, random.choice((1, 2, 3)))
            found[text] = RustExpression(text, f"value({written})")
        probes.append(RustProbe(f"f{number}", (taken,), tuple(found.values())))
    return RustProgram(("Values",), _DECLARED, tuple(probes))


def _value(random: Random, type: str) -> str:
    if type == "bool":
        return random.choice(("true", "false"))
    if type in _FLOATS:
        return random.choice(("0.0", "-0.0", "1.5", "-7.25e10", "0.5", "1e30"))
    bits = _BITS[type]
    low = -(1 << bits - 1) if type[0] == "i" else 0
    high = low + (1 << bits) - 1
    return str(random.choice((low, high, 0, 1, 3, max(low, -1), high // 3, low + high // 2)))


def _drawn(random: Random, type: str, depth: int) -> tuple[str, str]:
    # The expression, and the same in the program, whose value is an Option of the type.
    if depth == 0:
        name = random.choice([name for name, one in _MEMBERS.items() if one == type])
        return f"v0.{name}", f"Some(v0.{name})"
    if type == "bool":
        return _truth(random, depth)
    one, two = (_drawn(random, type, depth - 1) for _ in range(2))
    if random.random() < 0.2 and type not in _FLOATS:
        two = _constant(random, type)
    which = random.random()
    if which < 0.15:
        condition = _drawn(random, "bool", depth - 1)
        written = f"one({condition[1]}, |c| if c {{ {one[1]} }} else {{ {two[1]} }})"
        return f"({condition[0]}) ? ({one[0]}) : ({two[0]})", written
    if which < 0.35:
        other = random.choice([*_BITS, *_FLOATS])
        text, inner = _drawn(random, other, depth - 1)
        return f"({type})({text})", f"one({inner}, |x| Some(x as {type}))"
    if type in _FLOATS:
        operator = random.choice("+-*/")
        written = f"two({one[1]}, {two[1]}, |x, y| Some(x {operator} y))"
        return f"({one[0]}) {operator} ({two[0]})", written
    if which < 0.5:
        operator = random.choice("&|^")
        written = f"two({one[1]}, {two[1]}, |x, y| Some(x {operator} y))"
    elif which < 0.6:
        operator, name = random.choice((("<<", "shl"), (">>", "shr")))
        count = _drawn(random, random.choice(list(_BITS)), 0)
        if random.random() < 0.5:
            count = str(low := random.randrange(_BITS[type])), f"Some({low}u32)"
        shifted = f"u32::try_from(y).ok().and_then(|n| x.checked_{name}(n))"
        if random.random() < 0.4:  # an untyped number takes the type of the other operand
            value = random.choice((1, 7))
            written = f"two(Some({value}{type}), {count[1]}, |x, y| {shifted})"
            if type == "i32" and random.random() < 0.5:
                return f"{value} {operator} ({count[0]})", written
            also = f"two({one[1]}, {written}, |x, y| Some(x ^ y))"
            return f"({one[0]}) ^ ({value} {operator} ({count[0]}))", also
        return f"({one[0]}) {operator} ({count[0]})", f"two({one[1]}, {count[1]}, |x, y| {shifted})"
    elif which < 0.66:
        return f"-({one[0]})", f"one({one[1]}, |x| x.checked_neg())"
    elif which < 0.72:
        name = random.choice(("min", "max"))
        return f"{name}({one[0]}, {two[0]})", f"two({one[1]}, {two[1]}, |x, y| Some(x.{name}(y)))"
    elif which < 0.76:
        return f"!({one[0]})", f"one({one[1]}, |x| Some(!x))"
    else:
        operator = random.choice(list(_CHECKED))
        written = f"two({one[1]}, {two[1]}, |x, y| x.checked_{_CHECKED[operator]}(y))"
    return f"({one[0]}) {operator} ({two[0]})", written


def _truth(random: Random, depth: int) -> tuple[str, str]:
    if random.random() < 0.6:
        type = random.choice([*_BITS, *_FLOATS])
        one, two = (_drawn(random, type, depth - 1) for _ in range(2))
        if random.random() < 0.3 and type not in _FLOATS:
            two = _constant(random, type)
        operator = random.choice(_COMPARED)
        written = f"two({one[1]}, {two[1]}, |x, y| Some(x {operator} y))"
        return f"({one[0]}) {operator} ({two[0]})", written
    one, two = (_drawn(random, "bool", depth - 1) for _ in range(2))
    match random.choice(("&&", "||", "!", "&", "|", "^")):
        case "&&":
            return (
                f"({one[0]}) && ({two[0]})",
                f"one({one[1]}, |x| if x {{ {two[1]} }} else {{ Some(x) }})",
            )
        case "||":
            return (
                f"({one[0]}) || ({two[0]})",
                f"one({one[1]}, |x| if x {{ Some(x) }} else {{ {two[1]} }})",
            )
        case "!":
            return f"!({one[0]})", f"one({one[1]}, |x| Some(!x))"
        case operator:
            written = f"two({one[1]}, {two[1]}, |x, y| Some(x {operator} y))"
            return f"({one[0]}) {operator} ({two[0]})", written


def _constant(random: Random, type: str) -> tuple[str, str]:
    number = random.choice((1, 2, 7, 100))
    suffix = random.choice(("", "", type, f"_{type}"))
    return f"{number}{suffix}", f"Some({number}{type})"
