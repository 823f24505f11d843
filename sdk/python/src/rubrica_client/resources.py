"""Every call of an integrator's backend, each described once.

Fields, states and codes are those of the service's documentation ("The API of an
integrator's backend"). A call that makes something has an idempotency key: yours, so
that your own repeat of it makes nothing new, or one that the client makes, so that its
own does not.
"""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from rubrica_client import models
from rubrica_client.calls import (
    Call,
    R,
    Resource,
    Source,
    Upload,
    given,
    listing,
    operation,
    pdf_name,
)

_API: Final = "/api/integration"
_REQUESTS: Final = f"{_API}/requests"
_BATCHES: Final = f"{_API}/batches"
_DOCUMENTS: Final = f"{_API}/documents"
_SIGNERS: Final = f"{_API}/signers"
_WEBHOOKS: Final = f"{_API}/webhooks"


def _key(given: str | None) -> str:
    return given or str(uuid.uuid4())


class Requests(Resource[R]):
    """Requests to sign a document."""

    @operation("POST", _REQUESTS)
    def create(
        self,
        document: Source | models.DocumentRef,
        signers: Sequence[models.SignerInTurn],
        options: models.RequestOptions | None = None,
        *,
        name: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.Request]:
        """Ask people to sign a document, one after the other or in turns of several.

        Args:
            document: its bytes or file, which is sent in pieces; or one that was
                uploaded, `{"documentoId": …}`.
            signers: in their order.
            options: reference, message, expiry and so on.
            name: of its file; ends in `.pdf`.
            idempotency_key: 1 to 128 visible ASCII characters.
        """
        fields: dict[str, Any] = {**(options or {}), "firmantes": [*signers]}
        key = _key(idempotency_key)
        if isinstance(document, Mapping):
            fields["documento"] = {**document, **given(nombre=name)}
            return Call(body=fields, idempotency_key=key)
        called = name or pdf_name(document)
        if called is not None:
            fields["documento"] = {"nombre": called}
        return Call(upload=Upload({"file": document}, fields), idempotency_key=key)

    @listing("GET", _REQUESTS)
    def list(
        self,
        *,
        estado: models.RequestState | None = None,
        referencia: str | None = None,
        cuil: str | None = None,
        batch: str | None = None,
        desde: str | None = None,
        hasta: str | None = None,
    ) -> Call[models.RequestListed]:
        """The integrator's requests, newest first.

        Args:
            estado: in this state.
            referencia: with exactly this reference.
            cuil: that this person signs or signed.
            batch: `loteId`: of this batch.
            desde: made at this time or later, with a zone.
            hasta: made before this time.
        """
        return Call(
            query={
                "estado": estado,
                "referencia": referencia,
                "cuil": cuil,
                "loteId": batch,
                "desde": desde,
                "hasta": hasta,
            }
        )

    @operation("GET", f"{_REQUESTS}/{{procesoId}}")
    def get(self, process: str) -> Call[models.Request]:
        """One request: how it stands, and what became of it.

        Args:
            process: its `procesoId`.
        """
        return Call(process)

    @operation("PATCH", f"{_REQUESTS}/{{procesoId}}")
    def change(
        self, process: str, change: models.RequestChange
    ) -> Call[models.Request]:
        """Change what is said of a request; None takes a value away.

        Args:
            process: its `procesoId`.
            change: what is to be another.
        """
        return Call(process, body=change)

    @operation("POST", f"{_REQUESTS}/{{procesoId}}/cancel")
    def cancel(self, process: str, motivo: str | None = None) -> Call[models.Request]:
        """Take back what of a request is not signed yet, for good.

        Args:
            process: its `procesoId`.
            motivo: why.
        """
        return Call(process, body=given(motivo=motivo))

    @operation("POST", f"{_REQUESTS}/{{procesoId}}/remind")
    def remind(self, process: str) -> Call[models.Reminded]:
        """Write to the signers whose turn it is, once a day at most.

        Args:
            process: `procesoId` of the request.
        """
        return Call(process)

    @operation("GET", f"{_REQUESTS}/{{procesoId}}/original")
    def original(self, process: str) -> Call[bytes]:
        """The PDF of a request as it came in, or the repaired copy of it.

        Args:
            process: `procesoId` of the request.
        """
        return Call(process)

    @operation("GET", f"{_REQUESTS}/{{procesoId}}/original")
    def original_to(self, process: str, path: Path) -> Call[Path]:
        """Write that PDF to a file, which is there once it is whole.

        Args:
            process: `procesoId` of the request.
            path: the file.
        """
        return Call(process, save_to=path)

    @operation("GET", f"{_REQUESTS}/{{procesoId}}/document")
    def document(self, process: str, sha256: str | None = None) -> Call[bytes]:
        """The PDF that all have signed.

        Args:
            process: `procesoId` of the request.
            sha256: of another version of it, hex.
        """
        return Call(process, query={"sha256": sha256})

    @operation("GET", f"{_REQUESTS}/{{procesoId}}/document")
    def document_to(
        self, process: str, path: Path, sha256: str | None = None
    ) -> Call[Path]:
        """Write that PDF to a file, which is there once it is whole.

        Args:
            process: `procesoId` of the request.
            path: the file.
            sha256: of another version of it, hex.
        """
        return Call(process, query={"sha256": sha256}, save_to=path)


class Batches(Resource[R]):
    """Many documents for one signer, by one call."""

    @operation("POST", _BATCHES)
    def create(
        self,
        signer: models.SignerNamed,
        documents: Sequence[models.BatchDocument],
        options: models.RequestOptions | None = None,
        *,
        files: Mapping[str, Source] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.Batch]:
        """Ask one person to sign up to 1,000 documents.

        The answer comes at once, `en_preparacion`: the service examines the documents
        then, and makes the requests once it is done (`wait`, or the webhooks
        `lote.listo` and `lote.rechazado`).

        Args:
            signer: who.
            documents: in the order in which they are signed.
            options: as of a request, the same for all.
            files: those that come with the call, in pieces, by the names that
                `archivo` of the documents has.
            idempotency_key: 1 to 128 visible ASCII characters.
        """
        body = {**(options or {}), "firmante": signer, "documentos": [*documents]}
        key = _key(idempotency_key)
        if files:
            return Call(upload=Upload(files, body), idempotency_key=key)
        return Call(body=body, idempotency_key=key)

    @listing("GET", _BATCHES)
    def list(self, *, referencia: str | None = None) -> Call[models.BatchListed]:
        """The integrator's batches, newest first.

        Args:
            referencia: with exactly this reference.
        """
        return Call(query={"referencia": referencia})

    @operation("GET", f"{_BATCHES}/{{loteId}}")
    def get(self, batch: str) -> Call[models.Batch]:
        """One batch, with the first page of its documents.

        Args:
            batch: its `loteId`.
        """
        return Call(batch)

    @operation("GET", f"{_BATCHES}/{{loteId}}")
    def wait(self, batch: str, *, longest_s: float = 3600.0) -> Call[models.Batch]:
        """One batch, once it is no longer being prepared.

        Its `estado` is then `listo`; or `rechazado`, with `errors`; or `cancelado`.
        After the longest wait it may still be `en_preparacion`.

        Args:
            batch: its `loteId`.
            longest_s: longest wait, in seconds.
        """
        return Call(batch, passing="en_preparacion", longest_s=longest_s)

    @listing("GET", f"{_BATCHES}/{{loteId}}")
    def members(self, batch: str) -> Call[models.BatchMember]:
        """All documents of a batch, in order.

        Args:
            batch: its `loteId`.
        """
        return Call(batch, member="solicitudes")

    @operation("POST", f"{_BATCHES}/{{loteId}}/cancel")
    def cancel(self, batch: str, motivo: str | None = None) -> Call[models.BatchListed]:
        """Take a batch back, or what of it is not signed yet, for good.

        Args:
            batch: its `loteId`.
            motivo: why.
        """
        return Call(batch, body=given(motivo=motivo))


class Documents(Resource[R]):
    """Documents that are uploaded once, and named later."""

    @operation("POST", _DOCUMENTS)
    def upload(
        self,
        document: Source,
        *,
        name: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.Document]:
        """Upload a document.

        Args:
            document: its bytes or file, which is sent in pieces.
            name: of its file, ends in `.pdf`; that of the file unless given.
            idempotency_key: 1 to 128 visible ASCII characters.
        """
        return Call(
            query={"nombre": name or pdf_name(document)},
            upload=Upload({"file": document}),
            idempotency_key=_key(idempotency_key),
        )

    @listing("GET", _DOCUMENTS)
    def list(self) -> Call[models.DocumentListed]:
        """The documents that were uploaded, newest first."""
        return Call()

    @operation("GET", f"{_DOCUMENTS}/{{documentoId}}")
    def get(self, document: str) -> Call[models.Document]:
        """One uploaded document, with what is to be known of it.

        Args:
            document: its `documentoId`.
        """
        return Call(document)

    @operation("GET", f"{_DOCUMENTS}/{{documentoId}}/content")
    def content(self, document: str) -> Call[bytes]:
        """The bytes of an uploaded document.

        Args:
            document: its `documentoId`.
        """
        return Call(document)

    @operation("GET", f"{_DOCUMENTS}/{{documentoId}}/content")
    def content_to(self, document: str, path: Path) -> Call[Path]:
        """Write an uploaded document to a file, which is there once it is whole.

        Args:
            document: its `documentoId`.
            path: the file.
        """
        return Call(document, save_to=path)

    @operation("DELETE", f"{_DOCUMENTS}/{{documentoId}}")
    def delete(self, document: str) -> Call[None]:
        """Have a document be named no more; requests that were made of it keep it.

        Args:
            document: its `documentoId`.
        """
        return Call(document)


class Sessions(Resource[R]):
    """Sessions of the iframe."""

    @operation("POST", f"{_API}/sessions")
    def create(
        self,
        *,
        process: str | None = None,
        request: int | None = None,
        batch: str | None = None,
        falla: models.Fault | None = None,
    ) -> Call[models.Session]:
        """Open a session, for one request, for a batch, or for whatever comes.

        Args:
            process: `procesoId`: that of the signer whose turn it is.
            request: `solicitudId` of one signer, in place of that.
            batch: `loteId`: all of a batch, in place of either.
            falla: outside PROD: what is to go wrong in it.
        """
        body = given(procesoId=process, solicitudId=request, loteId=batch, falla=falla)
        return Call(body=body)

    @operation("POST", f"{_API}/session/new")
    def new(self, integrator: str) -> Call[models.Session]:
        """Open a session by the integrator's code: the older address of the same.

        Args:
            integrator: its code.
        """
        return Call(query={"id": integrator})


class Signers(Resource[R]):
    """People who sign."""

    @operation("GET", f"{_SIGNERS}/{{cuil}}")
    def get(self, cuil: str) -> Call[models.SignerState]:
        """Whether somebody can sign now, and if not, why.

        Args:
            cuil: whose, 11 digits with or without dashes.
        """
        return Call(cuil)

    @operation("PUT", f"{_SIGNERS}/{{cuil}}")
    def invite(
        self,
        cuil: str,
        *,
        nombre: str,
        email: str,
        identidad: models.Identity,
        idioma: models.Language | None = None,
        by_mail: bool | None = None,
        new_link: bool | None = None,
    ) -> Call[models.Invited]:
        """Answer for somebody, and invite them.

        Args:
            cuil: whose.
            nombre: as the certificate will have it.
            email: where notices go.
            identidad: how, by whom and when they were identified.
            idioma: that they are written to in.
            by_mail: the link goes to them by mail as well.
            new_link: another link for somebody who has not enrolled.
        """
        body = given(
            nombre=nombre,
            email=email,
            identidad=identidad,
            idioma=idioma,
            enviarInvitacion=by_mail,
            nuevoEnlace=new_link,
        )
        return Call(cuil, body=body)


class Webhooks(Resource[R]):
    """Addresses that are told of what happens."""

    @operation("POST", _WEBHOOKS)
    def create(
        self,
        url: str,
        *,
        nombre: str | None = None,
        eventos: Sequence[str] | None = None,
    ) -> Call[models.WebhookWithSecret]:
        """Have messages sent to an address; its secret is shown this once.

        Args:
            url: where to.
            nombre: what tells it from others.
            eventos: types of messages; all unless given.
        """
        events = None if eventos is None else [*eventos]
        return Call(body=given(url=url, nombre=nombre, eventos=events))

    @listing("GET", _WEBHOOKS)
    def list(self) -> Call[models.WebhookEndpoint]:
        """The integrator's webhooks."""
        return Call()

    @operation("GET", f"{_WEBHOOKS}/{{webhookId}}")
    def get(self, webhook: str) -> Call[models.WebhookEndpoint]:
        """One webhook.

        Args:
            webhook: its `webhookId`.
        """
        return Call(webhook)

    @operation("PATCH", f"{_WEBHOOKS}/{{webhookId}}")
    def change(
        self, webhook: str, change: models.WebhookChange
    ) -> Call[models.WebhookEndpoint]:
        """Change a webhook, turn it off and on.

        Args:
            webhook: its `webhookId`.
            change: what is to be another.
        """
        return Call(webhook, body=change)

    @operation("DELETE", f"{_WEBHOOKS}/{{webhookId}}")
    def delete(self, webhook: str) -> Call[None]:
        """Have a webhook be told nothing ever again.

        Args:
            webhook: its `webhookId`.
        """
        return Call(webhook)

    @operation("POST", f"{_WEBHOOKS}/{{webhookId}}/rotate")
    def rotate(
        self, webhook: str, *, at_once: bool = False
    ) -> Call[models.WebhookWithSecret]:
        """Give a webhook another secret.

        Args:
            webhook: its `webhookId`.
            at_once: the one before signs no more; else it does for a day as well.
        """
        return Call(webhook, body={"inmediata": at_once})

    @operation("POST", f"{_WEBHOOKS}/{{webhookId}}/test")
    def send_test(self, webhook: str) -> Call[models.DeliveryDetail]:
        """Have a test message sent to a webhook.

        Args:
            webhook: its `webhookId`.
        """
        return Call(webhook)

    @listing("GET", f"{_WEBHOOKS}/{{webhookId}}/deliveries")
    def deliveries(
        self,
        webhook: str,
        *,
        estado: str | None = None,
        tipo: str | None = None,
        process: str | None = None,
        desde: str | None = None,
        hasta: str | None = None,
    ) -> Call[models.Delivery]:
        """What was sent to it, newest first.

        Args:
            webhook: which.
            estado: in this state.
            tipo: of this type of message.
            process: about this request.
            desde: made at this time or later, with a zone.
            hasta: made before this time.
        """
        return Call(
            webhook,
            query={
                "estado": estado,
                "tipo": tipo,
                "procesoId": process,
                "desde": desde,
                "hasta": hasta,
            },
        )

    @operation("GET", f"{_WEBHOOKS}/{{webhookId}}/deliveries/{{entregaId}}")
    def delivery(self, webhook: str, delivery: str) -> Call[models.DeliveryDetail]:
        """One delivery to a webhook, with each attempt.

        Args:
            webhook: its `webhookId`.
            delivery: `entregaId`.
        """
        return Call(webhook, delivery)

    @operation("POST", f"{_WEBHOOKS}/{{webhookId}}/deliveries/{{entregaId}}/replay")
    def replay_one(self, webhook: str, delivery: str) -> Call[models.DeliveryDetail]:
        """Send one delivery again.

        Args:
            webhook: `webhookId`.
            delivery: `entregaId`.
        """
        return Call(webhook, delivery)

    @operation("POST", f"{_WEBHOOKS}/{{webhookId}}/replay")
    def replay(
        self,
        webhook: str,
        *,
        estado: Literal["abandonada"] | None = None,
        desde: str | None = None,
        hasta: str | None = None,
    ) -> Call[models.Replayed]:
        """Send again what was given up, or all of a time.

        Args:
            webhook: `webhookId`.
            estado: `abandonada`: only what was given up.
            desde: made at this time or later, with a zone.
            hasta: made before this time.
        """
        return Call(webhook, body=given(estado=estado, desde=desde, hasta=hasta))


class Installation(Resource[R]):
    """What the integrator is given by the installation."""

    @operation("GET", f"{_API}/diagnose")
    def diagnose(self) -> Call[models.Diagnosis]:
        """How the integrator is set up, and what is wrong with it."""
        return Call()

    @operation("GET", f"{_API}/limits")
    def limits(self) -> Call[list[models.Limit]]:
        """How much may be called for, and what is left."""
        return Call()
