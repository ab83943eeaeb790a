"""Frozen records: the one kind of value that passes hand to each other.

A record class lists its fields as annotations; the metaclass turns them into
slots, a constructor, equality by class and fields, a hash and ``match``
positions. Type checkers see a frozen dataclass.

Why not dataclasses: each frozen one costs about 0.4 ms of import, and the start
of the program is a hot path (docs/speed.md has the measurement).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Self, assert_never, dataclass_transform
else:

    def dataclass_transform(**_options):
        """Stand in for ``typing.dataclass_transform``: typing is slow to import."""
        return lambda decorated: decorated

    def assert_never(value: object) -> NoReturn:
        """The ``match`` above missed a case; type checkers prove that it cannot."""
        raise AssertionError(f"unhandled case: {value!r}")


__all__ = ["Record", "assert_never"]

_set = object.__setattr__


@dataclass_transform(frozen_default=True)
class RecordType(type):
    """Metaclass of :class:`Record`: annotations become slots and ``match`` positions."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> RecordType:
        fields = tuple(namespace.get("__annotations__", ()))
        defaults = {field: namespace.pop(field) for field in fields if field in namespace}
        namespace["__slots__"] = fields
        namespace["__match_args__"] = fields
        namespace["__record_defaults__"] = defaults
        return super().__new__(mcs, name, bases, namespace)


class Record(metaclass=RecordType):
    """Base of every record; a record class derives from it directly and from nothing else."""

    if not TYPE_CHECKING:

        def __init__(self, *values, **named):
            fields = type(self).__match_args__
            if named or len(values) != len(fields):
                values = _complete(type(self), values, named)
            for field, value in zip(fields, values):  # noqa: B905 - lengths are equal by now
                _set(self, field, value)

    def replaced(self, **changes: object) -> Self:
        """The same record with other values of some fields."""
        return type(self)(
            *[changes.pop(field, getattr(self, field)) for field in _fields(self)], **changes
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen, cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen, cannot delete {name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _values(self) == _values(other)

    def __reduce__(self) -> tuple[type[Record], tuple[object, ...]]:
        # Made anew, since nothing can be set after the constructor: pickles, and deep copies.
        return type(self), _values(self)

    def __hash__(self) -> int:
        return hash((type(self), _values(self)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{field}={getattr(self, field)!r}" for field in _fields(self))
        return f"{type(self).__name__}({shown})"


def _fields(record: Record) -> tuple[str, ...]:
    return type(record).__match_args__


def _values(record: Record) -> tuple[object, ...]:
    return tuple([getattr(record, field) for field in _fields(record)])


def _complete(cls: Any, values: tuple[object, ...], named: dict[str, object]) -> list[object]:
    # The slow path of a constructor: keywords and defaults, in the order of the fields.
    fields = cls.__match_args__
    if len(values) > len(fields):
        raise TypeError(f"{cls.__name__} takes {len(fields)} values, got {len(values)}")
    result = list(values)
    for field in fields[len(values) :]:
        if field in named:
            result.append(named.pop(field))
        elif field in cls.__record_defaults__:
            result.append(cls.__record_defaults__[field])
        else:
            raise TypeError(f"{cls.__name__} lacks a value for {field}")
    if named:
        raise TypeError(f"{cls.__name__} has no free field {', '.join(named)}")
    return result
