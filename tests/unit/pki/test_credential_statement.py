"""A certificate states whose a key is; each way of not agreeing with it has a name."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID

from appliance.domain.errors import CredentialRefusedError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.people.identity import Credential, Person
from appliance.domain.pki.certificates import POLICIES
from appliance.domain.vocab import PersonState, StatementFault, VouchedBy
from appliance.pki.validation.credential_statement import (
    Authorities,
    Statement,
    as_certified,
    read_statement,
)
from tests.support.factories.fakes import NOON
from tests.support.installation.record import new_credential
from tests.support.pki.outside_ca import (
    DOCUMENT_SIGNING,
    Form,
    OutsideCa,
    der,
    ec_key,
    make,
    named,
    rsa_key,
    spki_of,
    usage,
)

CUIL, OTHERS = "20267565393", "20055361682"
KEY = ec_key()
SPKI = spki_of(KEY)
OURS = OutsideCa(NOON, "Rúbrica CA interna")
OUTSIDE = OutsideCa(NOON, "AC de afuera")
SAME_NAME = OutsideCa(NOON, "Rúbrica CA interna")
OWN = Authorities((der(OURS.root), der(OURS.issuing)))
BOTH = replace(OWN, outside=(der(OUTSIDE.root),))
ANA = Person(PersonId("p"), CUIL, "Ana Pérez", PersonState.ACTIVE, "es")
F = StatementFault
OCSP, TSA = ExtendedKeyUsageOID.OCSP_SIGNING, ExtendedKeyUsageOID.TIME_STAMPING


def held(
    certificate: x509.Certificate, *chain: x509.Certificate, **changes: Any
) -> Credential:
    """A credential with a certificate."""
    return new_credential(
        ANA.id,
        **{
            "spki": SPKI,
            "certificate": der(certificate),
            "chain": tuple(map(der, chain)),
            **changes,
        },
    )


def certified(ca: OutsideCa = OURS, cuil: str = CUIL, **changes: Any) -> Credential:
    """A credential that a CA certified, sound but for `changes`."""
    return held(ca.certify(SPKI, cuil, **changes), ca.issuing)


def fault_of(
    credential: Credential, person: Person = ANA, by: Authorities = OWN
) -> StatementFault:
    """How a credential is refused."""
    with pytest.raises(CredentialRefusedError) as caught:
        read_statement(person, credential, by)
    assert caught.value.code is ErrorCode.CERTIFICATE_NOT_USABLE
    assert caught.value.layer == caught.value.fault.value
    return caught.value.fault


def test_own_certificate_states_name_number_and_dates() -> None:
    """What signing goes by from there on."""
    credential = certified()
    read = read_statement(ANA, credential, OWN)
    signer = x509.load_der_x509_certificate(credential.certificate)
    dates = signer.not_valid_before_utc, signer.not_valid_after_utc
    assert read == Statement("Ana Pérez", CUIL, False, *dates, None)  # noqa: FBT003


@pytest.mark.parametrize("chain", [(), (OURS.issuing,), (OURS.issuing, OURS.root)])
def test_chain_may_end_at_the_ca_or_at_the_root(chain: tuple[x509.Certificate]) -> None:
    """The worker has both by file, whatever the row brings."""
    read_statement(ANA, held(OURS.certify(SPKI, CUIL), *chain), OWN)


def test_next_ca_under_the_same_root_counts() -> None:
    """A CA that was renewed, or the one before it, by its own certificate."""
    later = ec_key()
    form = Form(
        named("Rúbrica CA interna 2"),
        NOON - timedelta(days=1),
        NOON + timedelta(days=900),
        ca=True,
        usage=usage("key_cert_sign"),
        purposes=None,
    )
    ca = make(form, spki_of(later), OURS.root_name, OURS.root_key)
    signer = make(OURS.form(CUIL), SPKI, ca.subject, later)
    assert not read_statement(ANA, held(signer, ca), OWN).is_outside
    assert fault_of(held(signer)) is F.ISSUER


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": "Ana Perez"}, F.NAME),
        ({"name": "Ana Pérez "}, None),
        ({"name": ""}, F.NAME),
        ({"cuil": OTHERS}, F.CUIL),
    ],
)
def test_person_is_who_the_certificate_names(
    changes: dict[str, Any], fault: StatementFault | None
) -> None:
    """To the letter, but for blanks around it, which are not certified."""
    person = replace(ANA, **changes)
    if fault is None:
        assert read_statement(person, certified(), OWN).name == "Ana Pérez"
    else:
        assert fault_of(certified(), person) is fault


REFUSED: dict[str, tuple[Callable[[], Credential], StatementFault]] = {
    "another key in the row": (
        lambda: replace(certified(), spki=spki_of(ec_key())),
        F.KEY,
    ),
    "certificate of another key": (
        lambda: held(OURS.certify(spki_of(rsa_key()), CUIL), OURS.issuing),
        F.KEY,
    ),
    "certificate of another person": (lambda: certified(cuil=OTHERS), F.CUIL),
    "no number": (lambda: certified(subject=named("Ana Pérez")), F.CUIL),
    "two numbers": (
        lambda: certified(
            subject=x509.Name(
                [
                    *named("Ana Pérez", f"CUIL {CUIL}"),
                    x509.NameAttribute(x509.NameOID.SERIAL_NUMBER, f"CUIL {OTHERS}"),
                ]
            )
        ),
        F.CUIL,
    ),
    "two names": (
        lambda: certified(
            subject=x509.Name(
                [
                    *named("Ana Pérez", f"CUIL {CUIL}"),
                    x509.NameAttribute(x509.NameOID.COMMON_NAME, "Otra"),
                ]
            )
        ),
        F.NAME,
    ),
    "a CA of the same name": (lambda: certified(SAME_NAME), F.ISSUER),
    "our CA's certificate above another's": (
        lambda: held(SAME_NAME.certify(SPKI, CUIL), OURS.issuing),
        F.ISSUER,
    ),
    "a CA that is not trusted": (lambda: certified(OUTSIDE), F.ISSUER),
    "itself": (
        lambda: held(make(OURS.form(CUIL), SPKI, named("Ana"), KEY)),
        F.ISSUER,
    ),
    "a person, as if they were a CA": (
        lambda: held(
            make(OURS.form(CUIL), SPKI, named("Ana Pérez", f"CUIL {CUIL}"), KEY),
            OURS.certify(SPKI, CUIL),
            OURS.issuing,
        ),
        F.ISSUER,
    ),
    "a CA": (lambda: held(OURS.certify(SPKI, CUIL, ca=True), OURS.issuing), F.PURPOSE),
    "a key for CRLs": (lambda: certified(usage=usage("crl_sign")), F.PURPOSE),
    "no key usage": (lambda: certified(usage=None), F.PURPOSE),
    "a responder": (lambda: certified(purposes=[OCSP]), F.PURPOSE),
    "a TSA": (lambda: certified(purposes=[TSA]), F.PURPOSE),
    "an extension that is critical and unknown": (
        lambda: certified(critical="1.2.3.4"),
        F.ISSUER,
    ),
    "no certificate": (lambda: replace(certified(), certificate=b"x"), F.UNREADABLE),
    "no certificate in the chain": (
        lambda: replace(certified(), chain=(b"x",)),
        F.UNREADABLE,
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_agree_is_refused(what: str) -> None:
    """Each by the check that failed."""
    make_it, fault = REFUSED[what]
    assert fault_of(make_it(), by=OWN) is fault


def test_outside_certificate_counts_under_a_root_that_counts() -> None:
    """Its CA may write the name in its own way: that name is shown."""
    subject = named("PEREZ, ANA MARIA", f"CUIL {CUIL}")
    credential = certified(OUTSIDE, subject=subject)
    read = read_statement(ANA, credential, BOTH)
    assert (read.is_outside, read.name) == (True, "PEREZ, ANA MARIA")
    assert as_certified(ANA, credential) == replace(ANA, name="PEREZ, ANA MARIA")
    assert fault_of(credential, replace(ANA, cuil=OTHERS), BOTH) is F.CUIL
    assert fault_of(credential, by=OWN) is F.ISSUER


def test_outside_certificate_without_a_cn_shows_its_subject() -> None:
    """As the console does; an empty name is none."""
    number = x509.NameAttribute(x509.NameOID.SERIAL_NUMBER, f"CUIL {CUIL}")
    credential = certified(OUTSIDE, subject=x509.Name([number]))
    assert CUIL in read_statement(ANA, credential, BOTH).name
    blank = x509.NameAttribute(x509.NameOID.COMMON_NAME, " ")
    credential = certified(OUTSIDE, subject=x509.Name([number, blank]))
    assert fault_of(credential, by=BOTH) is F.NAME


def test_own_root_of_another_name_is_not_outside() -> None:
    """A root of the trust store that is ours makes no name free."""
    by = replace(OWN, outside=OWN.own)
    assert fault_of(certified(), replace(ANA, name="Otra"), by) is F.NAME


@pytest.mark.parametrize("vouched_by", POLICIES)
def test_policy_says_who_answered_for_the_identity(vouched_by: VouchedBy) -> None:
    """By the object identifier that the CA signed."""
    policies = [x509.ObjectIdentifier(POLICIES[vouched_by])]
    assert read_statement(ANA, with_policies(policies), OWN).vouched_by is vouched_by
    both = [x509.ObjectIdentifier(each) for each in POLICIES.values()]
    assert read_statement(ANA, with_policies(both), OWN).vouched_by is None


def with_policies(policies: list[x509.ObjectIdentifier]) -> Credential:
    """A credential whose certificate has these policies."""
    sound = OURS.certify(SPKI, CUIL)
    builder = (
        x509.CertificateBuilder()
        .subject_name(sound.subject)
        .issuer_name(sound.issuer)
        .public_key(sound.public_key())
        .serial_number(sound.serial_number)
        .not_valid_before(sound.not_valid_before_utc)
        .not_valid_after(sound.not_valid_after_utc)
    )
    for found in sound.extensions:
        builder = builder.add_extension(found.value, critical=found.critical)
    value = x509.CertificatePolicies(
        [x509.PolicyInformation(p, None) for p in policies]
    )
    builder = builder.add_extension(value, critical=False)
    made = builder.sign(OURS.key, hashes.SHA256())
    assert DOCUMENT_SIGNING in list(
        made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    )
    return held(made, OURS.issuing)


def test_dates_are_the_certificates() -> None:
    """From its first moment on, and no longer in the last one."""
    read = read_statement(ANA, certified(), OWN)
    read.demand_at(read.not_before)
    read.demand_at(read.not_after - timedelta(seconds=1))
    for at in (read.not_before - timedelta(seconds=1), read.not_after):
        with pytest.raises(CredentialRefusedError) as caught:
            read.demand_at(at)
        assert caught.value.fault is F.DATES


def test_unreadable_certificate_shows_the_recorded_name() -> None:
    """A front checks nothing: the worker does."""
    assert as_certified(ANA, replace(certified(), certificate=b"x")) == ANA
