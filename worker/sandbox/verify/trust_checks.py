"""Answers on trust, revocation and time, from what pyHanko found of a chain.

Source: ETSI EN 319 102-1, 5.1.3 (which causes fail a signature, and which leave it
undetermined) and 5.6 (time against revocation).
"""

from datetime import datetime
from typing import Final

from pyhanko.sign.ades.report import AdESFailure, AdESIndeterminate, AdESSubIndic
from pyhanko_certvalidator.path import ValidationPath

from appliance.domain.clock import SystemClock
from appliance.domain.documents.verification import (
    YES,
    Check,
    CheckCode,
    refuted,
    revoked,
    unchecked,
)
from worker.sandbox.verify.proof_of_existence import ChainStatus, Checked, StampState

_NO_CHAIN: Final = unchecked(
    CheckCode.NO_CERTIFICATE_CHAIN_FOUND,
    "the signer's certificate is of an authority that is not trusted here",
)
_NO_REVOCATION_DATA: Final = unchecked(
    CheckCode.TRY_LATER,
    "the file has no revocation data for the certificate, and nothing was fetched",
)
_UNREAD_REVOCATION_DATA: Final = unchecked(
    CheckCode.TRY_LATER,
    "the file has no revocation data for the certificate that can be read, and nothing "
    "was fetched",
)
_REVOKED: Final = {
    AdESFailure.REVOKED,
    AdESIndeterminate.REVOKED_NO_POE,
    AdESIndeterminate.REVOKED_CA_NO_POE,
}
_REVOCATION_DATA: Final = {
    AdESIndeterminate.TRY_LATER,
    AdESIndeterminate.REVOCATION_OUT_OF_BOUNDS_NO_POE,
}
_OUT_OF_BOUNDS: Final = {
    AdESIndeterminate.OUT_OF_BOUNDS_NO_POE,
    AdESIndeterminate.OUT_OF_BOUNDS_NOT_REVOKED,
    AdESIndeterminate.EXPIRED,
}
_NOT_YET: Final = {AdESFailure.NOT_YET_VALID, AdESIndeterminate.NOT_YET_VALID}
_WEAK: Final = {
    AdESIndeterminate.CRYPTO_CONSTRAINTS_FAILURE,
    AdESIndeterminate.CRYPTO_CONSTRAINTS_FAILURE_NO_POE,
}


def check_trust(checked: Checked) -> Check:
    """Answer whether the chain ends at a trusted root.

    Args:
        checked: a signature whose value is right.
    """
    status = checked.status
    cause = status.problem
    if cause is None or cause in _REVOKED or cause in _REVOCATION_DATA:
        return YES
    certificate = status.certificate
    if cause in _NOT_YET or (
        cause in _OUT_OF_BOUNDS
        and checked.proof is not None
        and checked.proof.at < certificate.not_valid_before
    ):
        return refuted(
            CheckCode.NOT_YET_VALID,
            "the certificate was not valid yet at the time that is proven",
        )
    if cause in _OUT_OF_BOUNDS:
        # A later timestamp proves that the signature existed then, not that it was new.
        return unchecked(
            CheckCode.OUT_OF_BOUNDS_NO_POE,
            "the certificate has expired, and no trusted timestamp proves that the "
            "signature is older",
        )
    # Without a path a constraint is broken by no chain: a self-signed certificate that
    # is no anchor is reported so.
    if status.path is None and cause not in _WEAK:
        return _NO_CHAIN
    found = None
    if status.path is not None and cause not in _WEAK:
        found = _broken_rule(status.path, checked)
    return found or _of_chain(cause)


def _broken_rule(path: ValidationPath, checked: Checked) -> Check | None:
    """Find a certificate of a chain that is out of its time, or issued as no CA.

    pyHanko has one answer for all of these.

    Source: RFC 5280, 6.1.3 (validity) and 6.1.4 (CA flag, key usage).
    """
    proof = checked.proof
    moment = SystemClock().now() if proof is None else proof.at
    chain = [*path.iter_certs(include_root=False)]
    for issuer in chain[:-1]:
        constraints, usage = issuer.basic_constraints_value, issuer.key_usage_value
        if (
            constraints is None
            or not constraints["ca"].native
            or (usage is not None and "key_cert_sign" not in usage.native)
        ):
            return refuted(
                CheckCode.CHAIN_CONSTRAINTS_FAILURE,
                "a certificate of the chain was issued by one that is no authority",
            )
    if any(each.not_valid_before > moment for each in chain):
        # A signature that exists today was made before such a certificate is valid.
        when = "today" if proof is None else "at the time that is proven"
        return refuted(
            CheckCode.NOT_YET_VALID,
            f"a certificate of the chain was not valid yet {when}",
        )
    if any(each.not_valid_after < moment for each in chain):
        # A later timestamp proves that the signature existed then, not that it was new.
        return unchecked(
            CheckCode.OUT_OF_BOUNDS_NO_POE,
            "a certificate of the chain has expired, and no trusted timestamp proves "
            "that the signature is older",
        )
    return None


def _of_chain(cause: AdESSubIndic) -> Check:
    """The answer for a chain that could not be validated."""
    if cause is AdESIndeterminate.CHAIN_CONSTRAINTS_FAILURE:
        return refuted(
            CheckCode.CHAIN_CONSTRAINTS_FAILURE,
            "the certificate, or one above it, breaks the rules of its chain",
        )
    if cause in _WEAK:
        return unchecked(
            CheckCode.CRYPTO_CONSTRAINTS_FAILURE,
            "an algorithm of the signature or of a certificate is too weak today",
        )
    if cause is AdESIndeterminate.NO_CERTIFICATE_CHAIN_FOUND:
        return _NO_CHAIN
    return unchecked(
        CheckCode.CERTIFICATE_CHAIN_GENERAL_FAILURE,
        "the chain of certificates could not be validated",
    )


def check_revocation(checked: Checked, claimed: datetime | None) -> Check:
    """Answer whether a certificate of the chain was revoked when it was used.

    Args:
        checked: a signature whose value is right.
        claimed: the signer's own word for the time; None: there is none.
    """
    status = checked.status
    details = status.revocation
    if details is not None or status.problem in _REVOKED:
        return revoked(
            at=None if details is None else details.revocation_date,
            proven=None if checked.proof is None else checked.proof.at,
            claimed=claimed,
            reason=_reason(status),
        )
    if checked.is_unrevoked:
        return YES
    return _UNREAD_REVOCATION_DATA if checked.has_unread_data else _NO_REVOCATION_DATA


def _reason(status: ChainStatus) -> str:
    details = status.revocation
    native = None if details is None else details.revocation_reason.native
    return str(native or "").replace("_", " ")


def check_time(checked: Checked) -> Check:
    """Answer whether a trusted timestamp proves when the signature existed.

    Args:
        checked: a signature whose value is right.
    """
    if checked.stamp is StampState.WRONG:
        return unchecked(
            CheckCode.TIMESTAMP_INVALID,
            "its timestamp is broken, or of another signature",
        )
    if checked.proof is not None:
        return YES
    if checked.stamp is StampState.UNTRUSTED:
        words = (
            "its timestamp is by an authority that is not trusted here, or whose "
            "certificates the file lacks"
        )
    else:
        words = "the signing time is the signer's claim: there is no trusted timestamp"
    return unchecked(CheckCode.NO_POE, words)
