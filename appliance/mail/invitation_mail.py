"""The link of an invitation, on its way to a mail."""

from typing import Final

from appliance.domain.ids import IntegratorId, new_id
from appliance.domain.integrators.integrators import Invitation
from appliance.domain.keys.versioned_secrets import SealedColumn
from appliance.domain.mail.mails import MailKind, NewMail
from appliance.domain.ports import Sealer
from appliance.domain.vocab import SecretName
from appliance.mail.mail_store import MailStore
from appliance.record.unit_of_work import Transaction

LINK: Final = SealedColumn("mail_message", "link_sealed", SecretName.DATA)
"""Where it stands, sealed, until it was sent."""


async def send_invitation(
    transaction: Transaction,
    sealer: Sealer,
    invitation: Invitation,
    integrator: IntegratorId | None,
) -> None:
    """Have somebody's one-time link sent to them.

    Args:
        transaction: in which the link is made.
        sealer: with the data key.
        invitation: the link, which is good from the commit on.
        integrator: that invites; None: the installation.
    """
    row = new_id()
    await MailStore(transaction).add(
        NewMail(
            id=row,
            person=invitation.person,
            kind=MailKind.INVITATION,
            due=transaction.clock.now(),
            integrator=integrator,
            detail={"until": invitation.until.isoformat()},
            link_sealed=sealer.seal(
                invitation.url.encode(), table=LINK.table, row=row, column=LINK.column
            ),
        )
    )
