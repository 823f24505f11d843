"""Forms of pages: `application/x-www-form-urlencoded`, or multipart with files.

As strict as `appliance.web.body`: a field comes once, is text without control
characters, and nothing is held beyond its limit. What fields a form has is
for its page to say; a field that nobody asks for is never looked at.
"""

import unicodedata
from dataclasses import dataclass, field
from typing import Final

from werkzeug.sansio.multipart import Data, Field, File

from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.web import body

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
    pairs = await body.read_pairs(body.json_limit(), "utf-8")
    fields: dict[str, str] = {}
    for name, value in pairs:
        _keep(fields, name, value)
    return Form(fields)


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

    def __init__(self, limits: body.Limits) -> None:
        self._limits = limits
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
        self._taken.extend(data)
        is_file = self._file is not None
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
