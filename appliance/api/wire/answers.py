"""What answers have: their members, and what each may be.

mypy holds the functions that build them to it, and the OpenAPI document is made of it.
What calls have is beside what reads it (`fields.Body`).
"""

from collections.abc import Iterable
from typing import Annotated, Final, Literal, NotRequired, TypeAlias

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from appliance.domain.documents.inspected import Damage, FindingKind
from appliance.domain.errors import ErrorCode
from appliance.domain.ids import MAX_REQUEST_ID
from appliance.domain.vocab import (
    CuilDisplay,
    FontName,
    FontStyle,
    RequestState,
    Restriction,
    SignatureLevel,
)


def one_of(words: Iterable[str]) -> WithJsonSchema:
    """A string of a closed list.

    Args:
        words: the list.
    """
    return WithJsonSchema({"type": "string", "enum": [str(word) for word in words]})


def string(**keywords: str | int) -> WithJsonSchema:
    """A string.

    Args:
        keywords: of JSON Schema: what it may be.
    """
    return WithJsonSchema({"type": "string", **keywords})


CUIL: Final = "^(?:20|23|24|27)-[0-9]{8}-[0-9]$"
Id: TypeAlias = Annotated[str, string(format="uuid")]
Sha256: TypeAlias = Annotated[str, string(pattern="^[0-9a-f]{64}$")]
Instant: TypeAlias = Annotated[str, string(format="date-time")]
Cuil: TypeAlias = Annotated[str, string(pattern=CUIL)]
Address: TypeAlias = Annotated[str, string(format="uri")]
Base64: TypeAlias = Annotated[str, string(contentEncoding="base64")]
Level: TypeAlias = Annotated[str, one_of(SignatureLevel)]
State: TypeAlias = Annotated[str, one_of(RequestState)]
RequestNumber: TypeAlias = Annotated[int, Field(ge=1, le=MAX_REQUEST_ID)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Points: TypeAlias = Annotated[float, WithJsonSchema({"type": "number"})]
Language: TypeAlias = Annotated[str, one_of(("es", "en"))]


class Told(TypedDict):
    """Something that people are told of a document."""

    codigo: Annotated[str, one_of(FindingKind)]
    texto: str


class ToldDamage(TypedDict):
    """What was wrong with a file."""

    codigo: Annotated[str, one_of(Damage)]
    texto: str


class RepairDone(TypedDict):
    """Where a repaired copy comes from."""

    sha256Original: Sha256
    danos: list[ToldDamage]


class SignatureField(TypedDict):
    """An empty signature field of a document."""

    nombre: str
    pagina: int | None
    firmable: bool


class PageSize(TypedDict):
    """A page as a reader sees it, in points."""

    ancho: Points
    alto: Points


class DocumentFacts(TypedDict):
    """What is to be known of a document before it is signed."""

    firmas: Count
    certificacion: Annotated[int, Field(ge=1, le=3)] | None
    campos: list[SignatureField]
    medidas: list[PageSize]
    avisos: list[Told]
    reparacion: RepairDone | None


class Version(TypedDict):
    """One version of a signed document."""

    version: Annotated[int, Field(ge=1)]
    nivel: Level
    sha256: Sha256
    tamano: Count
    creada: Instant


class SignatureTerms(TypedDict):
    """Terms of a signature: what it says and permits besides the document."""

    motivo: str | None
    lugar: str | None
    restriccion: Annotated[str, one_of(Restriction)]
    visible: bool
    campo: str | None
    texto: list[str]


class AskedTerms(SignatureTerms):
    """The terms that whoever asked for the signature set."""

    fijo: bool


class SignerRequest(TypedDict):
    """A signature request as its signer sees it in the list."""

    solicitudId: RequestNumber
    documento: str
    estado: State
    paginas: Count
    tamano: Count
    sha256: Sha256
    creada: Instant
    vence: Instant | None
    integrador: str
    loteId: Id | None


class RejectedRequest(SignerRequest, DocumentFacts):
    """One signature request, with what to know of its document."""

    motivo: str | None
    sello: AskedTerms
    nivel: Level | None
    versiones: list[Version]


class SignerRequestDetail(RejectedRequest):
    """All of one signature request."""

    mensaje: str | None


class SignedAnswer(TypedDict):
    """A document that is signed, and where it is downloaded."""

    status: Literal["success"]
    documentoFirmado: Address
    solicitudId: RequestNumber
    sha256: Sha256
    nivel: Level


class StillSigning(TypedDict):
    """A signature that goes on."""

    status: Literal["en_proceso"]
    solicitudId: RequestNumber


class StampBox(TypedDict):
    """Where a stamp lies on its page, in points from the top left as seen."""

    x: Points
    y: Points
    ancho: Points
    alto: Points
    texto: list[str]
    tamanoLetra: Points


class PreviewAnswer(TypedDict):
    """The page with the stamp as it would lie."""

    pagina: Annotated[int, Field(ge=1)]
    sello: StampBox | None
    firma: SignatureTerms
    dpi: int
    png: Base64


class SignatureLook(TypedDict):
    """The look and place that whoever asked for a signature wants: what was said."""

    fontColor: NotRequired[str]
    fontName: NotRequired[Annotated[str, one_of(FontName)]]
    fontSize: NotRequired[int]
    fontStyle: NotRequired[Annotated[str, one_of(FontStyle)]]
    page: NotRequired[int]
    x: NotRequired[int]
    y: NotRequired[int]
    zoomPercent: NotRequired[int]
    restriccion: NotRequired[Annotated[str, one_of(Restriction)]]
    visible: NotRequired[bool]
    campo: NotRequired[str]
    motivo: NotRequired[str]
    lugar: NotRequired[str]
    cuil: NotRequired[Annotated[str, one_of(CuilDisplay)]]
    qr: NotRequired[bool]
    logo: NotRequired[bool]
    fijo: NotRequired[bool]


class LoginAnswer(TypedDict):
    """What the code is sent with."""

    loginToken: str
    factores: list[Literal["totp"]]
    expiresIn: Count


class TokenAnswer(TypedDict):
    """An access token."""

    access_token: str
    token_type: Literal["Bearer"]
    expires_in: Count


class SessionAnswer(TypedDict):
    """A session of the iframe."""

    tokenSession: str
    validUntil: Instant


class Credential(TypedDict):
    """A signer's key, with the certificate that it has now."""

    id: Id
    estado: Annotated[
        str,
        one_of(("vigente", "vencida", "reemplazada", "en_revocacion", "revocada")),
    ]
    modo: Annotated[str, one_of(("envuelta", "residente"))]
    algoritmo: str
    titular: str
    cuil: Annotated[str, string(pattern="^[0-9]{11}$")]
    emisor: str
    ca: Literal["interna", "externa"]
    numeroDeSerie: Annotated[str, string(pattern="^[0-9a-f]+$")]
    desde: Instant
    hasta: Instant
    acreditacion: Annotated[
        str, one_of(("integrador", "oficial", "externa", "demo", "prueba"))
    ]
    huella: Sha256
    revocada: Instant | None
    motivo: (
        Annotated[
            str,
            one_of(
                (
                    "sin_especificar",
                    "clave_comprometida",
                    "cambio_de_datos",
                    "reemplazo",
                    "cese_de_uso",
                )
            ),
        ]
        | None
    )


class PinAnswer(TypedDict):
    """A revocation PIN, shown this once."""

    pin: str


class PublicKey(TypedDict):
    """A key that signs access tokens (RFC 7517)."""

    kty: Literal["EC"]
    crv: Literal["P-256"]
    x: str
    y: str
    kid: str
    use: Literal["sig"]
    alg: Literal["ES256"]


class PublicKeys(TypedDict):
    """A JWK set."""

    keys: list[PublicKey]


class Alive(TypedDict):
    """This process answers."""

    status: Literal["ok"]


class Checks(TypedDict, total=False):
    """Each part with `ok`, or a code of what is wrong."""

    database: str
    documents: str
    sandbox: str
    hsm: str
    clock: str


class Ready(TypedDict):
    """Whether everything that signing needs works."""

    status: Literal["ok"]
    checks: Checks


class Unready(TypedDict):
    """What of it does not."""

    status: Literal["unready"]
    checks: Checks


class Box(TypedDict):
    """A box on a page, in points from the top left as seen."""

    x: Points
    y: Points
    width: Points
    height: Points


class ProblemMembers(TypedDict, total=False):
    """What some errors tell besides."""

    field: str
    fieldType: Annotated[
        str, one_of(("string", "integer", "boolean", "array", "object"))
    ]
    allowed: list[str]
    fields: list[str]
    part: str
    retryAfter: Count
    attemptsLeft: Count
    codeUsed: bool
    nextCodeIn: Count
    stamp: Box
    page: Box
    avisos: list[Annotated[str, one_of(FindingKind)]]
    procesoId: Id
    loteId: Id
    certificado: Count
    obstacle: Annotated[
        str, one_of(("disabled", "locked", "revoked", "expired", "missing"))
    ]
    since: Instant
    documento: str


class Fault(ProblemMembers):
    """One of several things that are wrong."""

    detail: str
    code: Annotated[str, one_of(ErrorCode)]
    category: Annotated[
        str, one_of(("retry", "terminal", "new_session", "fix_request"))
    ]


Texts: TypeAlias = Annotated[
    dict[str, str],
    WithJsonSchema(
        {
            "type": "object",
            "maxProperties": 20,
            "propertyNames": {"maxLength": 40},
            "additionalProperties": {"type": "string", "maxLength": 500},
        }
    ),
]
"""`metadatos`."""


class Versioned(TypedDict, total=False):
    """Members that were to be changed, as they were sent or as they are stored."""

    url: str
    nombre: str | None
    eventos: list[str]
    habilitado: bool
    referencia: str | None
    referenciaUnica: bool | None
    metadatos: Texts | None
    idioma: str | None
    mensaje: str | None
    vence: str | None
    estado: str


class Problem(ProblemMembers):
    """What went wrong (RFC 9457)."""

    type: Annotated[str, string(pattern="^urn:rubrica:error:[A-Z0-9_]+$")]
    title: str
    status: Annotated[int, Field(ge=400, le=599)]
    detail: str
    code: Annotated[str, one_of(ErrorCode)]
    category: Annotated[
        str, one_of(("retry", "terminal", "new_session", "fix_request"))
    ]
    requestId: Annotated[str, string(pattern="^[0-9a-f]{24}$")]
    solicitudId: NotRequired[RequestNumber]
    errors: NotRequired[list[Fault]]
    yours: NotRequired[Versioned]
    current: NotRequired[Versioned]
    version: NotRequired[Annotated[str, string(pattern='^"[0-9a-f]{64}"$')]]


class BatchProblem(ProblemMembers):
    """Why one request of a batch is not signed."""

    status: Literal["error"]
    solicitudId: RequestNumber
    detail: str
    code: Annotated[str, one_of(ErrorCode)]
    category: Annotated[
        str, one_of(("retry", "terminal", "new_session", "fix_request"))
    ]


BatchStatus: TypeAlias = Literal["success", "parcial", "error", "en_proceso"]


class BatchKept(TypedDict, total=False):
    """Where it is told how a command for several requests goes on."""

    loteId: Annotated[str, string(pattern="^[0-9a-f]{32}$")]


class BatchAnswer(BatchKept):
    """How a command for several requests stands."""

    status: BatchStatus
    total: Count
    firmadas: Count
    fallidas: Count
    enProceso: Count
    resultados: list[SignedAnswer | BatchProblem | StillSigning]
