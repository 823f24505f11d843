"""Schemas of the document: of what calls and answers are, named once each.

Every object is closed: what the code does not name is no part of it.
"""

from collections.abc import Mapping
from typing import Any, Final

# Pydantic takes it in as it makes a schema; roles have their modules from the start.
import pydantic.dataclasses  # noqa: F401
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from appliance.api.wire.fields import BODY_MARK, Body

Schema = dict[str, Any]
_REF: Final = "#/components/schemas/{model}"
_NULL: Final = {"type": "null"}


class _Generator(GenerateJsonSchema):
    """pydantic's schemas, closed, and without what says nothing here."""

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        """An answer's object."""
        told = super().typed_dict_schema(schema)
        told.pop("title", None)
        return {**told, "additionalProperties": False}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """A call's object, as `Body.read` takes it."""
        told = super().model_schema(schema)
        told.pop("title", None)
        model: type[Body] = schema["cls"]
        if model.NULL_SAYS_NOTHING:
            needed = told.get("required", ())
            told["properties"] = {
                name: each if name in needed else {"anyOf": [each, _NULL]}
                for name, each in told.get("properties", {}).items()
            }
        told.setdefault("properties", {})
        return {**told, "additionalProperties": False, **model.KEYWORDS}

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """A field that may be left out; docs say what that means."""
        return self.generate_inner(schema["schema"])

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """A word, without what its class says to who reads the code."""
        told = super().enum_schema(schema)
        return {name: told[name] for name in ("type", "enum") if name in told}

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Names are titles enough."""
        del schema
        return False


class Schemas:
    """The schemas of one document, each under the name of its class."""

    def __init__(self) -> None:
        self.made: dict[str, Schema] = {}
        self._kinds: dict[str, object] = {}

    def of(self, kind: Any) -> Schema:
        """A reference to the schema of a class.

        Args:
            kind: a `Body`, or a `TypedDict`.

        Raises:
            ValueError: another one has its name.
        """
        name = kind.__name__
        if self._kinds.setdefault(name, kind) is not kind:
            message = f"two schemas are called {name}"
            raise ValueError(message)
        if name not in self.made:
            self.made[name] = {}
            told = TypeAdapter(kind).json_schema(
                ref_template=_REF, schema_generator=_Generator
            )
            for inner, schema in told.pop("$defs", {}).items():
                self.made.setdefault(inner, self._linked(schema))
            self.made[name] = self._linked(told)
        return {"$ref": _REF.format(model=name)}

    def _linked(self, schema: Any) -> Any:
        """The same, with references where bodies stand in bodies."""
        if isinstance(schema, Mapping):
            if BODY_MARK in schema:
                return self.of(schema[BODY_MARK])
            return {name: self._linked(each) for name, each in schema.items()}
        if isinstance(schema, list | tuple):
            return [self._linked(each) for each in schema]
        return schema


def array_of(item: Schema) -> Schema:
    """A bare array.

    Args:
        item: of each element.
    """
    return {"type": "array", "items": item}
