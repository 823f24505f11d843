"""Power: whoever may run `rubrica` commands, and has no signing password of anybody.

Every command is named here with what it leaves in the audit, so that a new one is
judged before it is released. What touches people, keys and documents is run.

Source: docs/keys.md "A forgotten password"; docs/operations.md.
"""

import argparse
import io
import secrets
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from PIL import Image

from appliance.cli import command_parser
from appliance.database import tables
from appliance.domain.vocab import EventKind
from appliance.secrets.host_key import key_text
from tests.support.appliance.administrators import new_administrator
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import harmed
from tests.support.faults.theft import read_rows
from tests.support.pki.outside_ca import OutsideCa, bundle

_E = EventKind
Row = tuple[str, dict[str, Any]]
"""Event of an operator's, and its detail."""

READS: Final = frozenset(
    {
        "audit reconcile",
        "audit verify",
        "certificate check",
        "certificate list",
        "certificate show",
        "check-config",
        "check-ports",
        "console-user list",
        "database check",
        "database roles",
        "doctor",
        "documents check",
        "health",
        "hsm ceremony-record",
        "hsm check",
        "hsm kind",
        "integrator domain list",
        "integrator key list",
        "integrator list",
        "integrator webhook list",
        "levels status",
        "person list",
        "ready",
        "request audit",
        "request list",
        "secrets status",
        "status",
        "timestamps documents",
        "timestamps list",
        "timestamps try",
        "trust list",
        "verify",
        "webhooks listen",
    }
)
"""Commands that change nothing of people, keys, documents and audit."""
FILES: Final = frozenset(
    {
        "hsm admit",
        "hsm anchors",
        "hsm host-key",
        "hsm init",
        "hsm pins",
        "init",
        "migrate",
        "secrets prepare",
        "setup",
        "upgrade",
        "backup",
        "restore",
    }
)
"""Commands of files of a machine, or of tables as a whole: no row tells of them."""
ROLES: Final = frozenset({"up", "serve", "worker", "sandbox"})
"""A role's own process."""
TRIALS: Final = frozenset(
    {
        "demo host",
        "demo network",
        "demo otp",
        "demo request",
        "demo setup",
        "demo show",
        "demo sign",
        "sample",
    }
)
"""Commands that PROD refuses."""


def every_command() -> set[str]:
    """All commands of `rubrica`, without their options."""

    def leaves(parser: argparse.ArgumentParser, path: Sequence[str]) -> set[str]:
        groups = [
            action
            for action in parser._actions
            if isinstance(action, argparse._SubParsersAction)
        ]
        found = {
            leaf
            for group in groups
            for name, sub in group.choices.items()
            for leaf in leaves(sub, (*path, name))
        }
        return found or {" ".join(path)}

    return leaves(command_parser(), ())


@dataclass
class Place:
    """An appliance, and what commands are run on."""

    appliance: Appliance
    folder: Path
    victim: TestPerson
    request: int
    """The victim's, not signed."""
    outside: OutsideCa
    names: dict[str, str] = field(default_factory=dict)
    """What earlier commands made."""

    def file(self, name: str, content: bytes) -> str:
        """A file for a command."""
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command, which must succeed."""
        done = self.appliance.rubrica(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    def rows(self) -> list[Row]:
        """All rows of operators' in the audit, oldest first."""
        found = [
            row
            for row in read_rows(self.appliance, tables.audit_event)
            if row.actor == "operator"
        ]
        found.sort(key=lambda row: row.at)
        return [(row.event, row.detail) for row in found]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """An appliance of its own, whose keys and secrets may be changed."""
    with harmed(signing="workers = 1\nwait_s = 0.1") as appliance:
        victim = appliance.new_person("Ana Ruiz")
        request = appliance.new_request(victim, pdfs.one_page())
        # Somebody has to be left who administers.
        new_administrator(appliance)
        outside = OutsideCa(datetime.now(UTC).replace(microsecond=0))
        folder = tmp_path_factory.mktemp("operator")
        yield Place(appliance, folder, victim, request, outside)


# -- every command that changes something leaves a row -------------------------------


@dataclass(frozen=True)
class Change:
    """A command that changes something.

    Args:
        command: as `every_command` names it.
        event: that it leaves.
        words: what follows the command.
        keeps: takes from what it printed what later ones need.
    """

    command: str
    event: EventKind
    words: Callable[[Place], Sequence[str]] = lambda _: ()
    keeps: Callable[[Place, str], None] = lambda *_: None


CODE: Final = "estudio"


def _secrets_of_two(place: Place) -> str:
    return place.file("two", b"una clave de ingreso\nuna clave de firma\n")


def _picture(place: Place) -> str:
    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, "PNG")
    return place.file("logo.png", out.getvalue())


def _root(place: Place) -> Sequence[str]:
    root = place.outside.root
    sha256 = root.fingerprint(hashes.SHA256()).hex()
    return (place.file("root.pem", bundle(root)), "--fingerprint", sha256)


def _chain(place: Place) -> Sequence[str]:
    key = place.appliance.credential(place.victim)
    made = place.outside.certify(key.spki, place.victim.cuil)
    return (key.id, place.file("chain.pem", bundle(made, place.outside.issuing)))


def _serial(place: Place) -> str:
    """Serial number of the victim's certificate of the internal CA."""
    key = place.appliance.credential(place.victim)
    (made,) = [
        row
        for row in read_rows(place.appliance, tables.certificate)
        if row.credential == key.id
    ]
    return str(made.serial)


def _named(name: str) -> Callable[[Place], Sequence[str]]:
    return lambda place: (place.names[name],)


def _keep(name: str, prefix: str) -> Callable[[Place, str], None]:
    """Keep the word after a prefix of what was printed."""

    def keep(place: Place, said: str) -> None:
        (line,) = [
            each for each in said.splitlines() if each.strip().startswith(prefix)
        ]
        place.names[name] = line.strip().removeprefix(prefix).split()[0].strip(":")

    return keep


def _created(place: Place) -> Sequence[str]:
    cuil = place.names["created"] = place.appliance.next_cuil()
    rest = ("--name", "Otra Persona", "--email", f"{cuil}@demo.example")
    return ("--cuil", cuil, *rest, "--passwords-file", _secrets_of_two(place))


def _invited(place: Place) -> Sequence[str]:
    cuil = place.appliance.next_cuil()
    return ("--cuil", cuil, "--name", "Eva Sol", "--email", f"{cuil}@demo.example")


def _console(place: Place) -> Sequence[str]:
    password = secrets.token_urlsafe(12).encode()
    return ("eva", "--password-file", place.file("eva", password))


CHANGES: Final = (
    Change("integrator create", _E.INTEGRATOR_CREATED, lambda _: (CODE, "Estudio")),
    Change(
        "integrator profile",
        _E.INTEGRATOR_CHANGED,
        lambda _: (CODE, "--level", "B-B"),
    ),
    Change("integrator prefix", _E.INTEGRATOR_CHANGED, lambda _: (CODE, "es")),
    Change("integrator vouch", _E.INTEGRATOR_CHANGED, lambda _: ("--allow", CODE)),
    Change("integrator mail", _E.INTEGRATOR_CHANGED, lambda _: ("--on", CODE)),
    Change("integrator key create", _E.API_KEY_CREATED, lambda _: (CODE, "una")),
    Change(
        "integrator domain add",
        _E.DOMAIN_ADDED,
        lambda _: (CODE, "https://app.example"),
    ),
    Change(
        "integrator domain remove",
        _E.DOMAIN_REMOVED,
        lambda _: (CODE, "https://app.example"),
    ),
    Change("logo set", _E.LOGO_CHANGED, lambda place: (_picture(place),)),
    Change("logo clear", _E.LOGO_CHANGED),
    Change("console-user create", _E.CONSOLE_USER_CREATED, _console),
    Change("console-user passwd", _E.CONSOLE_USER_PASSWORD_SET, _console),
    Change("console-user reset-totp", _E.CONSOLE_USER_TOTP_SET, lambda _: ("eva",)),
    Change("console-user unblock", _E.CONSOLE_USER_TRIES_FORGOTTEN, lambda _: ("eva",)),
    Change("console-user disable", _E.CONSOLE_USER_DISABLED, lambda _: ("eva",)),
    Change("console-user enable", _E.CONSOLE_USER_ENABLED, lambda _: ("eva",)),
    Change("person create", _E.PERSON_CREATED, _created),
    Change("person invite", _E.PERSON_INVITED, _invited),
    Change("person unblock", _E.PERSON_TRIES_FORGOTTEN, lambda p: (p.victim.cuil,)),
    Change(
        "person issue",
        _E.PERSON_REISSUED,
        lambda p: ("--cuil", p.names["created"], "--forgotten"),
    ),
    Change(
        "request create",
        _E.REQUEST_CREATED,
        lambda p: (
            p.file("a.pdf", pdfs.one_page()),
            *("--integrator", CODE, "--person", p.victim.cuil),
        ),
        _keep("request", "request "),
    ),
    Change("request cancel", _E.REQUEST_CANCELLED, _named("request")),
    Change("trust add", _E.ANCHOR_ADDED, _root, _keep("anchor", "id ")),
    Change("certificate import", _E.CERTIFICATE_IMPORTED, _chain),
    Change("trust remove", _E.ANCHOR_REMOVED, _named("anchor")),
    Change(
        "certificate revoke",
        _E.REVOCATION_ASKED,
        lambda p: ("--reason", "superseded", _serial(p)),
    ),
    Change("secrets rotate", _E.SECRET_ROTATED, lambda _: ("pepper",)),
    Change("documents shred", _E.DOCUMENT_KEY_DESTROYED, lambda _: ("--yes", CODE)),
    Change("hsm rotate-master", _E.MASTER_CREATED),
    Change("hsm renew-tsa", _E.TSA_CREATED),
    Change("hsm take-over", _E.HSM_TAKEN_OVER),
)
"""In the order that they are run in."""
ELSEWHERE: Final = {
    "console-user end-sessions": "of one who signed in: test_console_administrators.py",
    "documents encrypt": "of files that a version before documents were encrypted left",
    "documents recheck": "of what a version before examined: test_document_recheck.py",
    "documents recover": "of a restore: test_recovery.py, request.signed",
    "hsm join": "of a second HSM: test_hsm_replicas.py, member.joining",
    "hsm move": "of another HSM: test_hsm_move.py, master.created",
    "integrator key revoke": "test_sessions.py, api_key.revoked",
    "integrator key rotate": "test_sessions.py, api_key.rotated",
    "integrator webhook add": "test_console_changes.py, webhook.created",
    "integrator webhook disable": "the same, webhook.disabled",
    "integrator webhook enable": "the same, webhook.changed",
    "integrator webhook remove": "the same, webhook.removed",
    "integrator webhook rotate": "the same, webhook.rotated",
    "integrator webhook test": "the same, webhook.tested",
    "mail test": "a mail to the operator's own address",
    "secrets retire": "of a version that nobody is under: test_secret_rotation.py",
    "timestamps revoke": "test_revoked_tsa.py, revocation.asked",
}
"""Commands that take more than an appliance, and what has them run."""


def test_every_command_is_judged() -> None:
    """A command that nobody has judged is not released."""
    named = [
        *READS,
        *FILES,
        *ROLES,
        *TRIALS,
        *ELSEWHERE,
        *(change.command for change in CHANGES),
    ]

    assert set(named) == every_command()
    assert len(named) == len(set(named))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.command)
def test_command_leaves_a_row(place: Place, change: Change) -> None:
    """With the operator as its actor, in the transaction of the change."""
    words = change.words(place)
    before = len(place.rows())

    said = place.run(*change.command.split(), *words).stdout
    change.keeps(place, said)

    events = [event for event, _ in place.rows()[before:]]
    assert change.event.value in events


def test_pins_of_a_machine_leave_no_row(place: Place) -> None:
    """Hosts and roots that a machine believes are files that root alone writes."""
    root = place.outside.root
    file = place.file("pinned.pem", bundle(root))
    sha256 = root.fingerprint(hashes.SHA256()).hex()
    public = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    before = place.rows()

    place.run("hsm", "admit", "otro-host", key_text(public))
    place.run("hsm", "admit", "--remove", "otro-host")
    place.run("hsm", "anchors", "--pin", sha256, "--file", file)
    place.run("hsm", "anchors", "--unpin", sha256)

    assert place.rows() == before
