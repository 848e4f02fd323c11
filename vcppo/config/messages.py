"""Validation errors in words: one line per wrong key with its path, what it got and what is allowed.

The words for what is allowed come from the model's own JSON schema, so that they cannot drift from the check.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from vcppo.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Schema = Mapping[str, Any]
KINDS = {"boolean": "true or false", "null": "null", "object": "keys and values"}
BOUNDS = (
    ("minimum", "of at least"),
    ("exclusiveMinimum", "above"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "below"),
)


def configuration_error(
    error: ValidationError, model: type[BaseModel], where: str, *, prefix: str = "", upper: bool = False
) -> ConfigurationError:
    """The error of a `model` as a ConfigurationError.

    where: file or other origin, named in each line. prefix, upper: how a key is written there (environment).
    """
    root = model.model_json_schema()
    lines: dict[tuple[int | str, ...], str] = {}
    for detail in error.errors():
        path, schema = _follow(root, detail["loc"])
        if detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
            path += (detail["ctx"]["discriminator"].strip("'"),)
        # the branches of a union each complain about the same key: the first line names all that is allowed
        lines.setdefault(path, _explain(detail, schema, root))
    text = []
    for path, line in lines.items():
        # a list whose items are wrong is also called too short: that follows from the items
        if any(other[: len(path)] == path and other != path for other in lines):
            continue
        name = ".".join(map(str, path))
        text.append(f"{where}: {prefix + (name.upper() if upper else name) or '(whole file)'}: {line}")
    return ConfigurationError("\n".join(text))


def _follow(root: Schema, location: tuple[int | str, ...]) -> tuple[tuple[int | str, ...], Schema]:
    """The key path of an error location, and the schema there. pydantic puts the chosen branch of a union
    into the location; it is no key of the file."""
    path: tuple[int | str, ...] = ()
    schema = _resolve(root, root)
    for part in location:
        schema = _section(schema, root)
        tags = schema.get("discriminator", {}).get("mapping", {})
        if part in tags:
            schema = _resolve({"$ref": tags[part]}, root)
        elif isinstance(part, int):
            path, schema = (*path, part), _resolve(schema.get("items", {}), root)
        elif part in schema.get("properties", {}):
            path, schema = (*path, part), _resolve(schema["properties"][part], root)
        elif isinstance(schema.get("additionalProperties"), Mapping):  # a section whose keys are free
            path, schema = (*path, part), _resolve(schema["additionalProperties"], root)
        elif "anyOf" not in schema:
            path = (*path, part)  # an unknown key; the schema stays that of the section it stands in
    return path, schema


def _section(schema: Schema, root: Schema) -> Schema:
    """Of a section or list that may also be null: the section or list, into which the next part leads."""
    branches = [_resolve(branch, root) for branch in schema.get("anyOf", [])]
    return next((b for b in branches if b.get("properties") or b.get("type") == "array"), schema)


def _resolve(schema: Schema, root: Schema) -> Schema:
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    return schema


def _explain(detail: ErrorDetails, schema: Schema, root: Schema) -> str:
    got, kind = detail["input"], detail["type"]
    if kind == "extra_forbidden":
        allowed = sorted(schema.get("properties", {}))
        near = difflib.get_close_matches(str(detail["loc"][-1]), allowed, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"unknown key, allowed here are {', '.join(allowed)}{hint}"
    if kind == "missing":
        return f"required key is missing, allowed is {_allowed(schema, root)}"
    if kind == "union_tag_not_found":
        return f"required key is missing, allowed is {_either(_tags(schema))}"
    if kind == "union_tag_invalid":
        return f"got {detail['ctx']['tag']!r}: allowed is {_either(_tags(schema))}"
    message = detail["msg"].removeprefix("Value error, ")
    if kind == "value_error":  # a check of ours: it names values itself, and its input is a whole section
        return message
    if kind == "finite_number":
        return f"got {got!r}: allowed is a finite number"
    return f"got {_short(got)}: allowed is {_allowed(schema, root)}"


def _allowed(schema: Schema, root: Schema) -> str:
    schema = _resolve(schema, root)
    if "const" in schema:
        return repr(schema["const"])
    if "enum" in schema:
        return _either([repr(value) for value in schema["enum"]])
    if "anyOf" in schema:
        return ", or ".join(_allowed(branch, root) for branch in schema["anyOf"])
    kind = schema.get("type")
    if kind in ("number", "integer"):
        return ("a number" if kind == "number" else "a whole number") + _range(schema)
    if kind == "string":
        return f"text that matches {schema['pattern']}" if "pattern" in schema else "text"
    if kind == "array":
        least = f" with at least {schema['minItems']} in it" if schema.get("minItems") else ""
        return f"a list{least}"
    if schema.get("properties"):
        return f"a section with keys of {', '.join(sorted(schema['properties']))}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"keys with values of {_allowed(schema['additionalProperties'], root)}"
    return KINDS.get(str(kind), "keys and values")


def _range(schema: Schema) -> str:
    if "minimum" in schema and "maximum" in schema:
        return f" from {schema['minimum']:g} to {schema['maximum']:g}"
    bounds = [f"{word} {schema[key]:g}" for key, word in BOUNDS if key in schema]
    return f" {' and '.join(bounds)}" if bounds else ""


def _tags(schema: Schema) -> list[str]:
    return [repr(tag) for tag in schema.get("discriminator", {}).get("mapping", {})]


def _either(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
