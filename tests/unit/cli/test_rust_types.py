"""``fetchc types`` of Rust's enums: variants with their discriminants and fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fetchc.cli import main

BINARY = Path(__file__).parents[3] / "corpus/rust/requests/bin/rustc-O3"


def test_variants_have_their_discriminants(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["types", "requests::Shape", "-x", str(BINARY)]) == 0
    assert capsys.readouterr().out == (
        "requests::Shape  (enum, 16 bytes)\n"
        "  offset   size  type             name\n"
        "       0      1  requests::Shape  discriminant\n"
        "  Circle = 0\n"
        "       4      4  u32              r\n"
        "  Square = 1\n"
        "       8      8  u64              __0\n"
        "       1      1  u8               __1\n"
        "  Empty = 2\n"
    )


def test_a_niche_has_a_variant_of_every_other_number(capsys: pytest.CaptureFixture[str]) -> None:
    name = "core::option::Option<&requests::Point>"
    assert main(["types", name, "-x", str(BINARY), "--format", "json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    variants = [(one["name"], one["value"], len(one["members"])) for one in shown["variants"]]
    assert (shown["kind"], variants) == ("enum", [("None", 0, 0), ("Some", None, 1)])
    (field,) = shown["variants"][1]["members"]
    assert (field["name"], field["offset"], field["type"]) == ("__0", 0, "&requests::Point")


def test_an_enum_without_fields_has_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["types", "requests::Color", "-x", str(BINARY)]) == 0
    assert capsys.readouterr().out == ("requests::Color  (enum, 1 bytes)\n  Red = 3\n  Green = 9\n")


def test_members_stand_in_the_order_of_their_places(capsys: pytest.CaptureFixture[str]) -> None:
    # The source lists x, y, z.
    assert main(["types", "requests::Point", "-x", str(BINARY)]) == 0
    assert capsys.readouterr().out == (
        "requests::Point  (struct, 16 bytes)\n"
        "  offset   size  type  name\n"
        "       0      8  i64  z\n"
        "       8      4  i32  x\n"
        "      12      1  u8   y\n"
        "      13      3       (hole)\n"
    )
