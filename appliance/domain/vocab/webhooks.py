"""What integrators' webhooks are told, and what becomes of a message."""

from enum import StrEnum


class WebhookEvent(StrEnum):
    """`type` of a message; grammar `subject.what`, those of requests as `historia`."""

    REQUEST_CREATED = "solicitud.creada"
    REQUEST_TURN = "solicitud.turno"
    """Those before have signed: it is this signer's turn."""
    REQUEST_VIEWED = "solicitud.vista"
    REQUEST_CHANGED = "solicitud.modificada"
    REQUEST_REMINDED = "solicitud.recordada"
    """Its signer was written to again."""
    REQUEST_SIGNED = "solicitud.firmada"
    REQUEST_REJECTED = "solicitud.rechazada"
    REQUEST_CANCELLED = "solicitud.cancelada"
    REQUEST_EXPIRED = "solicitud.vencida"
    REQUEST_FAILED = "solicitud.fallida"
    REQUEST_RETURNED = "solicitud.devuelta"
    """Its signature could not be made, and it can be signed again."""
    REQUEST_COMPLETED = "solicitud.completada"
    """All who had to sign have signed."""
    BATCH_READY = "lote.listo"
    """Its documents are in order: its requests exist and can be signed."""
    BATCH_REFUSED = "lote.rechazado"
    """Something is wrong with a document; nobody was asked to sign anything."""
    BATCH_ENDED = "lote.terminado"
    """Each of its documents is signed, or never will be."""
    LEVEL_RAISED = "documento.nivel_elevado"
    SESSION_OPENED = "sesion.abierta"
    SESSION_COMPLETED = "sesion.completada"
    SESSION_EXPIRED = "sesion.vencida"
    ORIGIN_BLOCKED = "sesion.origen_bloqueado"
    """A page of an origin that is not registered wanted the frame."""
    KEY_FLAGGED = "clave.marcada"
    """An API key was seen where it must never be."""
    KEY_EXPIRING = "clave.por_vencer"
    SIGNER_READY = "firmante.listo"
    """Whom the integrator vouched for, or asked to sign, has enrolled."""
    CERTIFICATE_EXPIRING = "certificado.por_vencer"
    WEBHOOK_TEST = "webhook.prueba"
    WEBHOOK_DISABLED = "webhook.deshabilitado"
    """Another endpoint of the integrator gets nothing any more."""


class MessageState(StrEnum):
    """Where a webhook's message stands."""

    PENDING = "pending"
    """It is to be sent, or sent again."""
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"
    """Every try of the schedule failed."""
    WITHDRAWN = "withdrawn"
    """Its endpoint was disabled or removed before it was delivered, or its integrator
    disabled."""


class WebhookDisabled(StrEnum):
    """Why an endpoint gets nothing."""

    BY_INTEGRATOR = "by_integrator"
    GONE = "gone"
    """It answered 410."""
    FAILING = "failing"
    """No try has succeeded for days."""


class DeliveryFailure(StrEnum):
    """Why a try did not deliver a message."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"
    NAME = "name"
    """The host's name is not known."""
    TLS = "tls"
    REFUSED_ADDRESS = "refused_address"
    """It is not public, and `webhooks.allowed_networks` does not name it."""
    BAD_URL = "bad_url"
    """There is no going to such an address: its scheme, a user name in it."""
    REDIRECT = "redirect"
    STATUS = "status"
    """It answered neither 2xx nor 3xx."""
    GONE = "gone"
    BAD_ANSWER = "bad_answer"
    """What it answered is no HTTP."""
    SECRET = "secret"  # noqa: S105 (a word, no secret)
    """The endpoint's secret does not open, so nothing was sent."""
