"""How the fields of a record make one value.

A place in a record is a field's name and a number of bytes from its start. Fields that were made
for one object lie side by side, so a place may be behind the end of the field it is named by.
"""

from __future__ import annotations

from fetchc.tracer.shapes.dynamic import (
    Asserted,
    Dispatched,
    Identity,
    Known,
    OfType,
    TypeName,
    Worded,
)
from fetchc.tracer.shapes.lists import Grid, Inside, Items, Ranged, Sequence
from fetchc.tracer.shapes.numbers import Between, Difference, Reckoned, Sum, Term
from fetchc.tracer.shapes.objects import (
    Called,
    Case,
    Choice,
    Either,
    Kept,
    Members,
    Noted,
    OfVariant,
    Referred,
    Spelled,
    Variants,
)
from fetchc.tracer.shapes.single import Bytes, Guard, Leaf, Row, Sized

__all__ = [
    "Asserted",
    "Between",
    "Bytes",
    "Called",
    "Case",
    "Choice",
    "Difference",
    "Dispatched",
    "Either",
    "Grid",
    "Guard",
    "Identity",
    "Inside",
    "Items",
    "Kept",
    "Known",
    "Leaf",
    "Members",
    "Noted",
    "OfType",
    "OfVariant",
    "Ranged",
    "Reckoned",
    "Referred",
    "Row",
    "Sequence",
    "Shape",
    "Sized",
    "Spelled",
    "Sum",
    "Term",
    "TypeName",
    "Variants",
    "Worded",
]

Shape = (
    Leaf
    | Bytes
    | Sized
    | Row
    | Items
    | Sequence
    | Ranged
    | Members
    | Noted
    | Spelled
    | Difference
    | Either
    | Reckoned
    | Between
    | Choice
    | Called
    | Kept
    | Sum
    | Variants
    | Grid
    | TypeName
    | Asserted
    | Dispatched
    | OfType
    | OfVariant
    | Inside
    | Referred
    | Worded
)
