"""The words that requests and batches of a backend have in common, as they come in.

Source: docs/integration.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import Field

from appliance.api.wire import combinations, fields, presets
from appliance.api.wire.fields import (
    Body,
    an_object,
    base64_bytes,
    boolean,
    moment,
    shown_lines,
    shown_text,
    text,
    texts,
    whole,
    word,
)
from appliance.domain.errors import Faults, FieldInvalidError, FieldMissingError
from appliance.domain.people.identity import parse_cuil
from appliance.domain.ports import DocumentBytes
from appliance.domain.requests.process import NamedBy, ProcessNote
from appliance.integration.requests.order import NamedSigner
from appliance.requests.intake import MAX_SIGNERS

REFERENCE_LENGTH: Final = 128


class Language(StrEnum):
    """`idioma`: of what signers are told."""

    ES = "es"
    EN = "en"


class SentDocument(Body):
    """A document: an upload, or its bytes; and its name."""

    NULL_SAYS_NOTHING = True

    upload: Annotated[str | None, text(36)] = Field(None, alias="documentoId")
    name: Annotated[str | None, text(255)] = Field(None, alias="nombre")
    content: Annotated[bytes | None, base64_bytes()] = Field(None, alias="contenido")
    repairs: Annotated[bool, boolean()] = Field(default=True, alias="reparar")


class NamedBody(Body):
    """Who is to sign: by CUIL, by address or by id."""

    NULL_SAYS_NOTHING = True
    KEYWORDS: ClassVar[Mapping[str, Any]] = combinations.exactly_one(
        "cuil", "email", "personaId", value=combinations.TEXT
    )
    cuil: Annotated[str | None, fields.cuil()] = None
    email: Annotated[str | None, text(320)] = None
    person: Annotated[str | None, text(36)] = Field(None, alias="personaId")
    stamp: Annotated[dict[str, Any] | None, an_object(presets.StampWish)] = Field(
        None, alias="sello"
    )


class SignerInTurn(NamedBody):
    """The same among several, and with whom they may sign in any order."""

    turn: Annotated[int | None, whole(1, MAX_SIGNERS)] = Field(None, alias="turno")


class Referred(Body):
    """What a backend keeps of a thing for itself."""

    NULL_SAYS_NOTHING = True
    KEYWORDS: ClassVar[Mapping[str, Any]] = {
        "if": combinations.given("referenciaUnica", {"const": True}),
        "then": combinations.given("referencia", combinations.TEXT),
    }
    reference: Annotated[str | None, shown_text(REFERENCE_LENGTH)] = Field(
        None, alias="referencia"
    )
    is_unique: Annotated[bool, boolean()] = Field(
        default=False, alias="referenciaUnica"
    )
    metadata: Annotated[dict[str, str], texts(20, 40, 500)] = Field(
        default_factory=dict, alias="metadatos"
    )


class Note(Referred):
    """What is said of a request, or of a batch."""

    LOOKED_AT: ClassVar[tuple[str, ...]] = ("vence", "referencia", "referenciaUnica")
    """Fields that something may be wrong with that is not of how they are written."""

    expires: Annotated[datetime | None, moment()] = Field(None, alias="vence")
    language: Annotated[Language | None, word(Language)] = Field(None, alias="idioma")
    message: Annotated[str | None, shown_lines(1000)] = Field(None, alias="mensaje")

    def note(self, api_key: str) -> ProcessNote:
        """What is said of it.

        Args:
            api_key: id of the key that asks.
        """
        return ProcessNote(
            api_key,
            self.reference,
            self.is_unique,
            self.metadata,
            self.language,
            self.message,
        )


_BodyT = TypeVar("_BodyT", bound=Body)


def sound(kind: type[_BodyT], given: Mapping[str, Any], names: Iterable[str]) -> _BodyT:
    """What can be read of an object that something is wrong with.

    Args:
        kind: of the object; all its fields may be left out.
        given: it.
        names: fields that are wanted; one that is wrong is as if it were not there.
    """
    return kind.read(
        {
            name: given[name]
            for name in names
            if name in given
            and kind.read_all({name: given[name]}, Faults()) is not None
        }
    )


def said(body: Mapping[str, Any]) -> dict[str, Any]:
    """What an object says: null says nothing, as answers have it.

    Args:
        body: the object.
    """
    return {name: value for name, value in body.items() if value is not None}


def one_document(
    document: SentDocument,
    under: str,
    file: DocumentBytes | None = None,
    beside: str = "file",
) -> DocumentBytes | str:
    """The bytes of a document, or the id of its upload: one of the three is there.

    Args:
        document: as its object names it.
        under: what stands before its names in an answer.
        file: where it came beside the object.
        beside: what names it then.

    Raises:
        FieldMissingError: none is.
        FieldInvalidError: several are.
    """
    given = [
        each for each in (document.upload, document.content, file) if each is not None
    ]
    if not given:
        allowed = ("documentoId", "contenido", beside)
        raise FieldMissingError(f"{under}contenido", allowed, "string")
    if len(given) > 1:
        field = "contenido" if document.content is not None else "documentoId"
        raise FieldInvalidError(f"{under}{field}", "one document")
    return given[0]


def demand_named(read: Referred, under: str = "") -> None:
    """Refuse a reference that is to be unique and is none.

    Args:
        read: what may be unique.
        under: what stands before its names in an answer.

    Raises:
        FieldMissingError: `referencia`.
    """
    if read.is_unique and read.reference is None:
        raise FieldMissingError(f"{under}referencia", "1..128 characters", "string")


def named_signers(
    signers: Sequence[Mapping[str, Any]], under: str, faults: Faults
) -> list[NamedSigner | None]:
    """Who is to sign, in turn.

    Args:
        signers: their objects.
        under: what stands before their places in an answer.
        faults: where it is added that they are named by nothing, or by several; or
            that a turn comes before the one before it.

    Returns:
        None in the place of each that something is wrong with.
    """
    found: list[NamedSigner | None] = []
    last = 0
    for place, signer in enumerate(signers):
        if faults.is_full:
            break
        named = None
        with faults.collected():
            named = _named(SignerInTurn, signer, f"{under}[{place}].", last)
            last = named.turn or last
        found.append(named)
    turns = [each and each.turn for each in found]
    if turns == [*range(1, len(found) + 1)]:
        return [each and replace(each, turn=None) for each in found]
    return found


def named_signer(signer: Mapping[str, Any], under: str) -> NamedSigner:
    """Who is to sign alone.

    Args:
        signer: their object.
        under: what stands before its names in an answer.

    Raises:
        FieldInvalidError: they are named by nothing, or by several.
        SeveralFaultsError: of what is wrong with them.
    """
    return _named(NamedBody, signer, under)


def _named(
    kind: type[NamedBody], signer: Mapping[str, Any], under: str, last: int = 0
) -> NamedSigner:
    """One who is to sign, with all that is wrong with their object.

    Args:
        kind: of their object.
        signer: it.
        under: what stands before its names in an answer.
        last: the turn before theirs.
    """
    faults, given = Faults(), said(signer)
    by = value = turn = wished = None
    read = kind.read_all(given, faults, under=under)
    if read is not None:
        with faults.collected():
            by, value = _by(read, under)
        if isinstance(read, SignerInTurn):
            with faults.collected():
                turn = _turn(read, under, last)
    if isinstance(stamp := given.get("sello"), dict):
        with faults.collected():
            wished = presets.wished_preset(stamp, f"{under}sello.")
    return NamedSigner(
        faults.unless_any(by), faults.unless_any(value), wished, turn=turn
    )


def _turn(read: SignerInTurn, under: str, last: int) -> int:
    """When somebody signs among several.

    Raises:
        FieldInvalidError: before the one before them.
    """
    turn = last + 1 if read.turn is None else read.turn
    if not max(last, 1) <= turn <= MAX_SIGNERS:
        raise FieldInvalidError(f"{under}turno", f"{max(last, 1)}..{MAX_SIGNERS}")
    return turn


def _by(read: NamedBody, under: str) -> tuple[NamedBy, str]:
    """What somebody is named by.

    Raises:
        FieldInvalidError: nothing, or several; a CUIL that is none.
    """
    given = [
        (by, value)
        for by, value in (
            (NamedBy.CUIL, read.cuil),
            (NamedBy.EMAIL, read.email),
            (NamedBy.ID, read.person),
        )
        if value is not None
    ]
    if len(given) != 1:
        raise FieldInvalidError(under.rstrip("."), "one of cuil, email, personaId")
    by, value = given[0]
    if by is NamedBy.CUIL:
        value = parse_cuil(value, f"{under}cuil")
    return by, value
