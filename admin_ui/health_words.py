"""What the page of health says for values of its facts, as `admin_ui.words` does."""

from typing import Final

from babel.numbers import format_decimal, format_percent

from admin_ui import words
from admin_ui.words import N_

STATES: Final = {
    "good": N_("Fine"),
    "wait": N_("Attention"),
    "bad": N_("Bad"),
    "quiet": N_("Not known"),
}
SECTIONS: Final = {
    "parts": N_("Parts"),
    "waiting": N_("What waits"),
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
_PKI: Final = N_(
    "A signing worker renews it when the scheduled tasks ask: see that both run, and "
    "that the pki token is ready."
)
REMEDIES: Final = {
    "RubricaFiguresAway": N_(
        "It does not respond: check that rubrica-metrics runs there, and that this "
        "console can reach it."
    ),
    "RubricaRoleDown": N_(
        "It no longer hands over figures: check whether it runs on that host, "
        "and start it."
    ),
    "RubricaFiguresRefused": N_(
        "Its figures cannot be read, or not all: restart it if its version is another "
        "one."
    ),
    "RubricaVersionsDiffer": N_(
        "An upgrade is under way or did not finish: restart whatever runs the earlier "
        "version."
    ),
    "RubricaEventLoopLags": N_("It is slow to respond: the host lacks CPU or memory."),
    "RubricaDescriptorsRunOut": N_(
        "It has nearly all the files and connections open that it may have."
    ),
    "RubricaQueueWaits": words.QUEUES["activations"][1],
    "RubricaRedisAway": N_(
        "Start Redis: until then signing takes a little longer, and nothing is lost."
    ),
    "RubricaHsmUnavailable": words.HSM_REMEDIES["unavailable"],
    "RubricaHsmPinRefused": words.HSM_REMEDIES["pin"],
    "RubricaHsmFaults": N_(
        "Calls to the HSM failed a short while ago: see the worker's log."
    ),
    "RubricaTsaFails": N_(
        "Its last answer was no good: check the network, the proxy and its "
        "credentials. What is waiting will finish by itself."
    ),
    "RubricaOutsideStatusFails": N_(
        "No outside CA responds: check that the scheduled tasks can reach the network."
    ),
    "RubricaCrlOld": _PKI,
    "RubricaOcspOld": _PKI,
    "RubricaCertificateEnds": N_("It has to be renewed: see Certificates."),
    "RubricaSignersEnd": N_("It was not renewed by itself: see Certificates."),
    "RubricaLevelsBehind": N_("See above what they wait for."),
    "RubricaDatabaseAway": N_(
        "The scheduled tasks get no answer: check that PostgreSQL is running, and its "
        "network."
    ),
    "RubricaClockOff": N_("Mend the time synchronisation of that host."),
    "RubricaDiskFull": N_("Make room on the documents' disk."),
    "RubricaBackupOld": N_(
        "On the host that makes backups, check that their timer runs and how the "
        "last one ended."
    ),
    "RubricaAuditWrong": N_(
        "Run rubrica audit verify, which names each broken chain and each unexplained "
        "fact: someone may have written to the database."
    ),
    "RubricaPoolFull": N_(
        "It is full, or turned someone away a short while ago: check whether it "
        "is one integrator or all of them."
    ),
}
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
    "sandbox": N_("Jobs sent to the sandbox"),
    "sandbox_jobs": N_("Jobs that run in the sandbox"),
    "pictures": N_("Pages being drawn"),
    "tsa": N_("Questions to the own TSA"),
}
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
