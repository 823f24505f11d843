"""Services of people: invited, enrolled, signed in, helped."""

from dataclasses import dataclass

from appliance.bootstrap.services.foundation import Foundation
from appliance.bootstrap.services.pki import PkiServices
from appliance.identity.access_tokens import AccessTokens
from appliance.identity.console_login import ConsoleLogin
from appliance.identity.console_users import ConsoleUsers
from appliance.identity.enrolment import Enrolment
from appliance.identity.failed_logins import FailedTries
from appliance.identity.help_requests import HelpRequests
from appliance.identity.invitations import Invitations
from appliance.identity.key_reissue import Reissue
from appliance.identity.login import Login
from appliance.identity.people import People


@dataclass(frozen=True)
class IdentityServices:
    """What a face asks of people and administrators."""

    people: People
    invitations: Invitations
    enrolment: Enrolment
    help_requests: HelpRequests
    reissue: Reissue
    login: Login
    tokens: AccessTokens
    console: ConsoleLogin
    console_users: ConsoleUsers
    failed_tries: FailedTries


def identity_services(on: Foundation, pki: PkiServices) -> IdentityServices:
    """Make them."""
    store, clock, settings = on.store, on.clock, on.settings
    sealer, lookup, passwords = on.sealer, on.lookup, on.login_passwords
    invitations = Invitations(store, lookup, sealer, clock, settings)
    tokens = AccessTokens(store, sealer, clock, settings)
    return IdentityServices(
        people=People(
            store,
            sealer,
            lookup,
            passwords,
            on.signing_passwords,
            pki.issuing,
            clock,
            settings.installation,
            pki.revocation_pins,
            trial=settings.trial,
        ),
        invitations=invitations,
        enrolment=Enrolment(
            store,
            lookup,
            sealer,
            clock,
            passwords,
            on.signing_passwords,
            pki.issuing,
            settings.installation,
            pki.revocation_pins,
            pki.kept_pins,
        ),
        help_requests=HelpRequests(store, lookup, sealer, clock, settings),
        reissue=Reissue(store, invitations, pki.revocations, clock),
        login=Login(store, lookup, sealer, clock, passwords, tokens, settings.auth),
        tokens=tokens,
        console=ConsoleLogin(store, lookup, sealer, clock, passwords, settings),
        console_users=ConsoleUsers(store, lookup, sealer, clock, passwords, settings),
        failed_tries=FailedTries(store, lookup, sealer, clock),
    )
