"""What answers to an integrator's backend have; see `answers`."""

from typing import Annotated, NotRequired, TypeAlias

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from appliance.api.wire.answers import (
    Address,
    Count,
    Cuil,
    DocumentFacts,
    Fault,
    Id,
    Instant,
    Language,
    Level,
    RequestNumber,
    Sha256,
    SignatureLook,
    State,
    Texts,
    Version,
    one_of,
    string,
)
from appliance.domain.errors import ErrorCode
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.requests.told_names import CHANGED_NAMES, EVENT_NAMES
from appliance.domain.vocab import (
    BatchState,
    Environment,
    Openings,
    RequestState,
    WebhookEvent,
)
from appliance.integration.diagnosis import Amiss

StateCounts: TypeAlias = Annotated[
    dict[str, int],
    WithJsonSchema(
        {
            "type": "object",
            "maxProperties": len(RequestState),
            "propertyNames": {"enum": [state.value for state in RequestState]},
            "additionalProperties": {"type": "integer", "minimum": 1},
        }
    ),
]
Place: TypeAlias = Annotated[int, Field(ge=1)]


class DocumentNamed(TypedDict):
    """The document of a request, in short."""

    nombre: str
    sha256: Sha256
    tamano: Count
    paginas: Count


class DocumentDescribed(DocumentNamed, DocumentFacts):
    """The document of a request, with what to know of it."""


class RequestSigner(TypedDict):
    """One of who sign a document in turn."""

    solicitudId: RequestNumber
    orden: Place
    turno: Place
    personaId: Id
    cuil: Cuil | None
    nombre: str | None
    sello: SignatureLook | None
    estado: State
    motivo: str | None
    nivel: Level | None
    versiones: list[Version]


class _Request(TypedDict):
    procesoId: Id
    loteId: Id | None
    estado: State
    referencia: str | None
    referenciaUnica: bool
    metadatos: Texts
    idioma: Language | None
    mensaje: str | None
    creada: Instant
    vence: Instant | None
    firmantes: list[RequestSigner]


class RequestListed(_Request):
    """A request of an integrator, as the list has it."""

    documento: DocumentNamed


class RequestEvent(TypedDict):
    """Something that became of a request."""

    evento: Annotated[str, one_of(EVENT_NAMES.values())]
    cuando: Instant
    solicitudId: RequestNumber
    sha256: NotRequired[Sha256]
    sha256Original: NotRequired[Sha256]
    anterior: NotRequired[RequestNumber]
    loteId: NotRequired[Id]
    campos: NotRequired[list[Annotated[str, one_of(CHANGED_NAMES.values())]]]
    motivo: NotRequired[str]
    nivel: NotRequired[Level]
    version: NotRequired[Place]


class RequestDetail(_Request):
    """All of one request of an integrator, and what became of it."""

    documento: DocumentDescribed
    historia: list[RequestEvent]


class RemindedSigner(TypedDict):
    """Somebody who is written to."""

    solicitudId: RequestNumber
    personaId: Id


class Reminded(TypedDict):
    """Who is written to about a request."""

    procesoId: Id
    recordados: list[RemindedSigner]


class BatchSigner(TypedDict):
    """Who signs a batch."""

    personaId: Id
    cuil: Cuil | None
    nombre: str | None


class BatchProgress(TypedDict):
    """Progress of the preparation of a batch."""

    documentos: Count
    examinados: Count


class BatchListed(TypedDict):
    """A batch, as the list has it."""

    loteId: Id
    referencia: str | None
    referenciaUnica: bool
    metadatos: Texts
    idioma: Language | None
    mensaje: str | None
    creado: Instant
    firmante: BatchSigner
    estado: Annotated[str, one_of(BatchState)]
    aperturas: Annotated[str, one_of(Openings)]
    progreso: BatchProgress
    total: Count
    estados: StateCounts


class BatchMemberDocument(TypedDict):
    """The document of one request of a batch."""

    nombre: str
    sha256: Sha256


class BatchRequest(TypedDict):
    """One request of a batch."""

    procesoId: Id
    solicitudId: RequestNumber
    referencia: str | None
    documento: BatchMemberDocument
    estado: State
    motivo: str | None


class BatchDetailed(BatchListed):
    """A batch, with its requests or a page of them."""

    solicitudes: list[BatchRequest]
    errors: NotRequired[list[Fault]]


class SessionOpened(TypedDict):
    """A session of the iframe, and what is signed in it."""

    tokenSession: str
    validUntil: Instant
    sesionId: str
    solicitudId: RequestNumber | None
    loteId: str | None


class WhyNot(TypedDict):
    """Why somebody cannot sign."""

    codigo: Annotated[
        str,
        one_of(
            (
                ErrorCode.PERSON_NOT_FOUND,
                ErrorCode.SIGNER_PENDING_APPROVAL,
                ErrorCode.CERTIFICATE_NOT_USABLE,
                ErrorCode.SIGN_LOCKED,
            )
        ),
    ]
    texto: str
    obstaculo: NotRequired[
        Annotated[str, one_of(("disabled", "locked", "revoked", "expired", "missing"))]
    ]
    desde: NotRequired[Instant]


class Signer(TypedDict):
    """Whether somebody can sign now, and if not, why."""

    cuil: Cuil
    estado: Annotated[
        str, one_of(("desconocida", "invitada", "activa", "deshabilitada"))
    ]
    puedeFirmar: bool
    motivo: WhyNot | None


class VouchedSigner(Signer):
    """Somebody whom an integrator answers for, and their one-time link."""

    personaId: Id
    enlace: Address | None
    enlaceVence: Instant | None


class UploadNamed(TypedDict):
    """A document that was uploaded, in short."""

    documentoId: Id
    nombre: str
    sha256: Sha256
    tamano: Count
    paginas: Count


class UploadTimes(TypedDict):
    """Since when and until when there is one."""

    creado: Instant
    vence: Instant


class UploadListed(UploadNamed, UploadTimes):
    """A document that was uploaded, as the list has it."""


class Upload(UploadNamed, DocumentFacts, UploadTimes):
    """A document that was uploaded, with what to know of it."""


class RateLeft(TypedDict):
    """How much may be called for within a time, and what is left of it."""

    nombre: Annotated[str, one_of(("llamadas", "sesiones", "solicitudes", "bytes"))]
    maximo: Count
    ventana: Annotated[int, WithJsonSchema({"type": "integer", "minimum": 1})]
    quedan: Count
    renuevaEn: Count


class KeyShown(TypedDict):
    """The key that asks."""

    claveId: str
    nombre: str
    alcances: list[Annotated[str, one_of(ApiKeyScope)]]
    redes: list[str]
    vence: Instant | None
    expuesta: Instant | None


class DomainShown(TypedDict):
    """An origin whose pages may show the iframe."""

    origen: str
    visto: Instant | None


class OriginBlocked(TypedDict):
    """An origin whose pages wanted to and may not."""

    origen: str
    veces: Count
    ultima: Instant


class WebhookShown(TypedDict):
    """A webhook, as the diagnosis has it."""

    webhookId: Id
    url: str
    habilitado: bool
    fallaDesde: Instant | None
    pendientes: Count


class MailShown(TypedDict):
    """Whether mail is sent."""

    servidor: bool
    firmantes: bool


class Warned(TypedDict):
    """Something that is amiss."""

    codigo: Annotated[str, one_of(Amiss)]
    sobre: str | None
    texto: str


class DiagnosisTold(TypedDict):
    """How an integrator is set up, and what is amiss."""

    entorno: Annotated[str, one_of(Environment)]
    clave: KeyShown
    dominios: list[DomainShown]
    origenesBloqueados: list[OriginBlocked]
    webhooks: list[WebhookShown]
    correo: MailShown
    puedeResponder: bool
    avisos: list[Warned]


class Webhook(TypedDict):
    """A webhook."""

    webhookId: Id
    url: str
    nombre: str
    eventos: list[Annotated[str, one_of(WebhookEvent)]]
    habilitado: bool
    deshabilitado: Instant | None
    motivo: Annotated[str, one_of(("pedido", "respuesta_410", "fallas"))] | None
    fallaDesde: Instant | None
    secretoAnteriorHasta: Instant | None
    creado: Instant


class WebhookWithSecret(Webhook):
    """A webhook and, this once, its secret."""

    secreto: str


class DeliveryAttempt(TypedDict):
    """One try to deliver a message."""

    cuando: Instant
    estadoHttp: int | None
    falla: (
        Annotated[
            str,
            one_of(
                (
                    "demora",
                    "conexion",
                    "nombre",
                    "tls",
                    "direccion_no_permitida",
                    "url",
                    "redireccion",
                    "estado_http",
                    "respuesta_410",
                    "respuesta_invalida",
                    "secreto",
                )
            ),
        ]
        | None
    )
    milisegundos: Count
    respuesta: str | None


class Delivery(TypedDict):
    """What was sent to a webhook, or is to be."""

    entregaId: Id
    tipo: Annotated[str, one_of(WebhookEvent)]
    procesoId: Id | None
    solicitudId: RequestNumber | None
    estado: Annotated[str, one_of(("pendiente", "entregada", "abandonada", "retirada"))]
    intentos: Count
    proximoIntento: Instant | None
    ultimoIntento: DeliveryAttempt | None
    creada: Instant


class MessageData(TypedDict):
    """What a message tells of its event: what belongs to it."""

    procesoId: NotRequired[Id]
    solicitudId: NotRequired[RequestNumber | None]
    referencia: NotRequired[str | None]
    sha256: NotRequired[Sha256]
    sha256Original: NotRequired[Sha256]
    anterior: NotRequired[RequestNumber]
    loteId: NotRequired[Id]
    total: NotRequired[Count]
    estados: NotRequired[StateCounts]
    errores: NotRequired[Count]
    codigo: NotRequired[Annotated[str, one_of(ErrorCode)]]
    campos: NotRequired[list[Annotated[str, one_of(CHANGED_NAMES.values())]]]
    motivo: NotRequired[str]
    nivel: NotRequired[Level]
    version: NotRequired[Place]
    sesionId: NotRequired[str]
    origen: NotRequired[str]
    claveId: NotRequired[str]
    webhookId: NotRequired[Id]
    desde: NotRequired[Instant]
    personaId: NotRequired[Id]
    dias: NotRequired[int]
    vence: NotRequired[Instant]


class Message(TypedDict):
    """The body of a message to a webhook."""

    type: Annotated[str, one_of(WebhookEvent)]
    timestamp: Instant
    data: MessageData


class DeliveryDetail(Delivery):
    """All of one delivery: its body, and each try."""

    cuerpo: Message
    historial: list[DeliveryAttempt]


class ReplayStarted(TypedDict):
    """How many messages are sent again; more begin at `siguiente`."""

    reenviadas: Count
    siguiente: Annotated[str, string(format="date-time")] | None


class SignerForTests(TypedDict):
    """A signer who was made up, with all that a machine needs to act as them."""

    personaId: Id
    cuil: Cuil
    nombre: str
    email: str
    password: str
    claveFirma: str
    totp: str
    puedeFirmar: bool
    motivo: WhyNot | None
    creado: Instant


class CodeForTests(TypedDict):
    """A code that is accepted now, and for how many seconds."""

    otp: Annotated[str, string(pattern="^[0-9]{6}$")]
    venceEn: Count


class MailForTests(TypedDict):
    """A mail to a test signer, as its recipient would read it."""

    correoId: Id
    tipo: Annotated[
        str,
        one_of(
            (
                "invitacion",
                "solicitud",
                "recordatorio",
                "firmado",
                "alta",
                "codigos_nuevos",
                "clave_cambiada",
                "clave_bloqueada",
                "ingreso_nuevo",
                "certificado",
                "revocado",
                "prueba",
            )
        ),
    ]
    asunto: str
    texto: str
    html: str
    creado: Instant
    procesoId: Id | None
    enlace: Address | None
