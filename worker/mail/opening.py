"""Builds what sends mails, where a server is set."""

from appliance.bootstrap import Core, data_sealer
from appliance.mail import message
from appliance.mail.contents import MailContents
from appliance.mail.smtp import MailServer
from appliance.mail.work import MailWork
from worker.mail.sender import MailSender


def mail_sender(core: Core, slot: str) -> MailSender:
    """What sends mails.

    Args:
        core: of a worker whose settings name a server.
        slot: of this worker.

    Raises:
        SettingsError: a file that the settings of mail name cannot be used.
    """
    settings, clock, store = core.settings, core.clock, core.store
    message.load()
    return MailSender(
        MailWork(store, clock, slot, settings.mail.per_hour),
        MailContents(store, core.documents, data_sealer(settings), clock, settings),
        MailServer(settings.mail),
        settings,
    )
