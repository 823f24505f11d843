"""What fields and parameters mean, by their names, which mean the same everywhere.

Where one means something else in one schema, that stands apart. Docs tell more.
"""

from collections.abc import Mapping
from typing import Any, Final

from appliance.web import i18n

MEANINGS: Final[Mapping[str, str]] = {
    # Who.
    "cuil": "CUIL of the person, with or without dashes",
    "personaId": "Id of the person, as an earlier answer gave it",
    "email": "E-mail address that the person enrolled with",
    "usuario": "CUIL or e-mail address to sign in with",
    "password": "Password; where something is signed, the signing password",
    "credencialId": "Id of the person's key and certificate",
    "cadena": "Certificates of its issuers",
    "nueva": "The new signing password",
    "codigo": "One-time code of six digits, or a code that says why",
    "loginToken": "What the first step of signing in gave",
    "firmante": "Who signs",
    "firmantes": "Who signs, in order",
    "turno": "Turn, from 1; those who share one sign in any order",
    "orden": "Place among the signers, from 1",
    "identidad": "How the person was identified",
    "metodo": "How they were identified",
    "responsable": "Who identified them",
    "enviarInvitacion": "Whether the link to enrol is sent by mail as well",
    "nuevoEnlace": "Whether a new link replaces the one that they have",
    "puedeFirmar": "Whether nothing keeps the person from signing now",
    "obstaculo": "What keeps them from signing",
    "enlace": "Link for the person",
    "enlaceVence": "Until when the link can be used",
    # What is signed.
    "documento": "The document",
    "documentos": "The documents, in the order in which they are signed",
    "documentoId": "Id of a document that was uploaded",
    "reparar": "`false`: refuse a document that would be signed as a corrected copy",
    "archivo": "Name of the part that the document comes in",
    "contenido": "The PDF, in Base64",
    "file": "The PDF",
    "options": "All the rest of the call, as JSON",
    "solicitudId": "Number of the request that one person signs by",
    "solicitudIds": "Numbers of the requests that are signed together",
    "procesoId": "Id of what was asked for, for all its signers",
    "loteId": "Id of the batch",
    "aperturas": "Documents of the batch that the signer opens in the iframe before "
    "signing",
    "solicitudes": "The requests, in order",
    "referencia": "Your own name for it, to find it by",
    "referenciaUnica": "Whether no other of yours may have that reference",
    "metadatos": "Up to 20 texts of your own, kept for you",
    "mensaje": "Message to the signers, of several lines",
    "idioma": "Language of mails to the signers",
    "vence": "Until when",
    "nivel": "PAdES level of the signature",
    "paginas": "Number of pages",
    "tamano": "Size, in bytes",
    "sha256": "SHA-256 of the document, in hexadecimal",
    "sha256Original": "SHA-256 of the file as it came, before it was repaired",
    "firmas": "Signatures that the document has already",
    "certificacion": "What an earlier certification still permits",
    "campos": "Signature fields of the document",
    "medidas": "Size of each page, in points",
    "avisos": "What is to be known, and keeps nothing from being done",
    "reparacion": "How the file was damaged, if it was repaired",
    "versiones": "Signed versions, oldest first",
    "historia": "What became of it, oldest first, the newest 500",
    "estados": "How many are in each state",
    "progreso": "How far a batch is prepared",
    "examinados": "How many documents were examined",
    "total": "How many documents",
    "firmadas": "How many are signed",
    "fallidas": "How many will not be signed",
    "enProceso": "How many are being signed",
    "resultados": "What became of each, in order",
    # Look and place.
    "sello": "Look and place of the signature",
    "page": "Page of the signature, from 1; in `sello` also `ultima`, the last one",
    "x": "Points from the left of the page, as it is read, to the stamp; with `y`",
    "y": "Points from the top of the page, as it is read, to the stamp; with `x`",
    "campo": "Name of a signature field of the document, in place of page and point",
    "firma": "What the signature would say and permit",
    "ancla": "Text of the document that the signature goes below",
    "texto": "Text, for people to read",
    "aparicion": "Which of several texts, in the order of the pages, from 1",
    "dx": "Points that the stamp is moved to the right",
    "dy": "Points that the stamp is moved downwards",
    "fijo": "Whether the signer may not change look and place",
    "visible": "Whether the signature can be seen",
    "zoomPercent": "Size of the stamp, in per cent",
    "fontName": "Font of the stamp",
    "fontSize": "Size of its letters, in points",
    "fontStyle": "Style of its letters",
    "fontColor": "Colour of its letters: a word, or `#RRGGBB`",
    "logo": "Whether the stamp has the integrator's logo",
    "qr": "Whether the stamp has a QR code that leads to the page of the signature",
    "lugar": "Place of signing, for the signature",
    "motivo": "Reason; of a signature, as it says it",
    "restriccion": "What the signature permits afterwards (DocMDP)",
    "ancho": "Width, in points",
    "alto": "Height, in points",
    # When.
    "desde": "From this time on",
    "hasta": "Before this time",
    "cuando": "When",
    "creada": "When it was made",
    "creado": "When it was made",
    # Webhooks and sessions.
    "url": "Where messages are sent, by HTTPS",
    "eventos": "Events that are told; all unless given",
    "habilitado": "Whether messages are sent",
    "deshabilitado": "Since when none are sent",
    "inmediata": "Whether the secret before ends at once, not in a day",
    "webhookId": "Id of the webhook",
    "entregaId": "Id of the message, the same in every attempt",
    "secreto": "Secret that messages are signed with; shown once",
    "secretoAnteriorHasta": "Until when the one before signs as well",
    "fallaDesde": "Since when nothing arrives",
    "intentos": "How often it was tried",
    "historial": "Each attempt",
    "cuerpo": "What was sent",
    "respuesta": "Beginning of what was answered",
    "estadoHttp": "HTTP status of the answer",
    "milisegundos": "How long it took, in milliseconds",
    "ultimoIntento": "The last attempt",
    "proximoIntento": "When it is tried next",
    "pendientes": "Messages that wait to be sent",
    "falla": "What goes wrong, on purpose in test mode",
    "sesionId": "Id of the session, as webhooks name it",
    "tokenSession": "Token of the session, for the iframe",
    "validUntil": "Until when the token can be used",
    # Lists, limits, diagnosis.
    "limite": "Most elements of a page",
    "clave": "The link's key, as it was given; it stands for a token",
    "ordenId": "Id of what was begun",
    "consulta": "The question, in Base64",
    "cursor": "Where a page begins, as `Link` gave it",
    "tipo": "Kind",
    "maximo": "Most in the window",
    "quedan": "How many are left in the window",
    "renuevaEn": "Seconds until the window counts less",
    "ventana": "The window, in seconds",
    "entorno": "`PREPROD` or `PROD`",
    "alcances": "Scopes of the key",
    "redes": "Networks that the key may be used from; none: any",
    "expuesta": "When the key was last seen where others read it",
    "dominios": "Origins whose pages may show the iframe",
    "origenesBloqueados": "Origins whose pages wanted to show it and may not",
    "origen": "Origin of a page",
    "veces": "How often",
    "visto": "When it was last seen",
    "evento": "What happened",
    # Errors.
    "code": "Stable code of the error",
    "category": "What to do about it: try again, mend the call, or give up",
    "errors": "All that is wrong, this error first",
    "errores": "How many things are wrong",
    "field": "Field that is wrong",
    "allowed": "What it may be",
    "retryAfter": "Seconds after which to try again",
    "requestId": "Names the call, for whoever reads the log",
    "yours": "What the call wanted to store",
    "current": "What is stored now",
    "version": "The `ETag` of what is stored now, for `If-Match`",
    "attemptsLeft": "Tries of the password that are left",
    "codeUsed": "The code is right and was used before: each works once",
    "nextCodeIn": "Seconds until the app shows a code that works",
    # Headers.
    "Idempotency-Key": "A key of your own: the same call again makes nothing new",
    "If-Match": "Goes on only if what it is about is as `ETag` gave it",
    "Range": "Part of the file, as `bytes=0-1023`; in any other form, all of it",
    "If-Range": "The `ETag` of the first part; if it is another one now, all of it",
}
"""By name."""
_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            f"{schema}.cuil"
            for schema in (
                "Parameters",
                "SignBatchBody",
                "SignBody",
                "SignSeveralBody",
                "SignatureLook",
                "StampWish",
            )
        ),
        "How much of the signer's CUIL the stamp shows",
    ),
    **dict.fromkeys(
        ("RejectedRequest.sello", "SignerRequestDetail.sello"),
        "What the signature says and permits, if the call leaves it",
    ),
    "AskedTerms.visible": "Whether a page will show the signature",
    "SignatureTerms.visible": "Whether a page will show the signature",
    "AskedTerms.texto": "All of it in words, to be shown before the password",
    "SignatureTerms.texto": "All of it in words, to be shown before the password",
    "Problem.page": "Page that it is about",
    "BatchProblem.page": "Page that it is about",
    "Fault.page": "Page that it is about",
    **dict.fromkeys(
        ("Problem.documento", "BatchProblem.documento", "Fault.documento"),
        "File name of the document that it is about",
    ),
    "OneTimeCode.codigo": "One-time code of six digits",
    "Revocation.motivo": "Why the key is not to be used any more",
    "WhyNot.desde": "Since when",
    "Credential.desde": "Beginning of the certificate's validity",
    "Credential.hasta": "End of the certificate's validity",
    "TextAnchor.texto": "Text to look for, as the page shows it",
    "DiagnosisTold.clave": "The key that asks",
    "KeyShown.nombre": "Name of the key",
    "Webhook.motivo": "Why it was turned off",
    "WebhookWithSecret.motivo": "Why it was turned off",
    "NewSignerForTests.email": "E-mail address, below `prueba.invalid`",
    "VouchBody.email": "E-mail address, which nobody else has",
    "VouchBody.nombre": "Name, as the certificate will have it",
    "VouchBody.idioma": "Language of mails to them",
    "Box.x": "Points from the left edge",
    "Box.y": "Points from the top edge",
    "Signer.motivo": "Why they cannot sign; null if they can",
    "VouchedSigner.motivo": "Why they cannot sign; null if they can",
    "SignerForTests.motivo": "Why they cannot sign; null if they can",
}
_NOT: Final = frozenset({"PublicKey.x", "PublicKey.y"})
"""By name of the schema, where a name means something else."""


def meaning_of(name: str, schema: str, lang: str) -> str | None:
    """What a field means, for people; None where its name says it.

    Args:
        name: of the field or parameter.
        schema: the one that it is in; empty: it is a parameter.
        lang: `es` or `en`.
    """
    place = f"{schema}.{name}"
    if place in _NOT:
        return None
    said = _ELSEWHERE.get(place) or MEANINGS.get(name)
    # A plain string: JSON Schema validators take no other.
    return None if said is None else str(i18n.translate(lang, said))


def with_meanings(schema: Mapping[str, Any], name: str, lang: str) -> dict[str, Any]:
    """A schema whose members say what they mean.

    Args:
        schema: of an object.
        name: its name.
        lang: `es` or `en`.
    """
    if not isinstance(members := schema.get("properties"), Mapping):
        return {**schema}
    told = {
        each: {**member, "description": said}
        if (said := meaning_of(each, name, lang)) is not None
        else member
        for each, member in members.items()
    }
    return {**schema, "properties": told}
