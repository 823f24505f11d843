"""What the comparison of record and audit reads, in SQL: pages by index."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy import Row, Select, Text, and_, func, or_, select, type_coerce

from appliance.database.tables import (
    activation,
    activation_item,
    audit_event,
    audit_writer,
    certificate,
    credential,
    intent,
    signature_request,
    signed_document,
)
from appliance.domain.audit.reconciliation import (
    CertificateRow,
    CredentialRow,
    Event,
    Item,
    RequestHistory,
    Version,
)
from appliance.domain.pki.certificates import serial_text
from appliance.domain.vocab import (
    CertificateKind,
    EventKind,
    IntentState,
    ItemState,
    RequestState,
)
from appliance.record.unit_of_work import Store

Place = tuple[datetime, str, int]
"""Of a row of the audit, by time: at, writer, number."""
_E: Final = audit_event.c
_EVENTS: Final = (
    select(
        _E.writer,
        _E.n,
        _E.at,
        _E.event,
        _E.actor,
        _E.request,
        _E.activation,
        _E.attempt,
        # As it stands: `audit verify` names a row that cannot be read.
        type_coerce(_E.detail, Text).label("told"),
        audit_writer.c.role,
        audit_writer.c.db_user,
    )
).join(audit_writer, audit_writer.c.id == _E.writer)


class ReconciliationStore(Store):
    """Rows of record and audit, read in pages."""

    async def next_request(self, after: int) -> int | None:
        """Return the next number of a request that record or audit has."""
        found = [
            (await self._connection.execute(query)).scalar()
            for query in (
                select(func.min(_E.request)).where(_E.request > after),
                select(func.min(signature_request.c.id)).where(
                    signature_request.c.id > after
                ),
            )
        ]
        return min((each for each in found if each is not None), default=None)

    async def requests(
        self, first: int, last: int, kinds: Collection[EventKind]
    ) -> list[RequestHistory]:
        """Return the histories of requests with numbers from `first` to `last`."""
        within = signature_request.c.id.between(first, last)
        in_audit = _E.request.between(first, last)
        return await self._histories(within, in_audit, kinds)

    async def requests_named(
        self, numbers: Collection[int], kinds: Collection[EventKind]
    ) -> list[RequestHistory]:
        """Return the histories of some requests."""
        within = signature_request.c.id.in_(numbers)
        return await self._histories(within, _E.request.in_(numbers), kinds)

    async def _histories(
        self, within: Any, in_audit: Any, kinds: Collection[EventKind]
    ) -> list[RequestHistory]:
        """Read rows of the record first: what the audit says of them is there then."""
        found: dict[int, RequestHistory] = {}

        def of(request: int) -> RequestHistory:
            return found.setdefault(request, RequestHistory(request))

        signed = RequestState.SIGNED.value
        its = signature_request.c
        for row in await self._connection.execute(
            select(its.id, its.state, its.turn).where(within)
        ):
            of(row.id).is_signed = row.state == signed
            of(row.id).has_shared_turn = row.turn is not None
        for row in await self._connection.execute(
            select(signed_document)
            .join(
                signature_request, signature_request.c.id == signed_document.c.request
            )
            .where(within)
        ):
            of(row.request).versions.append(Version(row.version, row.sha256, row.made))
        for row in await self._connection.execute(_items(within)):
            of(row.request).items.append(_item(row))
        query = _EVENTS.where(in_audit, _E.event.in_([each.value for each in kinds]))
        for event in _read(await self._connection.execute(query.order_by(_E.at, _E.n))):
            if event.request is not None:
                of(event.request).events.append(event)
        return [found[each] for each in sorted(found)]

    async def events(
        self,
        kind: EventKind,
        after: Place | None,
        limit: int,
        since: datetime | None = None,
    ) -> tuple[list[Event], Place | None]:
        """Return events of one kind by time, and where the next page begins.

        Args:
            kind: which.
            after: the page before ended there; None: the first page.
            limit: most of a page.
            since: leave out what is older.
        """
        query = _EVENTS.where(_E.event == kind.value)
        if since is not None:
            query = query.where(_E.at >= since)
        if after is not None:
            at, writer, n = after
            query = query.where(
                _E.at >= at,
                or_(
                    _E.at > at,
                    _E.writer > writer,
                    and_(_E.writer == writer, _E.n > n),
                ),
            )
        query = query.order_by(_E.at, _E.writer, _E.n).limit(limit)
        rows = (await self._connection.execute(query)).all()
        following = None
        if len(rows) == limit:
            following = rows[-1].at, rows[-1].writer, rows[-1].n
        return _read(rows), following

    async def credentials(self, after: str, limit: int) -> list[CredentialRow]:
        """Return credentials by id."""
        rows = await self._connection.execute(
            select(
                credential.c.id,
                credential.c.person,
                credential.c.spki,
                credential.c.certificate,
                credential.c.created,
            )
            .where(credential.c.id > after)
            .order_by(credential.c.id)
            .limit(limit)
        )
        found = []
        for row in rows:
            serial, certified = _certified(row.certificate)
            found.append(
                CredentialRow(
                    id=row.id,
                    person=row.person,
                    spki_sha256=hashlib.sha256(row.spki).hexdigest(),
                    certificate_sha256=hashlib.sha256(row.certificate).hexdigest(),
                    serial=serial,
                    certified_spki_sha256=certified,
                    created=row.created,
                )
            )
        return found

    async def certificates(self, after: str, limit: int) -> list[CertificateRow]:
        """Return signers' certificates of the internal CA by serial number."""
        rows = await self._connection.execute(
            select(
                certificate.c.serial,
                certificate.c.credential,
                certificate.c.der,
                certificate.c.issued,
                credential.c.person,
            )
            .join(credential, credential.c.id == certificate.c.credential)
            .where(
                certificate.c.serial > after,
                certificate.c.kind == CertificateKind.SIGNER.value,
            )
            .order_by(certificate.c.serial)
            .limit(limit)
        )
        return [
            CertificateRow(
                serial=row.serial,
                credential=row.credential,
                person=row.person,
                sha256=hashlib.sha256(row.der).hexdigest(),
                issued=row.issued,
                certified_spki_sha256=_certified(row.der)[1],
            )
            for row in rows
        ]

    async def people(self) -> int:
        """Return how many credentials there are: about as many as people."""
        count = select(func.count()).select_from(credential)
        return (await self._connection.execute(count)).scalar_one()


def _items(within: Any) -> Select[Any]:
    """Select documents of activations, with how often their key was used."""
    completed = (
        select(func.count())
        .select_from(intent)
        .where(
            intent.c.activation == activation_item.c.activation,
            intent.c.item == activation_item.c.seq,
            intent.c.state == IntentState.COMPLETED.value,
        )
        .scalar_subquery()
    )
    return (
        select(
            activation_item.c.request,
            activation_item.c.activation,
            activation_item.c.seq,
            activation_item.c.state,
            activation_item.c.signature.is_not(None).label("has_signature"),
            activation.c.credential,
            completed.label("uses"),
        )
        .join(activation, activation.c.id == activation_item.c.activation)
        .join(signature_request, signature_request.c.id == activation_item.c.request)
        .where(within)
    )


def _item(row: Row[Any]) -> Item:
    keyed = row.state in {ItemState.KEYED.value, ItemState.DONE.value}
    return Item(
        row.activation,
        row.seq,
        row.credential,
        is_keyed=bool(keyed or row.has_signature or row.uses),
        uses=row.uses,
    )


def _read(rows: Iterable[Row[Any]]) -> list[Event]:
    """Read rows of the audit; one that cannot be read is left to `audit verify`."""
    return [
        Event(
            writer=row.writer,
            n=row.n,
            role=row.role,
            db_user=row.db_user,
            at=row.at,
            kind=row.event,
            actor=row.actor,
            request=row.request,
            activation=row.activation,
            attempt=row.attempt,
            detail=detail,
        )
        for row in rows
        if (detail := _detail(row.told)) is not None
    ]


def _detail(told: str) -> Mapping[str, object] | None:
    try:
        detail = json.loads(told)
    except (ValueError, RecursionError):
        return None
    return detail if isinstance(detail, dict) else None


def _certified(der: bytes) -> tuple[str, str]:
    """Return serial number and SHA-256 of the SPKI; empty for what cannot be read."""
    try:
        made = x509.load_der_x509_certificate(der)
        public = made.public_key()
        spki = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return serial_text(made.serial_number), hashlib.sha256(spki).hexdigest()
    except Exception:  # noqa: BLE001 (whoever writes the record chooses the bytes)
        return "", ""
