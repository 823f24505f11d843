"""What becomes of a signature request, and how its document is signed."""

from enum import StrEnum


class RequestState(StrEnum):
    """`estado` of a signature request; each says who acts next.

    Source: decisions "estados".
    """

    WAITING = "en_espera"
    """Another signer's turn."""
    PENDING = "pendiente"
    """The signer acts next."""
    IN_PROGRESS = "en_proceso"
    """The appliance acts next."""
    SIGNED = "firmada"
    REJECTED = "rechazada"
    CANCELLED = "cancelada"
    EXPIRED = "vencida"
    FAILED = "fallida"


class BatchState(StrEnum):
    """`estado` of a batch that an integrator's backend asked for."""

    PREPARING = "en_preparacion"
    """Its documents are being examined; it has no requests yet."""
    READY = "listo"
    """Its requests exist; from here on their own states say how it stands."""
    REFUSED = "rechazado"
    """Something is wrong with a document: nobody was asked to sign anything."""
    CANCELLED = "cancelado"
    """Its integrator took it back before it was ready."""


class Openings(StrEnum):
    """`aperturas` of a batch: which of its documents the signer has to open first."""

    ALL = "todas"
    SAMPLE = "muestra"
    """A sample that the appliance draws."""
    NONE = "ninguna"
    """None: the list of them was read."""


class Restriction(StrEnum):
    """`restriccion` of the signing command (decisions "restriccion")."""

    NO_VALUE = "NO_VALUE"
    NO_CHANGES_ALLOWED = "NO_CHANGES_ALLOWED"
    FORM_FILLING = "FORM_FILLING"
    FORM_FILLING_AND_ANNOTATIONS = "FORM_FILLING_AND_ANNOTATIONS"


class SignatureLevel(StrEnum):
    """PAdES baseline levels, each with all of the one before it.

    Source: EN 319 142-1, 6; decisions "level".
    """

    B_B = "B-B"
    """The signature."""
    B_T = "B-T"
    """A timestamp over it."""
    B_LT = "B-LT"
    """What its validation needs: certificates, OCSP answers, CRLs."""
    B_LTA = "B-LTA"
    """A timestamp over the document with all of that."""


class TimestampPolicy(StrEnum):
    """What becomes of a signature while no timestamp can be had.

    Source: decisions "level"; reliability F22.
    """

    REQUIRED = "required"
    """It waits, and fails for good when its time is over."""
    PREFERRED = "preferred"
    """It is handed out at the level reached, and raised later."""
