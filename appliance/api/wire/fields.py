"""JSON objects of bodies, read strictly: exact types, ranges, no unknown names.

    class Rejection(Body):
        motivo: Annotated[str, text(500)]

    Rejection.read({"motivo": "no es mío"}).motivo

pydantic checks the values, in the order of the fields; here stands what a field may
be, and how an answer tells of one that is not. An annotation that allows None is of
a field that may be left out: null is refused unless the rule takes it.
"""

import base64
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, Final, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
)
from pydantic.alias_generators import to_camel
from pydantic_core import (
    CoreSchema,
    ErrorDetails,
    PydanticCustomError,
    core_schema,
)

from appliance.domain.appearance.text import undrawn
from appliance.domain.errors import (
    BASE64_WANTED,
    COMES_WITH,
    CONTROL_CHARACTERS,
    NOT_DRAWN,
    NOTHING_TO_SEE,
    WRONG_TYPES,
    ApplianceError,
    ErrorCode,
    Faults,
    FieldInvalidError,
    FieldMissingError,
)
from appliance.domain.text.unicode_nfc import is_line, nfc

COLORS: Final = (
    "BLACK",
    "BLUE",
    "CYAN",
    "DARK_GRAY",
    "GRAY",
    "GREEN",
    "LIGHT_GRAY",
    "MAGENTA",
    "ORANGE",
    "PINK",
    "RED",
    "WHITE",
    "YELLOW",
)
"""The java.awt.Color names (decisions "fontColor")."""
PASSWORD_BYTES: Final = (8, 1024)
CUIL: Final = "^(?:20|23|24|27)-?[0-9]{8}-?[0-9]$"
"""In JSON Schema. Source: facts "Argentina"."""
BODY_MARK: Final = "body"
"""In a schema: the class whose schema stands there (`openapi.schemas`)."""
_JSON_TYPES: Final = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
}
"""What the values of JSON are read as, by the names of their types."""
_YEARS: Final = (2000, 9000)
_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)",
    re.ASCII | re.IGNORECASE,
)
"""Source: RFC 3339, 5.6, and a time without seconds."""
MOMENTS: Final = (
    "2026-12-31T23:59:59Z",
    "YYYY-MM-DDThh:mm:ss\N{PLUS-MINUS SIGN}hh:mm",
    "YYYY-MM-DDThh:mm:ssZ",
)
"""How a time is written: an example, and both forms of its zone."""
_LIKE: Final = 0.5
"""How much of two names is the same where one was meant for the other."""
_TOGETHER: Final = "together"
"""Type of the error where one of two fields is missing."""
_HEX_COLOR = re.compile(r"#[0-9A-Fa-f]{6}", re.ASCII)
_SEEN: Final = ("L", "N", "P", "S")
"""First letters of the general categories of what leaves a mark (UAX #44, 5.7.1)."""
_LINE: Final = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]*$"
_LINE_WITH_TEXT: Final = (
    "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]*"
    "[^\\s\\u0000-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]"
    "[^\\u0000-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]*$"
)
_LINES_WITH_TEXT: Final = (
    "^[^\\u0000-\\u0009\\u000b-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]*"
    "[^\\s\\u0000-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]"
    "[^\\u0000-\\u0009\\u000b-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]*$"
)
_DRAWN: Final = (
    "!-~\\u00a1-\\u00ac\\u00ae-\\u017f\\u2013\\u2014\\u2018\\u2019\\u201c\\u201d"
    "\\u2022\\u2026\\u20ac"
)
_SPACES: Final = " \\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000"
_DRAWN_TEXT: Final = f"^[{_SPACES}{_DRAWN}]*[{_DRAWN}][{_SPACES}{_DRAWN}]*$"
_WITHOUT_NUL: Final = "^[^\\u0000]*$"
"""Patterns of JSON Schema (ECMA-262): what the readers below take."""
_SENTENCES: Final = {
    "control": CONTROL_CHARACTERS,
    "unseen": NOTHING_TO_SEE,
    "undrawn": NOT_DRAWN,
    "base64": BASE64_WANTED,
}
"""What is said of a text, by the type of the error."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a field may be: how it is checked, and how that is told."""

    schema: CoreSchema
    kind: str
    """What it must be in JSON: `string`, `integer`, `boolean`, `array`, `object`."""
    allowed: tuple[str, ...]
    wrong_type: str = ""
    """Of `WRONG_TYPES`, what is said of another type; empty: that of `kind`."""
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Of JSON Schema: what the check says besides the types of its schema."""
    model: "type[Body] | None" = None
    """What the object, or each object of the list, is read as afterwards."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Be checked by this rule, whatever else the annotation says."""
        del source, handler
        return self.schema

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Be told as it is checked."""
        told = {**handler(schema), **self.keywords}
        if self.model is None:
            return told
        of_model = {BODY_MARK: self.model}
        return {**told, "items": of_model} if self.kind == "array" else of_model


class Body(BaseModel):
    """A JSON object whose fields have rules. What is wrong with it first is told."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="ignore", hide_input_in_errors=True
    )
    KNOWN: ClassVar[tuple[str, ...]] = ()
    """Names of its fields as an answer lists them; empty: in their own order."""
    NULL_SAYS_NOTHING: ClassVar[bool] = False
    """Whether who reads it leaves out what is null: of fields that may be left out."""
    KEYWORDS: ClassVar[Mapping[str, Any]] = {}
    """Of JSON Schema: what is checked of its fields together."""

    @classmethod
    def read(
        cls, body: Mapping[str, object], *, lenient: bool = False, under: str = ""
    ) -> Self:
        """Read an object.

        Args:
            body: the object.
            lenient: leave unknown names aside.
            under: what stands before its names in an answer: where it is itself.

        Raises:
            FieldMissingError: a field is not there.
            FieldInvalidError: it is of another type or out of its range.
            ApplianceError: `FIELD_UNKNOWN`, which is told before all others.
        """
        rules = _rules(cls)
        # Not by pydantic's `extra`, which makes an error of each of 100,000 names.
        for name in () if lenient else body:
            if name not in rules:
                unknown = _unknown(name, cls._names_like(name), under)
                raise unknown
        try:
            return cls.model_validate(body)
        except ValidationError as exc:
            fault = exc.errors(include_url=False, include_input=False)[0]
        # Out of the handler: its error holds what was sent, passwords among it.
        name = str(fault["loc"][0])
        told = _told(fault, name, rules[name], body, under)
        raise told

    @classmethod
    def _names_like(cls, unknown: str) -> list[str]:
        """Names of its fields; first the one that an unknown name was meant for."""
        names = [*(cls.KNOWN or _rules(cls))]
        meant = get_close_matches(unknown[:64], names, 1, _LIKE)
        return [*meant, *(name for name in names if name not in meant)]

    @classmethod
    def read_all(
        cls, body: Mapping[str, object], faults: Faults, *, under: str = ""
    ) -> Self | None:
        """Read an object, and tell all that is wrong with it.

        Args:
            body: the object.
            faults: where that is added, one for each field.
            under: what stands before its names in an answer: where it is itself.

        Returns:
            None: something is.
        """
        rules, before = _rules(cls), len(faults.found)
        for name in body:
            if name not in rules and not faults.is_full:
                faults.add(_unknown(name, cls._names_like(name), under))
        told: set[str] = set()
        try:
            read = cls.model_validate(body)
        except ValidationError as exc:
            read, wrong = None, exc.errors(include_url=False, include_input=False)
        else:
            wrong = []
        for fault in wrong:
            name = str(fault["loc"][0])
            if name not in told:
                told.add(name)
                faults.add(_told(fault, name, rules[name], body, under))
        return None if len(faults.found) > before or faults.is_full else read

    def __repr__(self) -> str:
        """Show nothing of what was sent: a password may be among it."""
        return f"{type(self).__name__}(…)"

    __str__ = __repr__


def _unknown(name: str, known: Iterable[str], under: str) -> ApplianceError:
    """`FIELD_UNKNOWN` of a name that was sent."""
    shown = f"{under}{name[:64]}"
    return ApplianceError(
        ErrorCode.FIELD_UNKNOWN,
        params={"field": shown},
        extras={"field": shown, "allowed": [*known]},
    )


def _told(
    fault: ErrorDetails, name: str, rule: Rule, body: Mapping[str, object], under: str
) -> FieldInvalidError:
    """What pydantic found, as an answer tells it."""
    value, name = body.get(name), f"{under}{name}"
    if fault["type"] == _TOGETHER:
        missing = str(fault["ctx"]["missing"])
        return FieldInvalidError(
            f"{under}{missing}",
            fault["msg"],
            rule.kind,
            sentence=COMES_WITH,
            params={"other": fault["ctx"]["there"]},
        )
    if fault["type"] == "missing":
        return FieldMissingError(name, rule.allowed, rule.kind)
    if fault["type"] in _SENTENCES:
        return FieldInvalidError(
            name,
            rule.allowed,
            rule.kind,
            sentence=_SENTENCES[fault["type"]],
            params=fault.get("ctx", {}),
        )
    # `type`, since true is an `int` too; of a list, each item may be of another type.
    of_type = type(value) is _JSON_TYPES[rule.kind]
    if of_type and not (len(fault["loc"]) > 1 and fault["type"] == "int_type"):
        return FieldInvalidError(name, rule.allowed, rule.kind)
    sentence = WRONG_TYPES[rule.wrong_type or rule.kind]
    return FieldInvalidError(name, rule.allowed, rule.kind, sentence=sentence)


@cache
def _rules(model: type[Body]) -> dict[str, Rule]:
    """The rule of each field, by its name in JSON."""
    return {
        info.alias or own: rule
        for own, info in model.model_fields.items()
        for rule in info.metadata
        if isinstance(rule, Rule)
    }


def whole(low: int, high: int) -> Rule:
    """A whole number in a range; neither 5.0 nor true is one."""
    schema = core_schema.int_schema(strict=True, ge=low, le=high)
    return Rule(schema, "integer", (f"{low}..{high}",))


def whole_or_null(low: int, high: int, along_with: str = "") -> Rule:
    """The same, or null, which is as if it were not there.

    Args:
        low: least.
        high: greatest.
        along_with: the field before it that is there exactly when it is. Its default
            is to be validated, and where that one is wrong, that one is told.
    """

    def check(value: int | None, info: ValidationInfo) -> int | None:
        other: object = info.data.get(along_with, value)
        if (other is None) is (value is None):
            return value
        names = (info.field_name, along_with)
        missing, there = names if value is None else reversed(names)
        context = {"missing": missing, "there": there}
        told = f"{along_with} and {info.field_name} come together"
        raise PydanticCustomError(_TOGETHER, told, context)

    rule = whole(low, high)
    schema: CoreSchema = core_schema.nullable_schema(rule.schema)
    if along_with:
        schema = core_schema.with_info_after_validator_function(check, schema)
    return Rule(schema, rule.kind, rule.allowed)


def whole_or_word(low: int, high: int, instead: str) -> Rule:
    """A whole number in a range, or one word in its place."""
    rule = whole(low, high)
    # In this order: the fault that is told is that of the number.
    schema = core_schema.union_schema(
        [core_schema.literal_schema([instead]), rule.schema], mode="left_to_right"
    )
    return Rule(schema, rule.kind, (*rule.allowed, instead))


def wholes(low: int, high: int, most: int) -> Rule:
    """A list of whole numbers in a range, 1 to `most` of them."""
    schema = core_schema.list_schema(
        whole(low, high).schema,
        strict=True,
        min_length=1,
        max_length=most,
        fail_fast=True,
    )
    return Rule(schema, "array", (f"1..{most} of {low}..{high}",))


def an_object(model: type[Body]) -> Rule:
    """An object, whose members are read by themselves: as `model`."""
    schema = core_schema.dict_schema(strict=True)
    names = f"{{{', '.join(model.KNOWN or _rules(model))}}}"
    return Rule(schema, "object", ("an object", names), model=model)


def objects(most: int, model: type[Body]) -> Rule:
    """A list of objects, 1 to `most` of them, each read by itself: as `model`."""
    schema = core_schema.list_schema(
        core_schema.dict_schema(strict=True),
        strict=True,
        min_length=1,
        max_length=most,
        fail_fast=True,
    )
    return Rule(schema, "array", (f"1..{most} objects",), "objects", model=model)


def texts(most: int, name_length: int, length: int) -> Rule:
    """An object of at most `most` strings, without control characters."""

    def read(value: dict[str, str]) -> dict[str, str]:
        for name, each in value.items():
            if not 1 <= len(name) <= name_length or not is_line(name + each):
                raise ValueError
        return value

    of_text = core_schema.str_schema(strict=True, max_length=length)
    schema = core_schema.no_info_after_validator_function(
        read,
        core_schema.dict_schema(of_text, of_text, max_length=most, strict=True),
    )
    told = f"up to {most} strings of {length} characters, names of 1..{name_length}"
    name = {"pattern": _LINE, "minLength": 1, "maxLength": name_length}
    value = {"type": "string", "pattern": _LINE, "maxLength": length}
    keywords = {"propertyNames": name, "additionalProperties": value}
    return Rule(schema, "object", (told,), keywords=keywords)


def base64_bytes() -> Rule:
    """Bytes in Base64 (RFC 4648, 4), of which there is one at least."""

    def read(value: str) -> bytes:
        try:
            found = base64.b64decode(value.encode("ascii"), validate=True)
            # Bits of the last letters that are of no byte could be anything.
            last = value[-4:]
            is_plain = base64.b64encode(base64.b64decode(last)).decode() == last
        except ValueError:
            found, is_plain = b"", False
        if value and not is_plain:
            raise PydanticCustomError("base64", "not plain Base64")
        if not found:
            raise ValueError
        return found

    # By four characters, the last of them canonical.
    pattern = (
        "^(?:[A-Za-z0-9+/]{4})*"
        "(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$"
    )
    told = {"contentEncoding": "base64", "pattern": pattern, "minLength": 4}
    return _string(read, "Base64 (RFC 4648, 4)", **told)


def moment() -> Rule:
    """A time in ISO 8601, with its zone, in the years 2000 to 9000."""

    def read(value: str) -> datetime:
        if not _MOMENT.fullmatch(value):
            raise ValueError
        at = datetime.fromisoformat(value.upper())
        if at.tzinfo is None or not _YEARS[0] <= at.year <= _YEARS[1]:
            raise ValueError
        return at.astimezone(UTC)

    return _string(read, *MOMENTS, format="date-time")


def word(kind: type[StrEnum]) -> Rule:
    """One of a closed list of words, in its exact case."""
    schema = core_schema.enum_schema(kind, [*kind], sub_type="str")
    return Rule(schema, "string", tuple(each.value for each in kind))


def boolean() -> Rule:
    """True or false."""
    return Rule(core_schema.bool_schema(strict=True), "boolean", ("true", "false"))


def text(most: int) -> Rule:
    """A string of 1 to `most` characters without control characters, trimmed."""
    return _string(
        lambda value: _trimmed(value, most), f"1..{most} characters", **_one_line(most)
    )


def _one_line(most: int) -> dict[str, Any]:
    """One line of up to `most` characters, in the words of JSON Schema."""
    return {"minLength": 1, "maxLength": most, "pattern": _LINE_WITH_TEXT}


def shown_text(most: int) -> Rule:
    """The same, with something in it that can be seen."""

    def read(value: str) -> str:
        return _seen(_trimmed(value, most))

    return _string(read, f"1..{most} characters", **_one_line(most))


def stamp_text(most: int) -> Rule:
    """A text that goes into a signature: such as its stamp can show it, to the letter.

    It is kept in NFC, any run of spaces as one. The pattern says nothing of letters
    that come decomposed, which are taken where they compose.
    """

    def read(value: str) -> str:
        composed = nfc(value, most)
        if composed is None:
            raise ValueError
        kept = " ".join(_seen(_trimmed(composed, most)).split())
        if characters := undrawn(kept):
            context = {"characters": characters}
            raise PydanticCustomError("undrawn", "not in the stamp's fonts", context)
        return kept

    told = {"minLength": 1, "maxLength": most, "pattern": _DRAWN_TEXT}
    return _string(read, f"1..{most} characters", **told)


def _seen(text: str) -> str:
    """A text in which there is something to see.

    Raises:
        PydanticCustomError: there is nothing.
    """
    if not any(unicodedata.category(one).startswith(_SEEN) for one in text):
        raise PydanticCustomError("unseen", "nothing to see")
    return text


def _trimmed(value: str, most: int) -> str:
    """A text without what stands around it.

    Raises:
        ValueError: it is empty or too long.
        PydanticCustomError: it has control characters.
    """
    trimmed = value.strip()
    if not 1 <= len(trimmed) <= most:
        raise ValueError
    if not is_line(value):
        raise PydanticCustomError("control", "control characters")
    return trimmed


def one_time_code() -> Rule:
    """A code as somebody typed it: what is none is a wrong one, told like any other."""
    return replace(text(64), allowed=("6 digits",))


def cuil() -> Rule:
    """A CUIL, with or without dashes; its check digit is looked at where it is read."""
    told = {"format": "cuil", "pattern": CUIL}
    return replace(text(13), keywords=told)


def lines(most: int) -> Rule:
    """A string of several lines, of 1 to `most` characters."""
    schema = core_schema.str_schema(strict=True, min_length=1, max_length=most)
    return Rule(schema, "string", (f"1..{most} characters",))


def shown_lines(most: int) -> Rule:
    """Several lines that people read: no other control characters, something to see."""

    def read(value: str) -> str:
        kept = (nfc(value, most) or "").replace("\r\n", "\n").strip()
        if not 1 <= len(kept) <= most:
            raise ValueError
        if not is_line(kept.replace("\n", "")):
            raise PydanticCustomError("control", "control characters")
        return _seen(kept)

    told = {"minLength": 1, "maxLength": most, "pattern": _LINES_WITH_TEXT}
    return _string(read, f"1..{most} characters", **told)


def password(least: int = PASSWORD_BYTES[0]) -> Rule:
    """A password, as UTF-8 of its NFC form: `bytes`, none of them NUL."""
    most = PASSWORD_BYTES[1]

    def read(value: str) -> bytes:
        if len(value) > most:
            raise ValueError
        encoded = (nfc(value, most) or "").encode()
        if b"\0" in encoded or not least <= len(encoded) <= most:
            raise ValueError
        return encoded

    told = {"format": "password", "minLength": least, "maxLength": most}
    return _string(read, f"{least}..{most} bytes", **told, pattern=_WITHOUT_NUL)


def color() -> Rule:
    """A colour's name, or `#RRGGBB`, which becomes upper case."""

    def read(value: str) -> str:
        if value in COLORS:
            return value
        if not _HEX_COLOR.fullmatch(value):
            raise ValueError
        return value.upper()

    pattern = f"^(?:{'|'.join(COLORS)}|#[0-9A-Fa-f]{{6}})$"
    return _string(read, *COLORS, "#RRGGBB", pattern=pattern)


def _string(read: Callable[[str], object], *allowed: str, **keywords: Any) -> Rule:
    """A string as a function reads it, which raises `ValueError` for a wrong one."""
    schema = core_schema.no_info_after_validator_function(
        read, core_schema.str_schema(strict=True)
    )
    return Rule(schema, "string", allowed, keywords=keywords)
