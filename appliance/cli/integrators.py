"""Operators' commands around integrators and the console's users.

rubrica integrator key create demo "backend"
rubrica integrator domain add demo https://app.example
"""

import argparse
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.cli import arguments, console_users
from appliance.cli.fronts import handle
from appliance.cli.signature_options import add_profile, wishes_of
from appliance.cli.terminal import say, show_totp, table
from appliance.cli.webhooks import commands as webhooks
from appliance.domain.integrators.api_keys import FIRST_SCOPES, ApiKeyScope
from appliance.domain.integrators.integrators import KeyView, NewKey

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry

_ACTOR = "operator"
_ALL = "all"
_Subparsers = argparse._SubParsersAction  # noqa: SLF001 (argparse names it no better)


def register(commands: "_Subparsers[argparse.ArgumentParser]") -> None:
    """Add `integrator` and `console-user`.

    Args:
        commands: of the `rubrica` parser.
    """
    integrator = commands.add_parser("integrator", help="who sends documents")
    parts = integrator.add_subparsers(dest="part", required=True)
    create = parts.add_parser("create", help="record an integrator")
    create.add_argument("code", help="a-z, 0-9 and -, up to 40")
    create.add_argument("name")
    handle(create, _create)
    profile = parts.add_parser(
        "profile", help="how signatures for it are made; sets all three"
    )
    profile.add_argument("code")
    add_profile(profile, "the installation's")
    handle(profile, _set_profile)
    prefix = parts.add_parser(
        "prefix", help="what its frames' messages begin with: svc in svc.ready"
    )
    prefix.add_argument("code")
    chosen = prefix.add_mutually_exclusive_group()
    chosen.add_argument("prefix", nargs="?", help="none: show the present one")
    chosen.add_argument(
        "--default", action="store_true", help="that of the setting event_prefix"
    )
    handle(prefix, _set_prefix)
    vouch = parts.add_parser(
        "vouch", help="whether its backend may say who people are, and invite them"
    )
    vouch.add_argument("code")
    choice = vouch.add_mutually_exclusive_group(required=True)
    choice.add_argument("--allow", action="store_true")
    choice.add_argument("--refuse", action="store_true")
    handle(vouch, _set_vouch)
    mail = parts.add_parser(
        "mail",
        help="mails to its signers: switch them on or off, set reminders and the page "
        "to sign on; shows how they are set",
    )
    mail.add_argument("code", help="of the integrator")
    switch = mail.add_mutually_exclusive_group()
    switch.add_argument("--on", action="store_true", help="mail its signers")
    switch.add_argument("--off", action="store_true", help="mail them no more")
    mail.add_argument(
        "--remind",
        metavar="DAYS",
        type=_days_of_reminders,
        help="days after the request on which to remind, up to five from 1 to 60, "
        "such as 3,7; '' for no reminders",
    )
    mail.add_argument(
        "--sign-url",
        metavar="URL",
        help="page of the integrator that mails lead to; {procesoId}, {solicitudId} "
        "and {loteId} (empty unless a mail is about a batch) in it are filled in; "
        "'' for none: mails name the integrator instead",
    )
    handle(mail, _set_mail)
    listing = parts.add_parser("list", help="every integrator")
    handle(listing, _list)
    _register_keys(parts)
    _register_domains(parts)
    webhooks.register(parts)
    users = commands.add_parser("console-user", help="who administers")
    user_parts = users.add_subparsers(dest="action", required=True)
    user = user_parts.add_parser(
        "create", help="record a user of the console; shows the TOTP once"
    )
    user.add_argument("name", help="a-z, 0-9, . - and _, 2 to 40")
    user.add_argument(
        "--password-file",
        type=Path,
        help="file with the password, of 12 characters or more",
    )
    handle(user, _create_user)
    console_users.register(user_parts)


def _register_keys(parts: "_Subparsers[argparse.ArgumentParser]") -> None:
    key = parts.add_parser("key", help="API keys of an integrator")
    actions = key.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="make a key; it is shown this once")
    create.add_argument("code", help="of the integrator")
    create.add_argument("label", help="what tells it from others")
    create.add_argument(
        "--days",
        type=arguments.days,
        help="days until it expires, 1 to 3650 (default: it does not)",
    )
    create.add_argument(
        "--scope",
        action="append",
        choices=[*map(str, ApiKeyScope), _ALL],
        help="what it may be used for; again for more (default: "
        f"{', '.join(FIRST_SCOPES)})",
    )
    create.add_argument(
        "--network",
        action="append",
        default=[],
        help="address or network from which it may be used, such as 192.0.2.0/24; "
        "again for more, up to 20 (default: from anywhere)",
    )
    handle(create, _create_key)
    rotate = actions.add_parser(
        "rotate", help="make a successor; the old key works on for a while"
    )
    rotate.add_argument("key", help="its id (`key list` shows it)")
    rotate.add_argument(
        "--overlap",
        type=arguments.hours(168),
        default=24.0,
        help="hours that both work, 0 to 168 (default: %(default)s)",
    )
    handle(rotate, _rotate_key)
    revoke = actions.add_parser(
        "revoke", help="end a key at once, and its unfinished sessions"
    )
    revoke.add_argument("key", help="its id")
    handle(revoke, _revoke_key)
    listing = actions.add_parser("list", help="an integrator's keys")
    listing.add_argument("code")
    handle(listing, _list_keys)


def _register_domains(parts: "_Subparsers[argparse.ArgumentParser]") -> None:
    domain = parts.add_parser("domain", help="origins whose pages may show the frame")
    actions = domain.add_subparsers(dest="action", required=True)
    add = actions.add_parser("add", help="allow an origin")
    add.add_argument("code", help="of the integrator")
    add.add_argument("origin", help="exact: https://app.example")
    handle(add, _add_domain)
    remove = actions.add_parser("remove", help="take an origin back")
    remove.add_argument("code")
    remove.add_argument("origin")
    handle(remove, _remove_domain)
    listing = actions.add_parser("list", help="origins allowed, and blocked ones seen")
    listing.add_argument("code")
    handle(listing, _list_domains)


async def _create(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    made = await front.integrators.create(_ACTOR, args.code, args.name)
    say(f"integrator {made.code}: {made.id}")
    return 0


async def _set_profile(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    wishes = wishes_of(args, front.settings.tsa_names)
    view = await front.integrators.set_profile(_ACTOR, args.code, wishes)
    inherited = "(the installation's)"
    say(f"level {view.level or inherited}")
    say(f"timestamp policy {view.timestamp_policy or inherited}")
    say(f"digest {view.digest or inherited}")
    say(f"tsa {', '.join(view.tsa) if view.tsa else inherited}")
    return 0


async def _set_vouch(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    view = await front.integrators.change(_ACTOR, args.code, may_vouch=args.allow)
    say(f"{view.code} may vouch: {'yes' if view.may_vouch else 'no'}")
    return 0


def _days_of_reminders(text: str) -> list[int]:
    """Numbers with commas between them.

    Raises:
        ArgumentTypeError: something else.
    """
    try:
        return [int(each) for each in text.split(",") if each.strip()]
    except ValueError as exc:
        msg = "days with commas between them, such as 3,7"
        raise argparse.ArgumentTypeError(msg) from exc


async def _set_mail(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    view = await front.integrators.set_mail(
        _ACTOR,
        args.code,
        mails_signers=True if args.on else False if args.off else None,
        reminder_days=args.remind,
        sign_url=args.sign_url,
    )
    say(f"mails to signers: {'on' if view.mails_signers else 'off'}")
    say(f"reminders: {_reminders(view.reminder_days)}")
    say(f"page to sign on: {view.sign_url or 'none; mails name the integrator'}")
    if not front.settings.mail.is_on:
        say("no mail is sent: no mail server is set (mail.host)")
    return 0


def _reminders(days: Sequence[int]) -> str:
    """When signers are reminded, in words."""
    if not days:
        return "none"
    *others, last = map(str, days)
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"{listed} {'day' if listed == '1' else 'days'} after the request"


async def _set_prefix(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    if args.prefix is None and not args.default:
        view = await front.integrators.get(args.code)
    else:
        view = await front.integrators.change(
            _ACTOR, args.code, event_prefix=args.prefix or ""
        )
    usual = f"{front.settings.event_prefix} (the installation's)"
    say(f"prefix {view.event_prefix or usual}")
    return 0


async def _list(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    del args
    rows = [
        (
            view.code,
            view.name,
            view.id,
            "yes" if view.may_vouch else "no",
            view.event_prefix or front.settings.event_prefix,
        )
        for view in await front.integrators.list()
    ]
    say(table(("code", "name", "id", "may vouch", "prefix"), rows))
    return 0


async def _create_key(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    expires = None
    if args.days is not None:
        expires = front.clock.now() + timedelta(days=args.days)
    made = await front.integrators.create_key(
        _ACTOR,
        args.code,
        args.label,
        expires,
        scopes=_scopes(args.scope or [*FIRST_SCOPES]),
        networks=args.network,
    )
    _show(made)
    return 0


def _scopes(named: list[str]) -> list[ApiKeyScope]:
    return [scope for scope in ApiKeyScope if scope in named or _ALL in named]


async def _rotate_key(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    overlap_s = round(args.overlap * 3600)
    _show(await front.integrators.rotate_key(_ACTOR, args.key, overlap_s))
    return 0


def _show(made: NewKey) -> None:
    say(f"key {made.key.id}; shown this once:")
    say(made.secret)


async def _revoke_key(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    ended = await front.integrators.revoke_key(_ACTOR, args.key)
    say(f"revoked; {ended} unfinished sessions ended")
    return 0


async def _list_keys(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    now = front.clock.now()
    rows = [
        (
            key.id,
            key.hint,
            key.label,
            "works" if key.usable(now) else "over",
            _minute(key.expires),
            _minute(key.ends),
            _minute(key.last_used),
            _flag(key),
            _ALL if len(key.scopes) == len(ApiKeyScope) else ", ".join(key.scopes),
            ", ".join(key.networks) or "anywhere",
        )
        for key in await front.integrators.keys(args.code)
    ]
    times = ("expires", "ends", "last used", "flagged")
    head = ("id", "key", "label", "state", *times, "scopes", "networks")
    say(table(head, rows))
    return 0


def _minute(at: object) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M}"


def _flag(key: KeyView) -> str:
    if key.flag_reason is None:
        return ""
    return f"{key.flag_reason.value} {_minute(key.flagged)}"


async def _add_domain(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    added = await front.integrators.add_domain(_ACTOR, args.code, args.origin)
    say(f"allowed: {added.origin}")
    return 0


async def _remove_domain(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    for domain in await front.integrators.domains(args.code):
        if domain.origin == args.origin:
            await front.integrators.remove_domain(_ACTOR, domain.id)
            say(f"removed: {domain.origin}")
            return 0
    say(f"not allowed anyway: {args.origin}")
    return 1


async def _list_domains(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    allowed = [
        ("allowed", domain.origin, _minute(domain.seen), "")
        for domain in await front.integrators.domains(args.code)
    ]
    blocked = [
        ("blocked", origin.origin, _minute(origin.last), str(origin.count))
        for origin in await front.integrators.blocked_origins(args.code)
    ]
    say(table(("state", "origin", "last seen", "tries"), [*allowed, *blocked]))
    return 0


async def _create_user(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    password = console_users.read_password(args.password_file)
    front.console_users.check_password(password, args.name)
    made = await front.console.create_user(_ACTOR, args.name, password)
    say(f"console user {made.user.name}: {made.user.id}")
    show_totp(made.totp_uri)
    return 0
