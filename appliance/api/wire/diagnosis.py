"""The words of a diagnosis, out.

Source: docs/integration.md "What is wrong".
"""

from collections.abc import Mapping
from typing import Final

from appliance.api.wire import backend_answers, representations
from appliance.domain.vocab import Environment
from appliance.integration.diagnosis import Amiss, Diagnosis
from appliance.web import i18n

SENTENCES: Final[Mapping[Amiss, str]] = {
    Amiss.KEY_FLAGGED: "This key was seen in an address or came from a browser, where "
    "others can read it: have another one made, and this one revoked.",
    Amiss.KEY_ENDS: "This key ends soon: have another one made.",
    Amiss.NO_DOMAIN: "No origin is registered, so no page may show the iframe.",
    Amiss.DOMAIN_UNSEEN: "No page of this origin has shown the iframe yet.",
    Amiss.ORIGIN_BLOCKED: "A page of this origin wanted to show the iframe, and the "
    "origin is not registered.",
    Amiss.WEBHOOK_OFF: "This webhook is off: nothing is sent to it.",
    Amiss.WEBHOOK_FAILING: "What is sent to this webhook does not arrive.",
    Amiss.NO_VOUCH: "The integrator may not answer for people yet; an administrator "
    "gives it that right.",
}


def told(
    of: Diagnosis, environment: Environment, lang: str
) -> backend_answers.DiagnosisTold:
    """How an integrator is set up, and what is amiss.

    Args:
        of: what was found.
        environment: of this installation.
        lang: of the sentences.
    """
    return {
        "entorno": environment.value,
        "clave": _key(of),
        "dominios": [
            {
                "origen": domain.origin,
                "visto": representations.maybe_instant(domain.seen),
            }
            for domain in of.domains
        ],
        "origenesBloqueados": [
            {
                "origen": origin.origin,
                "veces": origin.count,
                "ultima": representations.instant(origin.last),
            }
            for origin in of.blocked
        ],
        "webhooks": [
            {
                "webhookId": webhook.id,
                "url": webhook.url,
                "habilitado": webhook.disabled is None,
                "fallaDesde": representations.maybe_instant(webhook.failing_since),
                "pendientes": of.pending.get(webhook.id, 0),
            }
            for webhook in of.webhooks
        ],
        "correo": {"servidor": of.has_mail, "firmantes": of.mails_signers},
        "puedeResponder": of.may_vouch,
        "avisos": [
            {
                "codigo": found.what.value,
                "sobre": found.about or None,
                "texto": i18n.translate(lang, SENTENCES[found.what]),
            }
            for found in of.found
        ],
    }


def _key(of: Diagnosis) -> backend_answers.KeyShown:
    key = of.key
    return {
        "claveId": key.id,
        "nombre": key.label,
        "alcances": [scope.value for scope in key.scopes],
        "redes": list(key.networks),
        "vence": representations.maybe_instant(of.key_ends),
        "expuesta": representations.maybe_instant(key.flagged),
    }
