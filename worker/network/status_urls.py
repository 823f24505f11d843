"""Where a certificate says that its status can be asked for."""

from collections.abc import Iterable
from typing import Final

from cryptography import x509
from cryptography.x509.oid import AuthorityInformationAccessOID

from appliance.pki.validation.certificate_rules import extension

_ADDRESSES: Final = 3
"""Of each kind, that are asked of one certificate."""


def responder_addresses(certificate: x509.Certificate) -> list[str]:
    """Addresses of OCSP, of the web.

    Args:
        certificate: that they are named in.

    Source: RFC 5280, 4.2.2.1.
    """
    access = extension(certificate, x509.AuthorityInformationAccess) or ()
    return _addresses(
        one.access_location
        for one in access
        if one.access_method == AuthorityInformationAccessOID.OCSP
    )


def list_addresses(certificate: x509.Certificate) -> list[str]:
    """Addresses of CRLs, of the web.

    Args:
        certificate: that they are named in.
    """
    return _addresses(points_of(certificate))


def _addresses(names: Iterable[x509.GeneralName]) -> list[str]:
    """The first few that are of the web; ldap and the like are left out."""
    found = [
        name.value
        for name in names
        if isinstance(name, x509.UniformResourceIdentifier)
        and name.value.lower().startswith(("http://", "https://"))
    ]
    return list(dict.fromkeys(found))[:_ADDRESSES]


def points_of(certificate: x509.Certificate) -> list[x509.GeneralName]:
    """Names of the distribution points that have complete lists of the issuer.

    Args:
        certificate: that they are named in.

    Source: RFC 5280, 4.2.1.13.
    """
    points = extension(certificate, x509.CRLDistributionPoints) or ()
    return [
        name
        for point in points
        if point.crl_issuer is None and point.reasons is None
        for name in point.full_name or ()
    ]
