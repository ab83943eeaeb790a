"""Drawing Rust types, values of them, and functions whose parameters are walked.

Types are data; only rustc knows where a field is. Every drawn type implements ``Shown``, so the
program itself writes what a trace has to show, as JSON.
"""

from __future__ import annotations

from random import Random

from fetchc.conformance.container_drawing import BOUNDS, MOST, SIZES
from fetchc.record import Record

__all__ = ["RustProbe", "RustProgram", "draw_collections", "draw_rust", "rust_source"]

_INTEGERS = {f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32, 64)}
_INTEGERS |= {"isize": 64, "usize": 64}
_SCALARS = [*_INTEGERS, "bool", "char", "f32", "f64"]


class Scalar(Record):
    """A number, ``bool`` or ``char``."""

    source: str


class Text(Record):
    """``String`` or ``&'static str``."""

    source: str


class Several(Record):
    """A ``Vec``, a slice, or an array of ``count`` elements."""

    source: str
    element: RustType
    form: str  # vec, slice, array
    count: int


class Reference(Record):
    """A reference or a ``Box``; ``new`` makes one of a value."""

    source: str
    target: RustType
    new: str


class Fields(Record):
    """A structure or a tuple; ``tuple_like``: its fields are numbered."""

    source: str
    members: tuple[tuple[str, RustType], ...]
    tuple_like: bool


class Variants(Record):
    """An enum with fields, ``Option`` and ``Result`` among them."""

    source: str
    cases: tuple[tuple[str, Fields], ...]


class Enumerators(Record):
    """An enum without fields."""

    source: str
    names: tuple[str, ...]


class Collection(Record):
    """A map, a set or a ``Vec`` of ``many`` elements: without ``value`` or ``key``.

    ``step`` makes the keys of numbers of elements.
    """

    source: str
    key: Scalar | Text | None
    value: RustType | None
    many: int
    step: int


RustType = Scalar | Text | Several | Reference | Fields | Variants | Enumerators


class RustExpression(Record):
    """An expression of a trace, and the program's own expression for it, of type String."""

    text: str
    written: str


class RustProbe(Record):
    """A function that takes ``parameters``; the values with which it is called are Rust's."""

    name: str
    parameters: tuple[tuple[str, RustType | Collection, str], ...]
    expressions: tuple[RustExpression, ...]


class RustProgram(Record):
    """Declarations of types, and the functions that are probed."""

    types: tuple[str, ...]
    declared: tuple[str, ...]
    probes: tuple[RustProbe, ...]


# ------------------------------------------------------------------------------
# The program: it writes the values of a function's expressions, then calls it.

_HEADER = """#![allow(unused, dead_code, improper_ctypes_definitions)]
#[inline(always)]
fn seen<T>(v: &T) { unsafe { std::arch::asm!("/* {0} */", in(reg) v as *const T) } }
trait Shown { fn shown(&self) -> String; }
fn text(s: &str) -> String { format!("{:?}", s) }
fn listed<T: Shown>(all: &[T]) -> String {
    format!("[{}]", all.iter().map(|one| one.shown()).collect::<Vec<_>>().join(", "))
}
macro_rules! number { ($($t:ty),*) => { $(impl Shown for $t {
    fn shown(&self) -> String { format!("{:?}", self) } })* } }
macro_rules! float { ($($t:ty),*) => { $(impl Shown for $t { fn shown(&self) -> String {
    let shown = format!("{:?}", self).replace("inf", "Infinity");
    if self.is_finite() { shown } else { text(&shown) } } })* } }
float!(f32, f64);
number!(i8, i16, i32, i64, u8, u16, u32, u64, isize, usize, bool);
impl Shown for char { fn shown(&self) -> String { text(&self.to_string()) } }
impl Shown for String { fn shown(&self) -> String { text(self) } }
impl Shown for &'static str { fn shown(&self) -> String { text(self) } }
impl<T: Shown> Shown for Vec<T> { fn shown(&self) -> String { listed(self) } }
impl<T: Shown> Shown for &'static [T] { fn shown(&self) -> String { listed(self) } }
impl<T: Shown, const N: usize> Shown for [T; N] { fn shown(&self) -> String { listed(self) } }
impl<T> Shown for Box<T> { fn shown(&self) -> String { (&**self as *const T as usize).shown() } }
macro_rules! reference { ($($t:ty),*) => { $(impl Shown for &'static $t {
    fn shown(&self) -> String { (*self as *const $t as usize).shown() } })* } }
reference!(u32);
impl<A: Shown, B: Shown> Shown for (A, B) {
    fn shown(&self) -> String { format!("[{}, {}]", self.0.shown(), self.1.shown()) } }
impl<A: Shown, B: Shown, C: Shown> Shown for (A, B, C) {
    fn shown(&self) -> String {
        format!("[{}, {}, {}]", self.0.shown(), self.1.shown(), self.2.shown()) } }
impl<T: Shown> Shown for Option<T> { fn shown(&self) -> String { match self {
    None => text("None"), Some(it) => format!("{{\\"Some\\": {}}}", it.shown()) } } }
impl<T: Shown, E: Shown> Shown for Result<T, E> { fn shown(&self) -> String { match self {
    Ok(it) => format!("{{\\"Ok\\": {}}}", it.shown()),
    Err(it) => format!("{{\\"Err\\": {}}}", it.shown()) } } }
fn walked(each: Vec<String>, most: usize) -> String {
    format!("{{\\"walked\\": [{}], \\"most\\": {}}}", each.join(", "), most) }
fn entry(key: String, value: String) -> String {
    format!("{{\\"key\\": {}, \\"value\\": {}}}", key, value) }
fn variant(name: &str) -> String { format!("{{\\"variant\\": \\"{}\\"}}", name) }
"""


def rust_source(program: RustProgram) -> str:
    """The program; it prints a line of JSON before each call."""
    lines = [_HEADER, *program.declared]
    calls = []
    for number, probe in enumerate(program.probes):
        taken = ", ".join(f"{name}: {type.source}" for name, type, _ in probe.parameters)
        kept = "".join(f" seen(&{name});" for name, _, _ in probe.parameters)
        lines += [
            "#[inline(never)]",
            f"fn {probe.name}({taken}) {{{kept} seen(&{number}); }}",
        ]
        given = [
            f"let {name}: {type.source} = {value}; seen(&{name});"
            for name, type, value in probe.parameters
        ]
        values = ", ".join(f"{one.written}" for one in probe.expressions)
        said = f'println!("{{}} [{{}}]", "{probe.name}", vec![{values}].join(", "));'
        passed = ", ".join(name for name, _, _ in probe.parameters)
        calls += [f"fn call_{probe.name}() {{", *given, said, f"{probe.name}({passed}); }}"]
    main = " ".join(f"call_{probe.name}();" for probe in program.probes)
    return "\n".join([*lines, *calls, f"fn main() {{ {main} }}", ""])


# ------------------------------------------------------------------------------
# Types.


def draw_rust(random: Random, types: int, functions: int, expressions: int) -> RustProgram:
    """A program of ``types`` declared types, with ``expressions`` of each function at most."""
    drawing = _Drawing(random)
    for number in range(types):
        drawing.declare(number)
    probes = [drawing.probe(f"f{number}", expressions) for number in range(functions)]
    return _program(drawing, types, probes)


def draw_collections(random: Random, types: int, functions: int, expressions: int) -> RustProgram:
    """As :func:`draw_rust`, of functions that take a ``Vec``, maps and sets of many elements."""
    drawing = _Drawing(random)
    for number in range(types):
        drawing.declare(number)
    probes = [drawing.of_collections(f"f{number}", expressions) for number in range(functions)]
    return _program(drawing, types, probes)


def _program(drawing: _Drawing, types: int, probes: list[RustProbe]) -> RustProgram:
    names = tuple([f"T{number}" for number in range(types)])
    return RustProgram(names, tuple(drawing.declared), tuple(probes))


class _Drawing:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._named: list[RustType] = []
        self.declared: list[str] = []

    def declare(self, number: int) -> None:
        kind = self._random.choice(["struct", "struct", "tuple", "enum", "enum", "enumerators"])
        name = f"T{number}"
        if kind == "enumerators":
            self._enumerators(name)
            return
        if kind == "enum":
            cases = tuple([self._case(name, at) for at in range(self._random.randrange(1, 5))])
            made: RustType = Variants(name, cases)
            body = ", ".join(_declared(case.removeprefix(f"{name}::"), it) for case, it in cases)
            self.declared.append(f"enum {name} {{ {body} }}")
            arms = [_arm(case, it, _of_variant(case, it)) for case, it in cases]
            shown = f"match self {{ {', '.join(arms)} }}"
        else:
            made = self._fields(name, kind == "tuple", 1, 6)
            packed = "#[repr(C)] " if self._random.random() < 0.2 else ""
            end = ";" if made.tuple_like else ""
            self.declared.append(f"{packed}struct {_declared(name, made)}{end}")
            shown = f"match self {{ {_arm(name, made, _of_fields(made))} }}"
        self.declared.append(f"impl Shown for {name} {{ fn shown(&self) -> String {{ {shown} }} }}")
        self.declared.append(f"reference!({name});")
        self._named.append(made)

    def _enumerators(self, name: str) -> None:
        names = tuple([f"V{at}" for at in range(self._random.randrange(2, 6))])
        kind = self._random.choice(["u8", "i8", "i16", "u32", "i64", ""])
        low = -100 if kind.startswith("i") else 0
        values = sorted(self._random.sample(range(low, 120), len(names)))
        listed = ", ".join(f"{one} = {at}" for one, at in zip(names, values, strict=True))
        shape = f"#[repr({kind})] " if kind else ""
        self.declared += [
            f"#[derive(Clone, Copy, Debug)] {shape}enum {name} {{ {listed} }}",
            f"impl Shown for {name} {{ fn shown(&self) -> String {{ "
            'format!("{{\\"name\\": \\"{:?}\\", \\"value\\": {}}}", self, *self as i64) } }',
        ]
        self._named.append(Enumerators(name, names))

    def _case(self, name: str, at: int) -> tuple[str, Fields]:
        # The first one has fields: an enum without any is a number.
        most = self._random.choice([0, 1, 1, 2, 3])
        return f"{name}::C{at}", self._fields("", self._random.random() < 0.6, int(not at), most)

    def _fields(self, name: str, tuple_like: bool, least: int, most: int) -> Fields:
        count = self._random.randint(least, max(least, most))
        names = [str(at) if tuple_like else f"m{at}" for at in range(count)]
        return Fields(name, tuple([(it, self.type(1)) for it in names]), tuple_like)

    def type(self, depth: int) -> RustType:
        random = self._random
        which = random.random()
        if which < 0.35 or depth > 3:
            return Scalar(random.choice(_SCALARS))
        if which < 0.45:
            return Text(random.choice(["String", "&'static str"]))
        if which < 0.6 and self._named:
            return random.choice(self._named)
        if which < 0.75:
            return self._generic(depth)
        if which < 0.88:
            return self._several(depth)
        if which < 0.94:
            members = [self.type(depth + 1) for _ in range(random.randrange(2, 4))]
            return _tuple(members)
        return self._reference(depth)

    def _generic(self, depth: int) -> Variants:
        inner = self.type(depth + 1)
        some = Fields("", (("0", inner),), True)
        if self._random.random() < 0.7:
            none = Fields("", (), True)
            return Variants(f"Option<{inner.source}>", (("None", none), ("Some", some)))
        other = self.type(depth + 1)
        error = Fields("", (("0", other),), True)
        return Variants(f"Result<{inner.source}, {other.source}>", (("Ok", some), ("Err", error)))

    def _several(self, depth: int) -> Several:
        element = self.type(depth + 1)
        form = self._random.choice(["vec", "slice", "array"])
        count = self._random.randrange(1, 5)
        source = {
            "vec": f"Vec<{element.source}>",
            "slice": f"&'static [{element.source}]",
            "array": f"[{element.source}; {count}]",
        }[form]
        return Several(source, element, form, count)

    def _reference(self, depth: int) -> Reference:
        target = self._random.choice(self._named) if self._named else Scalar("u32")
        if isinstance(target, Enumerators) or self._random.random() < 0.5:
            inner = self.type(depth + 1)
            return Reference(f"Box<{inner.source}>", inner, "Box::new")
        return Reference(f"&'static {target.source}", target, "&*Box::leak(Box::new")

    # -- values

    def value(self, type: RustType) -> str:
        """An expression that makes one."""
        random = self._random
        match type:
            case Scalar(source="bool"):
                return random.choice(["true", "false"])
            case Scalar(source="char"):
                return random.choice(["'x'", "'é'", "'中'", "'😀'"])
            case Scalar(source="f32" | "f64" as name):
                return random.choice(["0.0", "-1.5", "3.25e10", "0.5"]) + name
            case Scalar(source=name):
                return self._integer(name)
            case Text(source=source):
                text = random.choice(["", "a", "bç", "word " * 3, "quite a long one " * 3])
                return f'"{text}"' + (".to_string()" if source == "String" else "")
            case Several(element=element, form=form, count=count):
                count = count if form == "array" else random.choice([0, 1, 2, 3, 5])
                inner = ", ".join(self.value(element) for _ in range(count))
                if form == "slice":
                    return f"Vec::leak(vec![{inner}]) as &'static [{element.source}]"
                return f"vec![{inner}]" if form == "vec" else f"[{inner}]"
            case Reference(target=target, new=new):
                return f"{new}({self.value(target)}){')' * new.startswith('&')}"
            case Fields():
                return self._built(type.source, type)
            case Variants(cases=cases):
                return self._built(*random.choice(cases))
            case Enumerators(source=source, names=names):
                return f"{source}::{random.choice(names)}"

    def _built(self, name: str, fields: Fields) -> str:
        name = "" if name.startswith("(") else name
        if not fields.members:
            return name
        if fields.tuple_like:
            return f"{name}({', '.join(self.value(type) for _, type in fields.members)},)"
        inner = ", ".join(f"{member}: {self.value(type)}" for member, type in fields.members)
        return f"{name} {{ {inner} }}"

    def _integer(self, name: str) -> str:
        bits = _INTEGERS[name]
        low, high = (
            (-(1 << bits - 1), (1 << bits - 1) - 1) if name[0] == "i" else (0, (1 << bits) - 1)
        )
        value = self._random.choice([0, 1, low, high, self._random.randint(low, high)])
        return f"({value}{name})"

    # -- functions

    def probe(self, name: str, expressions: int) -> RustProbe:
        """A function of some parameters, and drawn expressions of them."""
        taken = []
        for at in range(self._random.randrange(1, 5)):
            type = self._random.choice(self._named) if self._random.random() < 0.4 else self.type(0)
            if isinstance(type, Fields | Variants) and self._random.random() < 0.3:
                type = Reference(f"&'static {type.source}", type, "&*Box::leak(Box::new")
                if type.target not in self._named:
                    type = Reference(f"Box<{type.target.source}>", type.target, "Box::new")
            taken.append((f"v{at}", type, self.value(type)))
        found: dict[str, RustExpression] = {}
        for number in range(expressions):
            root, type, _ = taken[number % len(taken)]
            one = self._walked(root, root, type)
            found.setdefault(one.text, one)
        return RustProbe(name, tuple(taken), tuple(found.values()))

    def _walked(self, text: str, place: str, type: RustType) -> RustExpression:
        # ``place`` is what Rust calls it; what may not be there is matched around the rest.
        random = self._random
        if random.random() < 0.12:
            return self._end(text, place, type)
        match type:
            case Fields(members=members) if members:
                name, inner = random.choice(members)
                return self._walked(f"{text}.{name}", f"{place}.{name}", inner)
            case Variants(cases=cases):
                case, fields = random.choice(cases)
                if not fields.members:
                    return self._end(text, place, type)
                name, inner = random.choice(fields.members)
                short = case.rpartition("::")[2]
                found = self._walked(f"{text}.{short}.{name}", "(*it)", inner)
                return _of_case(found, place, type, case, name)
            case Several(element=element, form=form, count=count):
                if random.random() < 0.3:
                    return self._end(text, place, type)
                at = random.randrange(count if form == "array" else 3)
                found = self._walked(f"{text}[{at}]", "(*it)", element)
                there = f"Some(it) => {found.written}"
                written = f'match {place}.get({at}) {{ {there}, None => "null".into() }}'
                return RustExpression(found.text, written)
            case Reference(target=target):
                if not isinstance(target, Fields | Variants | Several):
                    return self._walked(f"(*{text})", f"(*{place})", target)
                found = self._walked(text, f"(*{place})", target)
                # A pointer itself shows its address.
                return found.replaced(text=f"*{text}") if found.text == text else found
            case _:
                return self._end(text, place, type)

    def _end(self, text: str, place: str, type: RustType) -> RustExpression:
        random = self._random
        if isinstance(type, Several | Text) and random.random() < 0.4:
            written = f"Shown::shown(&{place}.len())"
            return RustExpression(random.choice([f"len({text})", f"{text}.len()"]), written)
        if isinstance(type, Several) and type.form != "array" and random.random() < 0.4:
            return RustExpression(f"list({text})", f"Shown::shown(&{place})")
        return RustExpression(text, f"Shown::shown(&{place})")

    # -- collections

    def of_collections(self, name: str, expressions: int) -> RustProbe:
        """A function of some collections, and drawn expressions of them."""
        taken = [self._collection() for _ in range(self._random.randrange(1, 4))]
        found: dict[str, RustExpression] = {}
        for number in range(expressions):
            root = f"v{number % len(taken)}"
            one = self._of_collection(root, taken[number % len(taken)])
            found.setdefault(one.text, one)
        values = [(f"v{at}", type, self._collected(type)) for at, type in enumerate(taken)]
        return RustProbe(name, tuple(values), tuple(found.values()))

    def _collection(self) -> Collection:
        random = self._random
        form = random.choice(["HashMap", "HashMap", "BTreeMap", "HashSet", "BTreeSet", "Vec"])
        number = Scalar(random.choice([*_INTEGERS, "char"]))
        keys: list[Scalar | Text] = [number, Text("String")]
        key = None if form == "Vec" else random.choice(keys)
        value = None if form.endswith("Set") else self.type(1)
        arguments = ", ".join([one.source for one in (key, value) if one is not None])
        source = f"{'std::collections::' * (key is not None)}{form}<{arguments}>"
        return Collection(source, key, value, random.choice(SIZES), random.randrange(1, 60, 2))

    def _collected(self, of: Collection) -> str:
        parts = []
        if of.key is not None:
            parts.append(_key_of(of.key, of.step))
        if of.value is not None:
            each = [f"{at} => {self.value(of.value)}" for at in range(3)]
            parts.append(f"match n % 4 {{ {', '.join(each)}, _ => {self.value(of.value)} }}")
        element = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
        collected = f"(0..{of.many}i64).map(|n| {element}).collect::<{of.source}>()"
        if of.key is None or self._random.random() < 0.5:
            return collected
        removed = f"for n in (0..{of.many}i64).step_by(3) {{ all.remove(&({parts[0]})); }}"
        return f"{{ let mut all = {collected}; {removed} all }}"

    def _of_collection(self, root: str, of: Collection) -> RustExpression:
        random = self._random
        which = random.random()
        if which < 0.1:
            text = random.choice([f"len({root})", f"{root}.len()"])
            return RustExpression(text, f"Shown::shown(&{root}.len())")
        if which < 0.4 and of.key is not None and of.value is not None:
            key, literal = _constant_key(of.key, of.step * random.randrange(of.many + 2))
            found = self._walked(f"{root}[{key}]", "(*it)", of.value)
            while found.text.startswith("list("):  # of an element: an expression walks one of them
                found = self._walked(f"{root}[{key}]", "(*it)", of.value)
            there = f"Some(it) => {found.written}"
            written = f'match {root}.get({literal}) {{ {there}, None => "null".into() }}'
            return RustExpression(found.text, written)
        most = random.choice((MOST, MOST, *BOUNDS))
        bound = "" if most == MOST else str(most)
        text = f"{root}[:{bound}]"
        if of.key is None or random.random() < 0.3:
            text = f"list({root}{', ' * bool(bound)}{bound})"
        element = of.key if of.value is None else of.value
        assert element is not None
        found = self._selected(text, "(*it)", element)
        each = f".map(|it| {found.written})"
        if of.key is not None and of.value is not None:
            each = f".map(|(key, it)| entry(key.shown(), {found.written}))"
        return RustExpression(found.text, f"walked({root}.iter(){each}.collect(), {most})")

    def _selected(self, text: str, place: str, type: RustType) -> RustExpression:
        # Of each element: its members, and those of a variant.
        random = self._random
        match type:
            case Fields(members=members) if members and random.random() < 0.7:
                name, inner = random.choice(members)
                return self._selected(f"{text}.{name}", f"{place}.{name}", inner)
            case Variants(cases=cases) if random.random() < 0.7:
                case, fields = random.choice(cases)
                if fields.members:
                    name, inner = random.choice(fields.members)
                    short = case.rpartition("::")[2]
                    found = self._selected(f"{text}.{short}.{name}", "(*it)", inner)
                    return _of_case(found, place, type, case, name)
        return RustExpression(text, f"Shown::shown(&{place})")


def _key_of(type: Scalar | Text, step: int) -> str:
    # The key of the element `n`.
    if isinstance(type, Text):
        return f'format!("k{{}}", n * {step})'
    if type.source == "char":
        return f"(b'a' + (n * {step} % 26) as u8) as char"
    return f"((n * {step}) as {type.source})"


def _constant_key(type: Scalar | Text, number: int) -> tuple[str, str]:
    # In an expression, and what `get` takes.
    if isinstance(type, Text):
        return f'"k{number}"', f'"k{number}"'
    if type.source == "char":
        return f"'{chr(ord('a') + number % 26)}'", f"&'{chr(ord('a') + number % 26)}'"
    bits = _INTEGERS[type.source]
    number %= 1 << bits
    if type.source[0] == "i" and number >> bits - 1:
        number -= 1 << bits
    return str(number), f"&({number}{type.source})"


def _of_case(
    found: RustExpression, place: str, type: Variants, case: str, name: str
) -> RustExpression:
    # What is written of a variant's member where that variant is there.
    bound = f"{case} {{ {name}: it, .. }} => {found.written}"
    others = [
        f'{other} {{ .. }} => variant("{other.rpartition("::")[2]}")'
        for other, _ in type.cases
        if other != case
    ]
    return RustExpression(found.text, f"match &{place} {{ {', '.join([bound, *others])} }}")


def _tuple(members: list[RustType]) -> Fields:
    source = f"({', '.join(one.source for one in members)})"
    return Fields(source, tuple([(str(at), it) for at, it in enumerate(members)]), True)


def _declared(name: str, fields: Fields) -> str:
    if not fields.members:
        return name
    if fields.tuple_like:
        return f"{name}({', '.join(type.source for _, type in fields.members)})"
    inner = ", ".join(f"{member}: {type.source}" for member, type in fields.members)
    return f"{name} {{ {inner} }}"


def _arm(name: str, fields: Fields, shown: str) -> str:
    bound = ", ".join(f"{member}: b{member}" for member, _ in fields.members)
    return f"{name} {{ {bound} }} => {shown}"


def _of_fields(fields: Fields) -> str:
    # What is shown of fields that are bound: a list of numbered ones, an object of named ones.
    values = ", ".join(f"b{member}.shown()" for member, _ in fields.members)
    if fields.tuple_like:
        form = "[" + ", ".join("{}" for _ in fields.members) + "]"
    else:
        form = "{{" + ", ".join(f'\\"{member}\\": {{}}' for member, _ in fields.members) + "}}"
    return f'format!("{form}", {values})'


def _of_variant(case: str, fields: Fields) -> str:
    name = case.rpartition("::")[2]
    if not fields.members:
        return f'text("{name}")'
    if fields.tuple_like and len(fields.members) == 1:
        shown = "b0.shown()"
    else:
        shown = _of_fields(fields)
    return f'format!("{{{{\\"{name}\\": {{}}}}}}", {shown})'
