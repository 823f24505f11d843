"""What an integrator's backend may ask for, as its calls are read."""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Any, TypeVar

from appliance.documents.document_bytes import sha256_of
from appliance.domain.errors import ApplianceError
from appliance.domain.ports import DocumentBytes
from appliance.domain.requests.preset import WishedPreset
from appliance.domain.requests.process import NamedBy, ProcessNote
from appliance.domain.text.canonical_json import canonical_json
from appliance.domain.vocab import Openings, SignatureLevel

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class NamedSigner:
    """Who is to sign, as the backend names them."""

    by: NamedBy
    value: str
    """Eleven digits of a CUIL, an e-mail address, or our id of the person."""
    wished: WishedPreset | None = None
    """Look and place of the signature; None: as the signer says."""
    turn: int | None = None
    """As of `RequestView`: of all signers of an order, or of none."""

    def told(self) -> list[object]:
        """What tells it from another one, as JSON."""
        look = [] if self.wished is None else [_look(self.wished)]
        return [self.by.value, self.value, *look]


@dataclass(frozen=True, slots=True)
class ProcessOrder:
    """A process that is asked for."""

    name: str | None
    """File name of the document; None: as it was uploaded, or `DEFAULT_NAME`."""
    document: DocumentBytes | str | None = field(repr=False)
    """Its bytes, or the id of one that was uploaded; None: a fault says that."""
    signers: tuple[NamedSigner, ...]
    """In the order in which they sign."""
    note: ProcessNote
    """Its `api_key` is that of the backend."""
    expires: datetime | None = None
    level: SignatureLevel | None = None
    idempotency_key: str | None = None
    faults: tuple[ApplianceError, ...] = field(default=(), repr=False)
    """As of `BatchOrder`."""
    unread: frozenset[int] = frozenset()
    """Places of the signers that are not among `signers` for that."""
    repairs: bool = True
    """Whether a copy of the document may be written anew and signed in its place."""

    def placed(self) -> Iterator[tuple[int, NamedSigner]]:
        """The signers, each with its place in what was asked for."""
        return _placed(self.signers, self.unread)

    async def fingerprint(self) -> str:
        """What tells a repeated order from another one, SHA-256 in hex."""
        turns = [signer.turn for signer in self.signers]
        told = {
            "document": await _named(self.document),
            "name": self.name,
            "signers": [signer.told() for signer in self.signers],
            **({} if turns == [None] * len(turns) else {"turns": turns}),
            **_said(self.note),
            "expires": self.expires and self.expires.isoformat(),
            "level": self.level,
            **({} if self.repairs else {"repairs": False}),
        }
        return hashlib.sha256(canonical_json(told)).hexdigest()


@dataclass(frozen=True, slots=True)
class BatchDocument:
    """One document of a batch that is asked for."""

    name: str | None
    """As of `ProcessOrder`."""
    document: DocumentBytes | str = field(repr=False)
    """As of `ProcessOrder`."""
    note: ProcessNote
    """Its own reference and metadata, and what is the batch's."""
    wished: WishedPreset | None = None
    """Look and place of its signature; None: as the batch's signer has it."""
    part: str | None = None
    """Of a multipart body that it came in."""
    repairs: bool = True
    """As of `ProcessOrder`."""


@dataclass(frozen=True, slots=True)
class BatchOrder:
    """Documents that one person is asked to sign at once."""

    signer: NamedSigner | None
    """None: what is wrong with how they are named is among `faults`."""
    documents: tuple[BatchDocument, ...]
    """In the order in which they are signed."""
    note: ProcessNote
    """Of the batch itself; its `api_key` is that of the backend."""
    expires: datetime | None = None
    level: SignatureLevel | None = None
    idempotency_key: str | None = None
    openings: Openings = Openings.ALL
    faults: tuple[ApplianceError, ...] = field(default=(), repr=False)
    """What is wrong with how it is written: it is never made, but what is wrong with
    the rest of it is told as well."""
    unread: frozenset[int] = frozenset()
    """Places of the documents that are not among `documents` for that."""

    def placed(self) -> Iterator[tuple[int, BatchDocument]]:
        """The documents, each with its place in what was asked for."""
        return _placed(self.documents, self.unread)

    async def fingerprint(self) -> str:
        """What tells a repeated order from another one, SHA-256 in hex."""
        told = {
            "batch": [
                {
                    "document": await _named(each.document),
                    "name": each.name,
                    "look": each.wished and _look(each.wished),
                    **_said(each.note),
                    **({} if each.repairs else {"repairs": False}),
                }
                for each in self.documents
            ],
            "signer": self.signer and self.signer.told(),
            **_said(self.note),
            "expires": self.expires and self.expires.isoformat(),
            "level": self.level,
            # Not where all are: orders of before have the same fingerprint.
            **({} if self.openings is Openings.ALL else {"openings": self.openings}),
        }
        return hashlib.sha256(await asyncio.to_thread(canonical_json, told)).hexdigest()


@dataclass(frozen=True, slots=True)
class ProcessChange:
    """What is to be different of a process."""

    note: Mapping[str, Any]
    """Members of `ProcessNote` that are given; all others stay."""
    is_expiry_given: bool = False
    expires: datetime | None = None
    """None, where it is given: it can be signed for ever."""

    def of(self, before: ProcessNote) -> ProcessNote:
        """What is said of the process afterwards."""
        return replace(before, **self.note)


def _placed(read: Iterable[_T], unread: frozenset[int]) -> Iterator[tuple[int, _T]]:
    """What was read, each with its place among all that came."""
    places = (place for place in count() if place not in unread)
    return zip(places, read, strict=False)


async def _named(document: DocumentBytes | str | None) -> str | None:
    """A document as an order's fingerprint tells it: the id of one, or a SHA-256."""
    if document is None or isinstance(document, str):
        return document
    return await sha256_of(document)


def _said(note: ProcessNote) -> dict[str, object]:
    """What is said of it, as an order's fingerprint tells it."""
    return {
        "reference": note.reference,
        "unique": note.is_unique,
        "metadata": dict(note.metadata),
        "language": note.language,
        "message": note.message,
    }


def _look(wished: WishedPreset) -> list[object]:
    """A look and place, as an order's fingerprint tells it."""
    anchor = wished.anchor and [
        wished.anchor.text,
        wished.anchor.occurrence,
        wished.anchor.dx,
        wished.anchor.dy,
    ]
    return [wished.given.to_wire(), wished.fixed, wished.last_page, anchor]
