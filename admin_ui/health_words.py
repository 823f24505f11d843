"""What the page of health says for values of its facts, as `admin_ui.words` does."""

from typing import Final

from babel.numbers import format_decimal, format_percent

from admin_ui import words
from admin_ui.words import N_, say
from appliance.operations.health import words as health
from appliance.operations.health.report import HealthItem
from appliance.operations.metrics.verdicts import State

STATES: Final = {state.value: text for state, text in health.STATES.items()}
SECTIONS: Final = {
    "parts": N_("Parts"),
    "waiting": N_("What waits"),
    "delivery": N_("What has to reach somebody"),
    "published": N_("Published by the CA"),
    "ground": N_("What everything stands on"),
    "certificates": N_("Days that certificates have left"),
    "tsas": N_("Timestamps"),
    "status": N_("Outside CAs"),
    "workers": N_("Processes"),
    "tokens": N_("Sessions with the HSM"),
    "pools": N_("Pools"),
}
"""Headings, in their order."""
TITLES: Final = health.TITLES
"""What is wrong, by alert."""
REMEDIES: Final = health.REMEDIES
"""What to do first, by the alert whose section tells the rest."""
MORE_ROLES: Final = {"sandbox": words.PARTS["sandbox"]}
"""Roles that give the record no sign of life: their figures alone tell of them."""
GROUNDS: Final = {
    "database": words.PARTS["database"],
    "redis": "Redis",
    "disk": N_("Room for documents"),
    "clock": words.PARTS["clock"],
}
TSAS: Final = {"internal": N_("The installation's own")}
STATUSES: Final = {
    "ocsp": N_("OCSP responders"),
    "crl": N_("Revocation lists"),
}
TOKENS: Final = {"firma": N_("Signers' keys"), "pki": N_("Keys of the internal CA")}
POOLS: Final = {
    "connections": N_("Connections of clients"),
    "body_bytes": N_("Memory for what clients send"),
    "database": N_("Connections to the database"),
    "database_write": N_("Writers to the database"),
    "database_turns": N_("Turns at the database"),
    "database_write_turns": N_("Turns to write to the database"),
    "signing_calls": N_("Calls that sign a document"),
    "signing_passwords": N_("Checks of signing passwords"),
    "other_passwords": N_("Checks of other passwords"),
    "tries": N_("Sign-ins and codes being recorded"),
    "sandbox": N_("Jobs sent to the sandbox"),
    "sandbox_jobs": N_("Jobs that run in the sandbox"),
    "pictures": N_("Pages being drawn"),
    "tsa": N_("Questions to the own TSA"),
}
DELIVERIES: Final = {
    "webhooks": N_("Webhooks that get nothing"),
    "mails": N_("Mails that reach nobody"),
    "signers": N_("Signers with a revoked certificate and a request that waits"),
}
OVERALL: Final = {
    State.GOOD: N_("Everything that can be seen from here works."),
    State.UNKNOWN: N_("Everything that can be seen from here works."),
    State.ATTENTION: N_("Something needs attention."),
    State.BAD: N_("Something is not working."),
}
"""The whole installation in a sentence, by its worst state."""
_LITTLE_S: Final = 1


def seconds(value: float) -> str:
    """Say a time, in milliseconds where it is short.

    Args:
        value: in seconds.
    """
    if value < _LITTLE_S:
        return f"{format_decimal(round(value * 1000), locale=words.lang())} ms"
    return f"{format_decimal(value, '#,##0.0', locale=words.lang())} s"


def percent(value: float) -> str:
    """Say a share.

    Args:
        value: of 1.
    """
    return format_percent(value, locale=words.lang())


def title(item: HealthItem) -> str:
    """Say what is wrong.

    Args:
        item: a trouble.
    """
    if item.code:
        return say(words.PARTS.get(item.name, item.name))
    return say(health.title(item))


def next_step(item: HealthItem) -> str:
    """Say what to do first.

    Args:
        item: a trouble.
    """
    if item.code in words.HEALTH:
        return say(words.HEALTH[item.code])
    if item.code:
        return words.reason(item.code)
    if item.section == "waiting" and item.name in words.QUEUES:
        return say(words.QUEUES[item.name][1])
    return say(health.remedy(item))


def subject(item: HealthItem) -> str:
    """Say which one it is, where there are several.

    Args:
        item: a trouble.
    """
    if item.section == "waiting" and item.name in words.QUEUES:
        return say(words.QUEUES[item.name][0])
    if item.section == "tsas":
        name = say(TSAS.get(item.name, item.name))
        return f"{name} {item.subject}".strip()
    return item.subject
