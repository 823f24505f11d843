"""`rubrica mail`: whether mails get to the server that the settings name."""

import argparse
from datetime import UTC, datetime

from appliance.cli.terminal import say
from appliance.domain.errors import FieldInvalidError
from appliance.domain.ids import new_id
from appliance.domain.mail.mails import MailKind
from appliance.settings import SettingsError, load_settings
from appliance.settings.mail import is_address


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `mail`.

    Args:
        commands: of the `rubrica` parser.
    """
    mail = commands.add_parser("mail", help="mails to people")
    parts = mail.add_subparsers(dest="part", required=True)
    test = parts.add_parser(
        "test",
        help="send one mail now, past the outbox, and say what the server answers",
        epilog="Exit status: 0, the server took it; 1, it did not, or is not reached.",
    )
    test.add_argument("address", help="whom to")
    test.add_argument("--lang", choices=("es", "en"), default="es")
    test.set_defaults(run=_test)


def _test(args: argparse.Namespace) -> int:
    """Send it.

    Raises:
        SettingsError: mail is off, or a file of its settings cannot be used.
        FieldInvalidError: no address.
    """
    import asyncio  # noqa: PLC0415 (heavy)

    from appliance.mail.contents import MailContent  # noqa: PLC0415 (heavy)
    from appliance.mail.message import mail_message  # noqa: PLC0415 (heavy)
    from appliance.mail.smtp import MailServer, Taken  # noqa: PLC0415 (heavy)

    settings = load_settings(args.settings)
    if not settings.mail.is_on:
        msg = f"{args.settings}: mail.host: is not set; mail is off"
        raise SettingsError(msg)
    if not is_address(args.address):
        raise FieldInvalidError("address", "name@example.org")
    name = settings.installation
    content = MailContent(
        kind=MailKind.TEST,
        lang=args.lang,
        address=args.address,
        name=args.address.partition("@")[0],
        sender=name,
        on_behalf=False,
        at=datetime.now(UTC),
    )
    message = mail_message(content, settings, new_id(), content.at)
    delivery = asyncio.run(MailServer(settings.mail).send(message))
    say(f"{settings.mail.host}:{settings.mail.server_port}: {delivery.answer}")
    return 0 if delivery.taken is Taken.SENT else 1
