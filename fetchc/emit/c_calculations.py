"""What operators give, as statements and an expression of C for a BPF program.

The values are those of :func:`fetchc.ir.arithmetic.evaluate`. C leaves some of them undefined (a
signed sum that overflows, a shift by too many bits, a division by zero): sums are of unsigned
numbers here, and the others are behind a condition. Where the language of the traced program has no
value, a condition says so: it is one of the *faults*. BPF has no division of signed numbers before
Linux 6.6, and no product of 128 bits: functions do both, which targets/backend/libbpf.toml has.
"""

from __future__ import annotations

from fetchc.ir.arithmetic import RULES, TRUTH, Calculation, Fetched, Number, converted
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Operand = Calculation | Fetched | float

__all__ = ["Expression", "Statements", "c_type", "either"]

_COMPARED = frozenset(("==", "!=", "<", "<=", ">", ">="))
_WORD = Number(64, False)


class Expression(Record):
    """An expression of C with the type that ``number`` has there; a truth value may be an int.

    ``simple``: no operator of C takes it apart. ``constant`` is its value, where it is one.
    """

    text: str
    number: Number
    simple: bool = True
    constant: float | None = None

    @property
    def operand(self) -> str:
        """It as an operand of another one."""
        return self.text if self.simple else f"({self.text})"


class Statements:
    """Writes one calculation, by ``computed``.

    ``fetched`` has the variable with what is fetched at that position, or of the elements from
    there on the one with that index. ``no_floats`` is the refusal of numbers that BPF has not.
    ``lines`` are the statements, and ``faults`` conditions: each says that there is no value.
    """

    def __init__(
        self, fetched: Callable[[int, str], Expression], no_floats: Callable[[], Exception]
    ) -> None:
        self.lines: list[str] = []
        self.faults: list[str] = []
        self._fetched = fetched
        self._no_floats = no_floats
        self._names: dict[str, int] = {}

    def named(self, stem: str) -> str:
        """A name for a variable that no other one of the calculation has."""
        count = self._names[stem] = self._names.get(stem, 0) + 1
        return stem if count == 1 else f"{stem}{count}"

    def variable(self, stem: str, value: Expression) -> Expression:
        """A variable with that value, to use it more than once."""
        if value.constant is not None or value.text.isidentifier():
            return value
        name = self.named(stem)
        self.lines.append(f"{c_type(value.number)} {name} = {value.text};")
        return Expression(name, value.number)

    def computed(self, node: Calculation) -> Expression:
        """The expression; ``lines`` and ``faults`` have what goes with it."""
        number, operator = node.number, node.operator
        if number.floating or any(one.floating for _, one in node.operands):
            raise self._no_floats()
        if operator == "[]":
            return self._element(node)
        if operator in ("<<", ">>"):
            return self._shift(node)
        if operator in ("&&", "||", "?:"):
            return self._lazy(node)
        given = [
            self.converted(self._operand(node, at), number) for at in range(len(node.operands))
        ]
        if operator == "convert":
            return given[0]
        if operator == "!":
            return _truth(f"!{given[0].operand}", node.result)
        if operator in _COMPARED:
            return _truth(f"{given[0].operand} {operator} {given[1].operand}", node.result)
        if operator in ("/", "%"):
            return self._quotient(node, *given)
        if operator in ("min", "max"):
            first, second = (self.variable("value", one) for one in given)
            compared = "<" if operator == "min" else ">"
            text = f"{second.text} {compared} {first.text} ? {second.text} : {first.text}"
            return _typed(text, number, second, first)
        if operator in ("&", "|", "^"):
            return _typed(f"{given[0].operand} {operator} {given[1].operand}", number, *given)
        if operator in ("~", "&^"):
            exact = [self._exact(one, number) for one in given]
            texts = [*[one.operand for one in exact[:-1]], f"~{exact[-1].operand}"]
            return _typed(" & ".join(texts), number, exact[0])
        if RULES[node.rules].overflow == "fault":
            return self._checked_sum(operator, number, given)
        return _wrapping(operator, number, given)

    # -- operands

    def _operand(self, node: Calculation, at: int) -> Expression:
        value, number = node.operands[at]
        match value:
            case Calculation():
                return self.converted(self.computed(value), number)
            case Fetched(position=position):
                return self.converted(self._fetched(position, ""), number)
            case _ if number.floating or isinstance(value, float):
                raise self._no_floats()
            case _:
                return _literal(value, number)

    def _on_condition(self, node: Calculation, at: int, condition: str) -> Expression:
        # Its faults count where the condition holds.
        mark = len(self.faults)
        found = self._operand(node, at)
        if faults := self.faults[mark:]:
            reasons = either(faults)
            self.faults[mark:] = [f"{condition} && {f'({reasons})' if '|' in reasons else reasons}"]
        return found

    def converted(self, value: Expression, number: Number) -> Expression:
        """The value as ``number``; with the type that it has where C widens that by itself."""
        own = value.number
        if own == number:
            return value
        if value.constant is not None:
            constant = converted(value.constant, number, RULES["c"])
            assert isinstance(constant, int)
            return _literal(constant, number)
        if number.bits == 1:
            return Expression(f"{value.operand} != 0", TRUTH, simple=False)
        # C widens numbers of one sign, and those that an int holds, by itself.
        widens = own.signed == number.signed or not own.signed
        if widens and own.bits < number.bits and (own.bits < 32 or own.signed == number.signed):
            return value
        return Expression(f"({c_type(number)}){value.operand}", number)

    def _exact(self, value: Expression, number: Number) -> Expression:
        # With the very type, where C would go on with another one.
        value = self.converted(value, number)
        if value.number == number:
            return value
        return Expression(f"({c_type(number)}){value.operand}", number)

    # -- operators

    def _lazy(self, node: Calculation) -> Expression:
        number = node.number
        first = self._operand(node, 0)
        if node.operator == "?:":
            condition = self.variable("condition", first)
            both = [
                self._exact(self._on_condition(node, at, f"{not_}{condition.text}"), number)
                for at, not_ in ((1, ""), (2, "!"))
            ]
            text = f"{condition.text} ? {both[0].operand} : {both[1].operand}"
            return Expression(text, number, simple=False)
        first = self.variable("first", first)
        decided = "!" if node.operator == "||" else ""
        second = self._on_condition(node, 1, f"{decided}{first.text}")
        return _truth(f"{first.text} {node.operator} {second.operand}", node.result)

    def _checked_sum(self, operator: str, number: Number, given: list[Expression]) -> Expression:
        # Of Rust: a sum that the type does not hold ends the program.
        if len(given) == 1:
            given.insert(0, _literal(0, number))
        name, what = {"+": ("sum", "add"), "-": ("sum", "sub"), "*": ("product", "mul")}[operator]
        result = self.named(name)
        self.lines.append(f"{c_type(number)} {result};")
        function = f"__builtin_{what}_overflow"
        if operator == "*" and number.bits == 64:
            function = f"multiply_{'s' if number.signed else 'u'}64"
        overflow = self.named("overflow")
        operands = ", ".join([one.text for one in given])
        self.lines.append(f"bool {overflow} = {function}({operands}, &{result});")
        self.faults.append(overflow)
        return Expression(result, number)

    def _quotient(self, node: Calculation, left: Expression, right: Expression) -> Expression:
        operator, number = node.operator, node.number
        divisor = self.variable("divisor", right)
        if divisor.constant is None:
            self.faults.append(f"!{divisor.text}")
        elif not divisor.constant:
            return self._no_value(number)
        if not number.signed:
            text = f"{left.operand} {operator} {divisor.text}"
            if divisor.constant is None:
                text = f"{divisor.text} ? {text} : 0"
            return _typed(text, number, left, divisor)
        faults = RULES[node.rules].least_by_minus_one == "fault" and divisor.constant in (None, -1)
        if faults and left.number == number and divisor.number.signed:
            left = self.variable("dividend", left)
            least = _literal(-(1 << number.bits - 1), number).text
            condition = f"{left.text} == {least}"
            if divisor.constant is None:
                condition = f"{divisor.text} == -1 && {condition}"
            self.faults.append(condition)
        function = "quotient" if operator == "/" else "remainder_of"
        cast = f"({c_type(number)})" if number.bits < 64 else ""
        return Expression(f"{cast}{function}({left.text}, {divisor.text})", number)

    def _shift(self, node: Calculation) -> Expression:
        number, rule = node.number, RULES[node.rules].shift
        value = self._exact(self._operand(node, 0), number)
        count = self.variable("count", self._operand(node, 1))
        bits = f"({count.text} & {number.bits - 1})" if rule == "masked" else count.text
        if node.operator == ">>" and number.signed and rule == "empties":
            value = self.variable("shifted", value)
            empty = f"({value.text} < 0 ? -1 : 0)"
        else:
            empty = "0"
        if count.constant is not None:
            constant = int(count.constant) & (number.bits - 1 if rule == "masked" else -1)
            if constant < 0 or (constant >= number.bits and rule == "fault"):
                return self._no_value(number)
            if constant >= number.bits:
                return Expression(f"({c_type(number)}){empty}", number)
            bits = str(constant)
        elif rule == "fault":
            self.faults.append(f"(__u64){count.text} >= {number.bits}")
        elif rule == "empties" and count.number.signed:
            self.faults.append(f"{count.text} < 0")
        if node.operator == "<<":
            value = self._exact(value, Number(max(32, number.bits), False))
        text = f"{value.operand} {node.operator} {bits}"
        if count.constant is None and rule != "masked":
            text = f"(__u64){count.text} < {number.bits} ? {text} : {empty}"
        return _typed(text, number, value)

    def _no_value(self, number: Number) -> Expression:
        self.faults.append("true")
        return _literal(0, number)

    def _element(self, node: Calculation) -> Expression:
        first, number = node.operands[1]
        assert isinstance(first, Fetched)
        index = self.variable("index", self._exact(self._operand(node, 0), _WORD))
        self.faults.append(f"{index.text} >= {node.count}")
        found = self._fetched(first.position, index.text)
        return self.converted(self.converted(found, number), node.number)


def c_type(number: Number) -> str:
    """The type of C that has these numbers."""
    if number.bits == 1:
        return "bool"
    return f"__{'s' if number.signed else 'u'}{number.bits}"


def _literal(value: float, number: Number) -> Expression:
    # A constant, with the type of `number` from 32 bits on.
    value = int(value)
    if number.bits < 32:
        text = str(value)
    elif value == -(1 << number.bits - 1):
        text = f"({c_type(number)}){1 << number.bits - 1:#x}U{'LL' * (number.bits == 64)}"
    else:
        text = f"{value}{'U' * (not number.signed)}{'LL' * (number.bits == 64)}"
    return Expression(text, number, constant=value)


def either(conditions: Sequence[str]) -> str:
    """The condition that one of them holds."""
    listed = list(dict.fromkeys(conditions))
    if len(listed) == 1:
        return listed[0]
    return " || ".join([f"({one})" if "&&" in one else one for one in listed])


def _truth(text: str, result: Number) -> Expression:
    # An int, which every number holds.
    return Expression(text, result if result.bits < 32 else Number(32, True), simple=False)


def _typed(text: str, number: Number, *operands: Expression) -> Expression:
    # C takes the wider type of two; of less than 32 bits it has none, but int.
    if number.bits >= 32 and any(one.number == number for one in operands):
        return Expression(text, number, simple=False)
    return Expression(f"({c_type(number)})({text})", number)


def _wrapping(operator: str, number: Number, given: list[Expression]) -> Expression:
    # Of unsigned numbers, which wrap in C.
    word = Number(max(32, number.bits), False)
    texts = [one.operand for one in given]
    if all(one.number != word for one in given):
        texts[0] = f"({c_type(word)}){texts[0]}"
    text = f"-{texts[0]}" if len(texts) == 1 else f"{texts[0]} {operator} {texts[1]}"
    return Expression(text, word, simple=False) if number == word else _typed(text, number)
