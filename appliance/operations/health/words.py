"""Words of health items, in English: the console says them in Spanish."""

from collections.abc import Mapping
from typing import Final

from appliance.operations.health.report import UNREADABLE, HealthItem
from appliance.operations.metrics.verdicts import State


def N_(text: str) -> str:  # noqa: N802 (gettext's name for a msgid said later)
    """Mark a msgid of the console's catalogue.

    Args:
        text: the msgid.
    """
    return text


_PKI: Final = N_(
    "A signing worker renews it when the scheduled tasks ask: see that both run, and "
    "that the pki token is ready."
)
STATES: Final[Mapping[State, str]] = {
    State.GOOD: N_("Fine"),
    State.ATTENTION: N_("Attention"),
    State.BAD: N_("Bad"),
    State.UNKNOWN: N_("Not known"),
}
TITLES: Final[Mapping[str, str]] = {
    "RubricaFiguresAway": N_("A host shows no figures"),
    "RubricaRoleDown": N_("A process is not running"),
    "RubricaFiguresRefused": N_("Figures of a process cannot be read"),
    "RubricaVersionsDiffer": N_("Several versions are running"),
    "RubricaEventLoopLags": N_("A process is slow to respond"),
    "RubricaDescriptorsRunOut": N_("A process is running out of files to open"),
    "RubricaQueueWaits": N_("Work has been waiting for too long"),
    "RubricaRedisAway": N_("Redis does not respond"),
    "RubricaHsmUnavailable": N_("A worker cannot use the HSM"),
    "RubricaHsmPinRefused": N_("The HSM refused its PIN"),
    "RubricaHsmFaults": N_("Calls to the HSM fail"),
    "RubricaTsaFails": N_("A timestamping authority does not respond"),
    "RubricaOutsideStatusFails": N_("No outside CA responds"),
    "RubricaCrlOld": N_("A revocation list was not renewed"),
    "RubricaOcspOld": N_("OCSP answers were not renewed"),
    "RubricaCertificateEnds": N_("A certificate of the installation ends soon"),
    "RubricaSignersEnd": N_("A signer's certificate ends soon"),
    "RubricaLevelsBehind": N_("Signed documents are waiting for their level"),
    "RubricaDatabaseAway": N_("The database does not respond"),
    "RubricaClockOff": N_("The clock is off"),
    "RubricaDiskFull": N_("The documents' disk is nearly full"),
    "RubricaBackupOld": N_("There is no recent backup"),
    "RubricaAuditWrong": N_("The audit does not add up"),
    "RubricaPoolFull": N_("A limit is turning callers away"),
    "RubricaWebhooksFail": N_("Webhooks are not being delivered"),
    "RubricaMailFails": N_("Mail is not being delivered"),
    "RubricaSignersRevoked": N_("Signers who cannot sign have requests waiting"),
    "RubricaSoftwareHsm": N_("Production keys are in a software token"),
    "RubricaDocumentDamaged": N_("A stored document is missing or damaged"),
}
"""What is wrong, by alert."""
REMEDIES: Final[Mapping[str, str]] = {
    "RubricaFiguresAway": N_(
        "It does not respond: check that rubrica-metrics runs there, and that this "
        "console can reach it."
    ),
    "RubricaRoleDown": N_(
        "It gives no sign of life: look at its journal on that host, and restart it."
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
    "RubricaQueueWaits": N_(
        "See below whether signing workers run and have their HSM."
    ),
    "RubricaRedisAway": N_(
        "Start Redis, or restart it if it hangs: until then signing takes a little "
        "longer, and nothing is lost."
    ),
    "RubricaHsmUnavailable": N_(
        "Bring the HSM or its network back: it reconnects by itself."
    ),
    "RubricaHsmPinRefused": N_(
        "Correct its PIN and restart the worker: it does not try again."
    ),
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
    "RubricaWebhooksFail": N_(
        "Each integrator's Webhooks page says why its server takes nothing. Tell the "
        "integrator; what waits is sent again by itself, and a webhook that was "
        "turned off has to be turned on again."
    ),
    "RubricaMailFails": N_(
        "The person's or request's page shows what the mail server answered. Run "
        "rubrica mail test, and correct the server or the address."
    ),
    "RubricaSignersRevoked": N_(
        "Their certificate is revoked: invite them to enrol again, or cancel the "
        "request and ask somebody else."
    ),
    "RubricaSoftwareHsm": N_(
        "Whoever has its files and its PIN has every key on it. Move the keys to a "
        "hardware HSM: docs/hsm.md."
    ),
    "RubricaDocumentDamaged": N_(
        "The log names it at document.damaged: bring it back from a backup. "
        "rubrica documents recheck looks through all signed ones."
    ),
}
"""What to do first, by the alert whose section of docs/alerts.md has the rest."""
_UNREADABLE: Final = (
    N_("Not looked at: figures that cannot be read"),
    N_("Its user needs the group rubrica-metrics: see docs/metrics.md."),
)
"""Title and remedy of roles whose figures this process may not read."""


def title(item: HealthItem) -> str:
    """Return what is wrong, as a msgid.

    Args:
        item: a trouble with an alert.
    """
    return _UNREADABLE[0] if item.name == UNREADABLE else TITLES[item.verdict.alert]


def remedy(item: HealthItem) -> str:
    """Return what to do first, as a msgid.

    Args:
        item: a trouble with an alert.
    """
    return _UNREADABLE[1] if item.name == UNREADABLE else REMEDIES[item.verdict.alert]
