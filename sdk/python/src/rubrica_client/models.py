"""What the service is told and answers, by the names of its JSON.

Answers may have more members than these: later versions add some.
"""

import inspect
from collections.abc import Iterator
from typing import Any, Literal, NotRequired, TypedDict, is_typeddict

RequestState = Literal[
    "pendiente", "en_proceso", "firmada", "rechazada", "cancelada", "vencida", "fallida"
]
BatchState = Literal["en_preparacion", "listo", "rechazado", "cancelado"]
Level = Literal["B-B", "B-T", "B-LT", "B-LTA"]
Language = Literal["es", "en"]
Fault = Literal["token_vencido", "hsm_ocupado", "tsa_lenta", "rechazo"]
"""What is to go wrong in a session, outside PROD."""
Stamp = dict[str, Any]
"""`sello`: docs/api.md, "The look and place of a signature"."""


class SignerNamed(TypedDict, total=False):
    """Who is to sign: by one of `cuil`, `email` and `personaId`."""

    cuil: str
    email: str
    personaId: str
    sello: Stamp


class SignerInTurn(SignerNamed, total=False):
    """The same among several; those of one `turno` sign in any order."""

    turno: int


class DocumentRef(TypedDict, total=False):
    """A document that was uploaded, or that comes in Base64."""

    documentoId: str
    contenido: str
    nombre: str


class BatchDocument(TypedDict, total=False):
    """One document of a batch."""

    documentoId: str
    archivo: str
    contenido: str
    nombre: str
    sello: Stamp
    referencia: str
    referenciaUnica: bool
    metadatos: dict[str, str]


class RequestOptions(TypedDict, total=False):
    """What else may be said of a request."""

    vence: str
    nivel: Level
    referencia: str
    referenciaUnica: bool
    metadatos: dict[str, str]
    mensaje: str
    idioma: Language


class RequestChange(TypedDict, total=False):
    """What may be different; None takes a value away."""

    vence: str | None
    referencia: str | None
    referenciaUnica: bool | None
    metadatos: dict[str, str] | None
    mensaje: str | None
    idioma: Language | None


class Inspected(TypedDict):
    """What is to be known of a document."""

    firmas: list[dict[str, Any]]
    certificacion: Any
    campos: list[dict[str, Any]]
    medidas: list[dict[str, Any]]
    avisos: list[Any]
    reparacion: Any


class RequestDocument(Inspected):
    """The document of a request."""

    nombre: str
    sha256: str
    tamano: int
    paginas: int


class RequestSigner(TypedDict):
    """Somebody who signs a request."""

    solicitudId: int
    orden: int
    turno: int
    personaId: str
    cuil: str | None
    nombre: str | None
    sello: Stamp | None
    estado: str
    motivo: str | None
    nivel: Level | None
    versiones: list[dict[str, Any]]


class RequestListed(TypedDict):
    """An element of the list of requests."""

    procesoId: str
    loteId: str | None
    estado: RequestState
    referencia: str | None
    referenciaUnica: bool
    metadatos: dict[str, str]
    idioma: Language | None
    mensaje: str | None
    creada: str
    vence: str | None
    documento: dict[str, Any]
    firmantes: list[RequestSigner]


class Event(TypedDict):
    """Something that became of a request; what belongs to it stands beside."""

    evento: str
    cuando: str
    solicitudId: int


class Request(TypedDict):
    """All of one request."""

    procesoId: str
    loteId: str | None
    estado: RequestState
    referencia: str | None
    referenciaUnica: bool
    metadatos: dict[str, str]
    idioma: Language | None
    mensaje: str | None
    creada: str
    vence: str | None
    documento: RequestDocument
    firmantes: list[RequestSigner]
    historia: list[Event]


class Reminded(TypedDict):
    """Who is written to."""

    procesoId: str
    recordados: list[dict[str, Any]]


class BatchMember(TypedDict):
    """One document of a batch, and how it stands."""

    procesoId: str
    solicitudId: int
    referencia: str | None
    documento: dict[str, str]
    estado: RequestState
    motivo: str | None


class BatchProgress(TypedDict):
    """Progress of the preparation of a batch."""

    documentos: int
    examinados: int


class BatchFault(TypedDict):
    """One of the things that are wrong with a refused batch."""

    code: str
    detail: str
    category: str
    field: NotRequired[str]
    part: NotRequired[str]


class BatchListed(TypedDict):
    """A batch, without its documents."""

    loteId: str
    referencia: str | None
    referenciaUnica: bool
    metadatos: dict[str, str]
    idioma: Language | None
    mensaje: str | None
    creado: str
    firmante: dict[str, str | None]
    estado: BatchState
    aperturas: NotRequired[Literal["todas", "muestra", "ninguna"]]
    progreso: BatchProgress
    total: int
    estados: dict[str, int]


class Batch(BatchListed):
    """A batch, with its documents or a page of them."""

    solicitudes: list[BatchMember]
    errors: NotRequired[list[BatchFault]]


class Session(TypedDict):
    """A session of the iframe: hand on `tokenSession` and nothing else."""

    tokenSession: str
    validUntil: str
    sesionId: NotRequired[str]
    solicitudId: NotRequired[int | None]
    loteId: NotRequired[str | None]


class WhyNot(TypedDict):
    """Why somebody cannot sign."""

    codigo: str
    texto: str
    obstaculo: NotRequired[str]
    desde: NotRequired[str]


class SignerState(TypedDict):
    """Whether somebody can sign."""

    cuil: str
    estado: Literal["desconocida", "invitada", "activa", "deshabilitada"]
    puedeFirmar: bool
    motivo: WhyNot | None


class Invited(SignerState):
    """Somebody whom the integrator answers for."""

    personaId: str | None
    enlace: str | None
    enlaceVence: str | None


class Identity(TypedDict):
    """How, by whom and when somebody was identified."""

    metodo: str
    responsable: str
    cuando: str


class DocumentListed(TypedDict):
    """A document that was uploaded."""

    documentoId: str
    nombre: str
    sha256: str
    tamano: int
    paginas: int
    creado: str
    vence: str


class Document(DocumentListed, Inspected):
    """The same, with what is to be known of it."""


class Limit(TypedDict):
    """How much may be called for, and what is left."""

    nombre: str
    maximo: int
    ventana: int
    quedan: int
    renuevaEn: int


class Warned(TypedDict):
    """Something that is amiss."""

    codigo: str
    sobre: str | None
    texto: str


class Diagnosis(TypedDict):
    """How the integrator is set up, and what is wrong with it."""

    entorno: Literal["PREPROD", "PROD"]
    clave: dict[str, Any]
    dominios: list[dict[str, Any]]
    origenesBloqueados: list[dict[str, Any]]
    webhooks: list[dict[str, Any]]
    correo: dict[str, bool]
    puedeResponder: bool
    avisos: list[Warned]


class WebhookEndpoint(TypedDict):
    """An address that is told of what happens."""

    webhookId: str
    url: str
    nombre: str
    eventos: list[str]
    habilitado: bool
    deshabilitado: str | None
    motivo: str | None
    fallaDesde: str | None
    secretoAnteriorHasta: str | None
    creado: str


class WebhookWithSecret(WebhookEndpoint):
    """The same with its secret, which is shown this once."""

    secreto: str


class WebhookChange(TypedDict, total=False):
    """What may be different of a webhook."""

    url: str
    nombre: str
    eventos: list[str]
    habilitado: bool


class Delivery(TypedDict):
    """A message that was sent, or is to be."""

    entregaId: str
    tipo: str
    procesoId: str | None
    solicitudId: int | None
    estado: Literal["pendiente", "entregada", "abandonada", "retirada"]
    intentos: int
    proximoIntento: str | None
    ultimoIntento: dict[str, Any] | None
    creada: str


class DeliveryDetail(Delivery):
    """The same, with its body and each attempt."""

    cuerpo: dict[str, Any]
    historial: list[dict[str, Any]]


class Replayed(TypedDict):
    """What is sent again."""

    reenviadas: int
    siguiente: str | None


class WebhookMessage(TypedDict):
    """What a webhook is sent."""

    type: str
    timestamp: str
    data: dict[str, Any]


class TestSigner(TypedDict):
    """A person of the test mode, ready to sign, with all that they know."""

    personaId: str
    cuil: str
    nombre: str
    email: str
    password: str
    claveFirma: str
    totp: str
    puedeFirmar: bool
    motivo: WhyNot | None
    creado: str


class TestCode(TypedDict):
    """A one-time code, and the seconds that it is good for at least."""

    otp: str
    venceEn: int


class TestMail(TypedDict):
    """A mail to a person of the test mode, which nobody else is sent."""

    correoId: str
    tipo: str
    asunto: str
    texto: str
    html: str
    creado: str
    procesoId: str | None
    enlace: str | None


def _fields(model: Any) -> Iterator[str]:
    """Each field of a model and its type, as `help()` shows them."""
    for name, kind in model.__annotations__.items():
        may_lack = "" if name in model.__required_keys__ else "  (may be left out)"
        told = inspect.formatannotation(kind, __name__).removeprefix("typing.")
        if told.startswith("NotRequired["):
            told = told.removeprefix("NotRequired[").removesuffix("]")
        for module in (f"{__name__}.", "typing."):
            told = told.replace(module, "")
        yield f"    {name}: {told}{may_lack}"


for _model in [each for each in globals().values() if is_typeddict(each)]:
    # `help()` shows a TypedDict's own text, and of its fields nothing.
    if _model.__doc__:
        _model.__doc__ = "\n".join((_model.__doc__, "", "Fields:", *_fields(_model)))
del _model
