"""The JSON Schemas of docs/schema: what is wrong with a document by one of them."""

from __future__ import annotations

import importlib
import json
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["SCHEMAS", "errors", "names", "schema", "trace_errors"]

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"


def names() -> list[str]:
    """The schemas of documents."""
    return sorted({path.stem for path in SCHEMAS.glob("*.json")} - {"common"})


@cache
def _registry() -> Any:
    referencing = importlib.import_module("referencing")
    contents = [json.loads(path.read_text()) for path in sorted(SCHEMAS.glob("*.json"))]
    found = [(each["$id"], referencing.Resource.from_contents(each)) for each in contents]
    return referencing.Registry().with_resources(found)


@cache
def schema(name: str) -> Any:
    """A validator of one schema, which is itself one of JSON Schema."""
    kind = importlib.import_module("jsonschema").Draft202012Validator
    described = json.loads((SCHEMAS / f"{name}.json").read_text())
    kind.check_schema(described)
    assert described["$id"].startswith(f"urn:fetchc:{name}:")
    return kind(described, registry=_registry())


def errors(name: str, document: object) -> list[str]:
    """What is wrong with a document, a line each."""
    return [f"{each.json_path}: {each.message}" for each in schema(name).iter_errors(document)]


def trace_errors(line: dict[str, object]) -> list[str]:
    """What is wrong with a line of ``trace``: an event, or one of a table."""
    return errors("trace-event" if "event" in line else "trace-table", line)
