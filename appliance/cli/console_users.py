"""Operators' commands around administrators who are there already.

rubrica console-user list
rubrica console-user disable marta
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.cli.fronts import handle
from appliance.cli.terminal import ask, read_text, say, show_totp, table
from appliance.settings import CommandError

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry

_ACTOR = "operator"
_ALLOWED = "12 characters or more, up to 1024 bytes"
_Subparsers = argparse._SubParsersAction  # noqa: SLF001 (argparse names it no better)


def register(actions: "_Subparsers[argparse.ArgumentParser]") -> None:
    """Add what is done to administrators.

    Args:
        actions: of `rubrica console-user`.
    """
    handle(actions.add_parser("list", help="every administrator"), _list)
    for name, text, handler in (
        ("disable", "shut one out at once; ends the sessions", _disable),
        ("enable", "let one in again, with the same password and TOTP", _enable),
        ("reset-totp", "a new TOTP, shown once; ends the sessions", _reset_totp),
        ("end-sessions", "end the sessions", _end_sessions),
    ):
        parser = actions.add_parser(name, help=text)
        parser.add_argument("name")
        handle(parser, handler)
    unblock = actions.add_parser(
        "unblock", help="forget the wrong tries at signing in by that name"
    )
    unblock.add_argument("name")
    add_address(unblock)
    handle(unblock, _unblock)
    passwd = actions.add_parser("passwd", help="a new password; ends the sessions")
    passwd.add_argument("name")
    passwd.add_argument(
        "--password-file",
        type=Path,
        help="file with the password, of 12 characters or more",
    )
    handle(passwd, _passwd)


def add_address(parser: argparse.ArgumentParser) -> None:
    """Add the address that `unblock` lets in.

    Args:
        parser: of the command.
    """
    parser.add_argument(
        "--address", help="IP address that is let in from now on, whatever others try"
    )


def read_address(text: str | None) -> str | None:
    """That address as tries are counted by; None where none was given.

    Raises:
        CommandError: it is no IP address.
    """
    from appliance.web.server import client_address  # noqa: PLC0415 (heavy)

    if text is None:
        return None
    address = client_address.read_typed(text)
    if address is None:
        msg = f"--address: {text!r} is no IP address"
        raise CommandError(msg)
    return address


def read_password(path: Path | None) -> str:
    """A password, from a file or the terminal.

    Args:
        path: of the file; None: it is asked for.
    """
    if path is None:
        return ask("password")
    return read_text(path).rstrip("\n")


async def _list(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    del args
    rows = [
        (
            view.user.name,
            "enabled" if view.user.disabled is None else "disabled",
            str(view.sessions),
            view.last_login.isoformat(timespec="seconds") if view.last_login else "-",
            view.user.id,
        )
        for view in await front.console_users.list()
    ]
    say(table(("name", "state", "sessions", "last sign-in", "id"), rows))
    return 0


async def _disable(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    await front.console_users.disable(_ACTOR, args.name)
    say(f"{args.name}: disabled, sessions ended")
    return 0


async def _enable(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    await front.console_users.enable(_ACTOR, args.name)
    say(f"{args.name}: enabled")
    return 0


async def _reset_totp(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    made = await front.console_users.reset_totp(_ACTOR, args.name)
    say(f"{args.name}: new TOTP, sessions ended")
    show_totp(made.totp_uri)
    return 0


async def _end_sessions(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    ended = await front.console_users.end_sessions(_ACTOR, args.name)
    say(f"{args.name}: sessions ended: {ended}")
    return 0


async def _unblock(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    address = read_address(args.address)
    tries = await front.failed_tries.forget_user(_ACTOR, args.name, address)
    say(f"{args.name}: wrong tries forgotten: {tries}")
    return 0


async def _passwd(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    # Whoever there is not is told before a password is asked for.
    await front.console_users.get(args.name)
    password = read_password(args.password_file)
    front.console_users.check_password(password, args.name)
    await front.console_users.set_password(_ACTOR, args.name, password)
    say(f"{args.name}: new password, sessions ended")
    return 0
