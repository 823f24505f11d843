"""Operators' commands: people, requests, the audit.

They act as `api` does: on the record and the sandbox, never on the HSM; keys
and certificates come by HSM tasks that a running signing worker does.
"""

import argparse
from collections.abc import Sequence
from datetime import timedelta
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from appliance.cli import arguments, people
from appliance.cli.console_users import add_address, read_address
from appliance.cli.fronts import handle
from appliance.cli.signature_options import add_profile, wishes_of
from appliance.cli.terminal import (
    ask,
    note,
    read_file,
    read_text,
    say,
    show_totp,
    table,
)
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, RequestId, TaskId
from appliance.domain.integrators.integrators import Invitation
from appliance.domain.people.identity import format_cuil, typed_cuil
from appliance.domain.requests.request import Signer
from appliance.domain.vocab import Environment, PersonState, VouchedBy
from appliance.settings import CommandError

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry
    from appliance.identity.console_login import SignIn

_TASK_WAIT_S: Final = 60.0


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `person` and `request`.

    Args:
        commands: of the `rubrica` parser.
    """
    _register_person(commands)
    _register_request(commands)


def _register_person(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    person = commands.add_parser("person", help="who signs")
    parts = person.add_subparsers(dest="part", required=True)
    create = parts.add_parser(
        "create", help="record a person; asks for both passwords, shows the TOTP once"
    )
    create.add_argument("--cuil", required=True)
    create.add_argument("--name", required=True)
    create.add_argument("--email", required=True)
    _add_recorded(create)
    create.add_argument(
        "--passwords-file",
        type=Path,
        help="file with the login and the signing password, a line each",
    )
    handle(create, _create_person)
    issue = parts.add_parser(
        "issue", help="a key and a certificate for a person who has none"
    )
    issue.add_argument("--cuil", required=True)
    issue.add_argument(
        "--forgotten",
        action="store_true",
        help="make an enrolment link for who forgot the signing password; what it "
        "locked is superseded",
    )
    issue.add_argument(
        "--witness",
        metavar="NAME",
        help="the administrator who agrees to --forgotten; needed in PROD",
    )
    issue.add_argument(
        "--witness-file",
        type=Path,
        help="file with the witness's password and one-time code, a line each; else "
        "both are asked for",
    )
    issue.add_argument(
        "--password-file",
        type=Path,
        help="file with the signing password on its first line; else it is asked for",
    )
    handle(issue, _issue)
    invite = parts.add_parser(
        "invite", help="record a person who chooses the passwords behind a link"
    )
    invite.add_argument("--cuil", required=True)
    invite.add_argument("--name", help="leave out to renew the link of one invited")
    invite.add_argument("--email")
    invite.add_argument(
        "--mail", action="store_true", help="send the link to them as well"
    )
    _add_recorded(invite)
    handle(invite, _invite_person)
    people.register(parts)
    unblock = parts.add_parser(
        "unblock", help="forget the wrong tries at signing in as a person"
    )
    unblock.add_argument("who", metavar="CUIL-or-email")
    add_address(unblock)
    handle(unblock, _unblock_person)


def _add_recorded(parser: argparse.ArgumentParser) -> None:
    """Add what is recorded of every new person."""
    parser.add_argument("--locale", choices=["es", "en"], default="es")
    parser.add_argument(
        "--vouched-by",
        choices=[VouchedBy.OFFICER.value, VouchedBy.DEMO.value],
        default=VouchedBy.OFFICER.value,
        help="`officer`: you answer for the identity; `demo`: a trial's people",
    )


def _register_request(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    request = commands.add_parser("request", help="what is to be signed")
    parts = request.add_subparsers(dest="part", required=True)
    create = parts.add_parser(
        "create", help="ask a person, or several in turn, to sign a PDF"
    )
    create.add_argument("file", type=Path)
    create.add_argument("--integrator", required=True, help="its code")
    create.add_argument(
        "--person",
        required=True,
        action="append",
        help="the signer's CUIL; once more for each who signs after, in order",
    )
    create.add_argument("--name", help="file name to show (default: the file's)")
    create.add_argument(
        "--days", type=arguments.days, help="days until it lapses, 1 to 3650"
    )
    add_profile(create, "the integrator's")
    handle(create, _create_request)
    listing = parts.add_parser("list", help="the newest requests of everybody")
    arguments.add_limit(listing)
    handle(listing, _list_requests)
    cancel = parts.add_parser(
        "cancel", help="take a request back, and those that wait for it"
    )
    cancel.add_argument("id", type=arguments.number)
    handle(cancel, _cancel_request)
    audit = parts.add_parser("audit", help="everything recorded of a request")
    audit.add_argument("id", type=arguments.number)
    handle(audit, _audit_request)


async def _issue(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    from appliance.people.person_store import PersonStore  # noqa: PLC0415 (heavy)

    cuil = typed_cuil(args.cuil)
    async with front.core.store.read() as transaction:
        person = await PersonStore(transaction).by_cuil(cuil)
    if person is None:
        raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
    if args.forgotten:
        return await _begin_anew(front, args, person.id)
    if args.witness or args.witness_file:
        msg = "--witness comes with --forgotten"
        raise CommandError(msg)
    signer = Signer(person.id, "operator", ("operator",), front.clock.now())
    task = await front.issuing.again(
        signer, _password(args.password_file, "signing password")
    )
    return await _await_credential(front, task)


async def _begin_anew(
    front: "ServiceRegistry", args: argparse.Namespace, person: PersonId
) -> int:
    """Make a link behind which a person chooses every secret again.

    No operator types a password for anybody, and in PROD none acts alone.
    """
    if args.password_file is not None:
        msg = "--forgotten takes no password: the person chooses it behind the link"
        raise CommandError(msg)
    if args.witness is None and front.settings.environment is Environment.PROD:
        msg = "--forgotten needs --witness NAME in PROD: an administrator"
        raise CommandError(msg)
    witness = None
    if args.witness is not None:
        witness = await front.console.agrees(_witness(args))
    made = await front.reissue.reissue("operator", person, witness)
    _say_link(made)
    return 0


def _witness(args: argparse.Namespace) -> "SignIn":
    """Name, password and code of the administrator who agrees."""
    from appliance.identity.console_login import SignIn  # noqa: PLC0415 (heavy)

    if args.witness_file is None:
        password = getpass(f"password of {args.witness}: ")
        return SignIn(args.witness, password, getpass("one-time code: "))
    lines = read_text(args.witness_file).splitlines()
    if len(lines) != 2:  # noqa: PLR2004 (password and code)
        raise SystemExit(f"{args.witness_file}: must hold two lines, password and code")
    return SignIn(args.witness, *lines)


def _password(path: Path | None, what: str) -> str:
    """One password, from the first line of a file or the terminal."""
    if path is None:
        return ask(what)
    return read_text(path).partition("\n")[0]


async def _await_credential(front: "ServiceRegistry", task: TaskId) -> int:
    say("waiting for key and certificate…")
    output = await front.tasks.wait(task, _TASK_WAIT_S)
    say(f"credential: {output['credential']}")
    return 0


async def _create_person(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    from appliance.identity.people import NewPersonOrder  # noqa: PLC0415 (heavy)

    login, signing = _passwords(args.passwords_file)
    created = await front.people.create_person(
        NewPersonOrder(
            cuil=args.cuil,
            name=args.name,
            email=args.email,
            login_password=login,
            signing_password=signing,
            vouched_by=VouchedBy(args.vouched_by),
            locale=args.locale,
        )
    )
    say(f"person {format_cuil(typed_cuil(args.cuil))}: {created.id}")
    show_totp(created.totp_uri)
    say(f"revocation PIN (shown once): {created.revocation_pin}")
    return await _await_credential(front, created.task)


async def _invite_person(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    if (args.name is None) != (args.email is None):
        msg = "--name and --email come together"
        raise CommandError(msg)
    if args.name is None:
        made = await _renew_invitation(front, args.cuil, by_mail=args.mail)
    else:
        made = await front.invitations.invite(
            "operator",
            args.cuil,
            args.name,
            args.email,
            VouchedBy(args.vouched_by),
            args.locale,
            by_mail=args.mail,
        )
    _say_link(made)
    return 0


def _say_link(made: Invitation) -> None:
    say(made.url)
    say(f"works once, until {made.until.isoformat(timespec='minutes')}")


async def _renew_invitation(
    front: "ServiceRegistry", cuil: str, *, by_mail: bool
) -> Invitation:
    try:
        return await front.invitations.renew("operator", cuil, by_mail=by_mail)
    except ApplianceError as exc:
        hints = {
            ErrorCode.PERSON_NOT_FOUND: "nobody has this CUIL: "
            "give --name and --email to invite them",
            ErrorCode.PERSON_STATE: "has enrolled already; for lost passwords "
            'begin anew in the console ("Empezar de nuevo" on the person\'s page)',
        }
        if exc.code not in hints:
            raise
        raise SystemExit(f"{exc.code}: {cuil}: {hints[exc.code]}") from exc


async def _unblock_person(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    address = read_address(args.address)
    person = await front.failed_tries.find(args.who)
    tries = await front.failed_tries.forget_person("operator", person.id, address)
    say(f"{format_cuil(person.cuil)}: wrong tries forgotten: {tries}")
    return 0


def _passwords(path: Path | None) -> tuple[str, str]:
    """Both passwords, from a file or the terminal."""
    if path is not None:
        lines = read_text(path).splitlines()
        if len(lines) != 2:  # noqa: PLR2004 (login and signing)
            raise SystemExit(f"{path}: must hold two lines, login and signing password")
        return lines[0], lines[1]
    return ask("login password"), ask("signing password")


async def _create_request(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    from appliance.requests.intake import IntakeOrder  # noqa: PLC0415 (heavy)

    pdf = read_file(args.file)
    expires = None
    if args.days is not None:
        expires = front.clock.now() + timedelta(days=args.days)
    first, *others = (typed_cuil(cuil, "--person") for cuil in args.person)
    requests = await front.intake.create_requests(
        IntakeOrder(
            integrator_code=args.integrator,
            cuil=first,
            file_name=args.name or args.file.name,
            expires=expires,
            origin="operador",
            actor="operator",
            then=tuple(others),
            wishes=wishes_of(args, front.settings.tsa_names),
        ),
        pdf,
    )
    for request in requests:
        say(f"request {request}")
    await _note_who_cannot_sign(front, args.integrator, (first, *others))
    return 0


async def _note_who_cannot_sign(
    front: "ServiceRegistry", integrator: str, cuils: Sequence[str]
) -> None:
    """Tell of a request that was taken and that nobody can sign yet."""
    from appliance.people.person_store import PersonStore  # noqa: PLC0415 (heavy)

    if (await front.integrators.get(integrator)).disabled is not None:
        note(f"{integrator} is disabled: the console can enable it again")
    async with front.core.store.read() as transaction:
        people = [await PersonStore(transaction).by_cuil(cuil) for cuil in cuils]
    for person in filter(None, people):
        if person.state is PersonState.INVITED:
            note(f"{format_cuil(person.cuil)} has to enrol before signing")
        elif person.state is PersonState.DISABLED:
            note(f"{format_cuil(person.cuil)} is disabled, and cannot sign")


async def _cancel_request(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    view = await front.requests.cancel(RequestId(args.id), "operator")
    say(f"request {view.id}: {view.state.value}")
    return 0


async def _list_requests(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    from appliance.people.person_store import PersonStore  # noqa: PLC0415 (heavy)
    from appliance.requests.request_store import RequestStore  # noqa: PLC0415 (heavy)

    async with front.core.store.read() as transaction:
        views = await RequestStore(transaction).all(args.limit)
        people = {view.person for view in views}
        found = [await PersonStore(transaction).get(person) for person in people]
    cuils = {person.id: format_cuil(person.cuil) for person in found if person}
    rows = [
        (
            str(view.id),
            view.state.value,
            view.reason,
            cuils.get(view.person, ""),
            view.integrator_name,
            view.document_name,
            view.created.isoformat(timespec="seconds"),
        )
        for view in views
    ]
    head = ("id", "estado", "reason", "signer", "integrator", "document", "created")
    say(table(head, rows))
    return 0


async def _audit_request(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    from appliance.requests.request_store import RequestStore  # noqa: PLC0415 (heavy)

    async with front.core.store.read() as transaction:
        if await RequestStore(transaction).get(RequestId(args.id)) is None:
            raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
        rows = await transaction.audit.of_request(args.id)
    lines = [
        (
            row.at.isoformat(timespec="milliseconds"),
            row.event.event.value,
            row.event.actor,
            str(row.event.attempt or ""),
            " ".join(f"{key}={value}" for key, value in row.event.detail.items()),
        )
        for row in rows
    ]
    say(table(("at", "event", "actor", "attempt", "detail"), lines))
    return 0
