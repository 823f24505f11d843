"""Which timestamps a later revocation of their TSA's certificate voids.

A TSA that was merely closed leaves what it stamped before; one whose key somebody
else may have leaves only what is known, by a later timestamp that counts, to have
existed before: whoever has the key can write any time. Runs in a confined job only.

Source: RFC 3161, 4; ETSI EN 319 102-1, 5.2.7 and 5.6.2.2.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from asn1crypto import x509
from pyhanko.sign.validation.status import RevocationDetails

from appliance.domain.clock import SystemClock
from appliance.domain.pki.certificates import TSA_REASONS
from appliance.domain.pki.timestamps import RevokedTsa
from appliance.domain.vocab import RevocationReason
from worker.sandbox.verify.certificate_twins import fingerprints

# Told of no reason, nobody knows what became of the key.
_SPARING: Final = {
    reason.value
    for reason in TSA_REASONS
    if reason is not RevocationReason.KEY_COMPROMISE
}
_NO_REASON: Final = "no reason told"


class RevokedTsas:
    """What is known of revocations, of the installation's record and of the file.

    Args:
        known: by the record.
    """

    def __init__(self, known: Sequence[RevokedTsa]) -> None:
        self._known: defaultdict[str, list[RevokedTsa]] = defaultdict(list)
        for each in known:
            self._known[each.certificate].append(each)

    def why_void(
        self,
        certificate: x509.Certificate,
        at: datetime,
        known: datetime | None,
        told: Iterable[RevocationDetails],
    ) -> str:
        """Why a timestamp does not count, in words; empty if it does.

        Args:
            certificate: of its TSA.
            at: what it says.
            known: when it is known to have existed; None: now.
            told: what the file's own data say of its TSA, and of those above it.
        """
        known_as = fingerprints(certificate)
        found = [one for each in known_as for one in self._known.get(each, ())]
        for one in told:
            reason = str(one.revocation_reason.native or "")
            found.append(
                RevokedTsa(known_as[0], one.revocation_date, _NAMES.get(reason, reason))
            )
        for each in found:
            since = at if each.reason in _SPARING else known or SystemClock().now()
            if since >= each.at:
                return (
                    f"its certificate was revoked at {each.at:%Y-%m-%d %H:%M:%S} UTC"
                    f" ({each.reason or _NO_REASON})"
                )
        return ""


_NAMES: Final = {
    "key_compromise": "keyCompromise",
    "ca_compromise": "cACompromise",
    "affiliation_changed": "affiliationChanged",
    "superseded": "superseded",
    "cessation_of_operation": "cessationOfOperation",
    "certificate_hold": "certificateHold",
    "privilege_withdrawn": "privilegeWithdrawn",
    "aa_compromise": "aACompromise",
    # What asn1crypto calls a reason that is not there, too.
    "unspecified": "",
}
"""CRLReasons by asn1crypto's names. Source: RFC 5280, 5.3.1."""
