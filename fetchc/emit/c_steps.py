"""Steps as statements and expressions of C for a BPF program.

The steps are those that :mod:`fetchc.ir.step_lowering` makes: of a walk, and of the address of an
element. Their numbers have 64 bits and no sign, as `__u64` has.
"""

from __future__ import annotations

from collections import Counter

from fetchc.emit.output_formats import total
from fetchc.ir.steps import Arithmetic, Constant, ReadMemory, Select, operands
from fetchc.ir.term_operators import MASK, NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.ir.steps import Step

__all__ = ["StepWriter", "indented"]

_HALF = 1 << 63
_PLAIN = 1 << 31  # from there on, a constant of C needs a suffix
_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^",
    "eq": "==", "lt": "<",
}  # fmt: skip


class StepWriter:
    """Writes steps, with a variable for what is read, and for what is used twice.

    ``used`` are the values that are wanted of them; ``start`` gives what a step begins at. Where
    memory cannot be read, or a step fails, the variable ``unread`` of the C is true.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        used: Sequence[int],
        start: Callable[[Step], str],
        prefix: str = "",
    ) -> None:
        self._steps = steps
        self._start = start
        self._prefix = prefix
        self._uses = Counter(used)
        for position in range(len(steps) - 1, -1, -1):
            if self._uses[position]:
                self._uses.update(operands(steps[position]))
        self._names: dict[int, str] = {}

    def lines(self, low: int, high: int) -> list[str]:
        """The statements of the steps ``low`` to ``high``."""
        lines: list[str] = []
        for position in range(low, high):
            step = self._steps[position]
            if not self._uses[position]:
                continue
            if isinstance(step, ReadMemory):
                lines += self._read(position, step)
            elif isinstance(step, Arithmetic | Select) and self._uses[position] > 1:
                kind = "bool" if self._is_truth(position) else "__u64"
                text = self.text(position)
                lines.append(f"{kind} {self._named(position, 'value')} = {text};")
        return lines

    def _read(self, position: int, step: ReadMemory) -> list[str]:
        if self._steps[step.base] == Constant(NOWHERE):  # a read that is there to fail
            self._names[position] = "0"
            failed = "true" if step.when is None else self.text(step.when)
            return [f"unread |= {failed};"]
        name = self._named(position, "loaded")
        address = total(self.operand(step.base), step.offset)
        read = f"unread |= read(&{name}, {step.size}, {address});"
        when = [] if step.when is None else [f"if ({self.text(step.when)})"]
        return [f"__u64 {name} = 0;", *when, "    " * len(when) + read]

    def _named(self, position: int, stem: str) -> str:
        stem = self._prefix + stem
        number = 1 + sum([one.startswith(stem) for one in self._names.values()])
        name = self._names[position] = f"{stem}{number}"
        return name

    def operand(self, position: int) -> str:
        """The expression of a value, as an operand of another one."""
        text = self.text(position)
        return f"({text})" if " " in text or text.startswith("!") else text

    def text(self, position: int) -> str:
        """The expression of a value."""
        if position in self._names:
            return self._names[position]
        match self._steps[position]:
            case Constant(value=value):
                return str(value) if value < _PLAIN else f"{value:#x}ULL"
            case Select(condition=condition, nonzero=nonzero, zero=zero):
                both = self.operand(nonzero), self.operand(zero)
                return f"{self.operand(condition)} ? {both[0]} : {both[1]}"
            case Arithmetic() as step:
                return self._arithmetic(step)
            case step:
                return self._start(step)

    def _is_truth(self, position: int) -> bool:
        match self._steps[position]:
            case Constant(value=value):
                return value in (0, 1)
            case Arithmetic(operation="eq" | "lt"):
                return True
            case Arithmetic(operation="and" | "or", left=left, right=right):
                return self._is_truth(left) and self._is_truth(right)
            case _:
                return False

    def _arithmetic(self, step: Arithmetic) -> str:
        constant = self._steps[step.right]
        number = constant.value if isinstance(constant, Constant) else None
        if step.operation == "and" and number == 0:
            return "0"  # of what has to be read
        operation, left, right = step.operation, self.operand(step.left), self.operand(step.right)
        if operation in ("add", "or") and right == "0":
            return self.text(step.left)
        if operation == "and" and number is not None and self._holds(step.left, number):
            return self.text(step.left)
        if operation in ("lsh", "rsh", "arsh"):
            return self._shift(step, left, right, number)
        if operation == "eq" and number == 0 and self._is_truth(step.left):
            match self._steps[step.left]:
                case Arithmetic("lt", less, than) if step.left not in self._names:
                    return f"{self.operand(less)} >= {self.operand(than)}"
            return f"!{left}"
        if operation == "add" and number is not None and number >= _HALF:
            return total(left, number - 2 * _HALF)
        if operation == "xor" and number == MASK:
            return f"~{left}"
        if operation == "div" and number is None:
            return f"{right} ? {left} / {right} : 0"
        if operation in ("and", "or") and self._is_truth(step.left) and self._is_truth(step.right):
            return f"{left} {'&&' if operation == 'and' else '||'} {right}"
        return f"{left} {_OPERATORS[operation]} {right}"

    def _holds(self, position: int, mask: int) -> bool:
        # Whether what is read has no other bits.
        step = self._steps[position]
        return isinstance(step, ReadMemory) and mask == (1 << 8 * step.size) - 1

    def _shift(self, step: Arithmetic, left: str, right: str, number: int | None) -> str:
        count = right if number is not None else f"({right} & 63)"
        if step.operation != "arsh":
            if isinstance(self._steps[step.left], Constant) or self._is_truth(step.left):
                left = f"(__u64){left}"
            return f"{left} {'<<' if step.operation == 'lsh' else '>>'} {count}"
        match self._steps[step.left]:
            case Arithmetic("lsh", low, by) if number in (32, 48, 56) and by == step.right:
                return f"(__u64)(__s{64 - number}){self.operand(low)}"
        return f"(__u64)((__s64){left} >> {count})"


def indented(lines: Sequence[str]) -> list[str]:
    """Statements, some of them of several lines, four blanks further to the right."""
    return [f"    {line}" if line else "" for text in lines for line in text.split("\n")]
