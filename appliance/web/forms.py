"""Forms of pages: `application/x-www-form-urlencoded`, or multipart with files.

As strict as `appliance.web.body`: a field comes once, and nothing is held beyond its
limit. `read` takes any fields, each of them text without control characters, and one
that nobody asks for is never looked at; `read_fields` takes those of a form, all of
them and no other.
"""

import unicodedata
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from werkzeug.sansio.multipart import Data, Field, File

from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
    FieldMissingError,
)
from appliance.web import body

_URLENCODED: Final = "application/x-www-form-urlencoded"
_FORM_BYTES: Final = 65_536
_FIELDS_AT_MOST: Final = 64
_LINES: Final = frozenset("\r\n\t")


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that came with a form."""

    name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Form:
    """What a page's form says."""

    fields: dict[str, str] = field(default_factory=dict, repr=False)
    files: dict[str, Upload] = field(default_factory=dict, repr=False)

    def text(self, name: str) -> str:
        """A field without the spaces around it; empty if it did not come.

        Args:
            name: of the field.
        """
        return self.fields.get(name, "").strip()

    def raw(self, name: str) -> str:
        """A field exactly as typed (passwords); empty if it did not come.

        Args:
            name: of the field.
        """
        return self.fields.get(name, "")


async def read(*, files: bool = False) -> Form:
    """Read the present request's body as a form.

    Args:
        files: whether multipart bodies, with files, are taken too.

    Returns:
        Its fields and files. A file field left empty is not there.

    Raises:
        FieldInvalidError: a field comes twice or is not text.
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`,
            `DOCUMENT_TOO_LARGE`.

    Source: HTML, "URL-encoded form data"; RFC 7578.
    """
    if files and body.is_multipart():
        reader = _Reader(body.face_limits())
        await body.read_parts(reader.take, _FIELDS_AT_MOST)
        return reader.form
    pairs = await _read_pairs(body.json_limit(), "utf-8")
    fields: dict[str, str] = {}
    for name, value in pairs:
        _keep(fields, name, value)
    return Form(fields)


async def read_texts() -> dict[str, str]:
    """Read the text fields of the present request's form; files are passed over.

    Raises:
        FieldInvalidError: a field comes twice or is not text.
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`,
            `DOCUMENT_TOO_LARGE`.
    """
    if not body.is_multipart():
        return (await read()).fields
    reader = _Reader(body.face_limits(), keeps_files=False)
    await body.read_parts(reader.take, _FIELDS_AT_MOST)
    return reader.form.fields


async def read_fields(*names: str) -> dict[str, str]:
    """Read the present request's body, which must be a page's plain form.

    Args:
        names: the form's fields; each must be there once, and no other.

    Raises:
        FieldMissingError: a field is missing.
        FieldInvalidError: a field is there twice, or the body is not UTF-8.
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`,
            `FIELD_UNKNOWN`.

    Source: URL standard, application/x-www-form-urlencoded.
    """
    given = await _read_pairs(_FORM_BYTES, "ascii")
    fields: dict[str, str] = {}
    for name, value in given:
        if name not in names:
            shown = name[:64]
            raise ApplianceError(
                ErrorCode.FIELD_UNKNOWN,
                params={"field": shown},
                extras={"field": shown, "allowed": sorted(names)},
            )
        if name in fields:
            raise FieldInvalidError(name)
        fields[name] = value
    for name in names:
        if name not in fields:
            raise FieldMissingError(name)
    return fields


async def _read_pairs(limit_bytes: int, encoding: str) -> list[tuple[str, str]]:
    """Read the present request's body as names and values, as they come.

    Args:
        limit_bytes: largest body.
        encoding: of what is not escaped.

    Raises:
        FieldInvalidError: the body is not in that encoding, or has too many fields.
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`.
    """
    body.check_type(_URLENCODED)
    raw = b"".join([c async for c in body.chunks(limit_bytes)])
    try:
        return parse_qsl(
            raw.decode(encoding),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_FIELDS_AT_MOST,
        )
    except ValueError as exc:
        raise FieldInvalidError("(body)", _URLENCODED) from exc


def _keep(fields: dict[str, str], name: str, value: str) -> None:
    """Take a field.

    Raises:
        FieldInvalidError: it comes twice, or is not text.
    """
    if name in fields or not _is_text(value):
        raise FieldInvalidError(name[:64])
    fields[name] = value


def _is_text(value: str) -> bool:
    return not any(
        unicodedata.category(char) in {"Cc", "Cs"} and char not in _LINES
        for char in value
    )


class _Reader:
    """The parts of a multipart form as they come in."""

    def __init__(self, limits: body.Limits, *, keeps_files: bool = True) -> None:
        self._limits = limits
        self._keeps_files = keeps_files
        self._name = ""
        self._file: str | None = None
        self._taken = bytearray()
        self.form = Form()

    def take(self, part: body.Part) -> None:
        """Take what came.

        Raises:
            FieldInvalidError: a field comes twice or is not text.
            ApplianceError: `BODY_TOO_LARGE`, `DOCUMENT_TOO_LARGE`.
        """
        match part:
            case File(name=name, filename=file_name):
                self._begin(name, file_name)
            case Field(name=name):
                self._begin(name, None)
            case Data(data=data, more_data=more):
                self._add(data, more=more)

    def _begin(self, name: str | None, file_name: str | None) -> None:
        # The decoder's types promise a name, but a part may have none.
        self._name, self._file = name or "", file_name
        self._taken = bytearray()

    def _add(self, data: bytes, *, more: bool) -> None:
        is_file = self._file is not None
        if is_file and not self._keeps_files:
            return
        self._taken.extend(data)
        if len(self._taken) > (self._limits.document if is_file else self._limits.json):
            if is_file:
                raise ApplianceError(
                    ErrorCode.DOCUMENT_TOO_LARGE,
                    params={"limit": self._limits.document},
                )
            raise ApplianceError(ErrorCode.BODY_TOO_LARGE)
        if not more:
            self._end()

    def _end(self) -> None:
        if self._file is None:
            _keep(self.form.fields, self._name, self._taken.decode("utf-8"))
        elif self._file or self._taken:
            if self._name in self.form.files:
                raise FieldInvalidError(self._name[:64])
            self.form.files[self._name] = Upload(self._file, bytes(self._taken))
        self._taken = bytearray()
