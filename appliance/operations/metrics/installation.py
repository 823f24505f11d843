"""Verdicts of what the record tells of an installation as a whole.

Bounds and alerts as in `appliance.operations.metrics.verdicts`.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from appliance.console.health_store import MailFaults, WebhookFaults
from appliance.console.installation_state import Publication, Queue
from appliance.domain.audit.verification import AuditCheck
from appliance.domain.pki.trust_store import ExpiringKind
from appliance.domain.requests.levels import UpkeepCount
from appliance.domain.vocab import Environment
from appliance.operations.metrics.verdicts import (
    GOOD,
    UNKNOWN,
    State,
    Verdict,
    alarm,
)

BACKUP: Final = timedelta(hours=36)
ENDS: Final = timedelta(days=30)
ENDS_OF: Final = {
    ExpiringKind.OCSP: timedelta(days=20),
    ExpiringKind.SIGNER: timedelta(days=3),
}
"""Those that are renewed by themselves before."""


def of_queue(queue: Queue) -> Verdict:
    """How a queue stands.

    Args:
        queue: as it was looked at.
    """
    return alarm("RubricaQueueWaits") if queue.is_late else GOOD


def of_publication(publication: Publication) -> Verdict:
    """Whether what verifiers ask for is made anew in time.

    Args:
        publication: a CRL, or the OCSP answer that ends first.
    """
    if not publication.is_old:
        return GOOD
    is_ocsp = publication.name == "ocsp"
    return alarm("RubricaOcspOld" if is_ocsp else "RubricaCrlOld")


def of_levels(overdue: Iterable[UpkeepCount]) -> Verdict:
    """Whether documents wait too long for their level.

    Args:
        overdue: those that do.
    """
    return alarm("RubricaLevelsBehind") if any(overdue) else GOOD


def of_backup(made: datetime | None, now: datetime, *, trial: bool) -> Verdict | None:
    """Whether the last backup is too old; None where nobody needs one.

    Args:
        made: when; None: there never was one.
        now: the present time.
        trial: whether the installation is one.
    """
    if made is None and trial:
        return None
    is_old = made is None or now - made > BACKUP
    return alarm("RubricaBackupOld") if is_old else GOOD


def of_audit(outcome: AuditCheck | None) -> Verdict | None:
    """True where the last check of the audit found something; None: there was none.

    Args:
        outcome: of `rubrica audit verify`.
    """
    if outcome is None:
        return None
    return GOOD if outcome.is_whole else alarm("RubricaAuditWrong")


def of_certificate(kind: ExpiringKind, end: datetime, now: datetime) -> Verdict:
    """How near a certificate's end is.

    Args:
        kind: what it is of.
        end: of the first of that kind to end.
        now: the present time.
    """
    is_signer = kind is ExpiringKind.SIGNER
    alert = alarm("RubricaSignersEnd" if is_signer else "RubricaCertificateEnds")
    if end <= now:
        return Verdict(State.BAD, alert.alert)
    return alert if end - now < ENDS_OF.get(kind, ENDS) else GOOD


def of_webhooks(faults: WebhookFaults) -> Verdict:
    """State of webhooks: attention while an endpoint gets nothing.

    Args:
        faults: as counted.
    """
    return alarm("RubricaWebhooksFail") if faults.count else GOOD


def of_mails(faults: MailFaults) -> Verdict:
    """State of mail: attention while something reaches nobody.

    Args:
        faults: as counted.
    """
    return alarm("RubricaMailFails") if faults.count else GOOD


def of_revoked_signers(count: int) -> Verdict:
    """State of waiting requests: attention while a signer's certificate is revoked.

    Args:
        count: signers.
    """
    return alarm("RubricaSignersRevoked") if count else GOOD


def of_hsm_kind(
    environment: Environment, *, is_software: bool | None, is_weak: bool | None
) -> Verdict:
    """State of the kind of HSM: attention for a software token in PROD.

    Args:
        environment: of the installation.
        is_software: by the HSM's profile; None: no profile can be read here.
        is_weak: signing workers keep keys of PROD in a software token, by their
            figures; None: none are in reach. The profile counts only then: a console
            may have another one than the signing hosts.
    """
    if is_weak is None:
        if is_software is None:
            return UNKNOWN
        is_weak = is_software and environment is Environment.PROD
    return alarm("RubricaSoftwareHsm") if is_weak else GOOD
