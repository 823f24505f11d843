"""Code in a role, and what is signed after somebody consented to it.

Between consent and signature each role alters whatever its user of PostgreSQL may; what
that is, is stated here. Whatever it is, nothing is signed but what was consented to.
What whoever writes all of the database alters, `test_k10_whole_consent` tries.

Source: docs/signing.md "What the consent covers".
"""

import io
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from PIL import Image
from sqlalchemy import delete, insert

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from appliance.database.rights import Role
from appliance.domain.vocab import EventKind, RequestState
from tests.functional.powers.role_scene import Installed
from tests.functional.powers.test_k10_whole_consent import SWAPS, Scene, Swap
from tests.support.appliance.appliance import TestPerson
from tests.support.appliance.http_calls import sign, sign_at_last
from tests.support.documents import pdfs
from tests.support.documents.field_pdfs import Field, with_fields
from tests.support.faults.fault_injection import held
from tests.support.faults.theft import write

_ITEM: Final = tables.activation_item
_FIELD: Final = "contrato.comprador"
_SETTINGS: Final = '[profile]\nlevel = "B-B"\n[stamp]\nqr = true'


def _another_document(scene: Scene) -> Swap:
    """The request is for another document."""
    other = scene.appliance.new_request(scene.person, pdfs.one_page(text="otro"))
    document = scene.row(tables.signature_request, id=other).document
    return scene.swap(tables.signature_request, "id", scene.request, document=document)


def _extra_document(scene: Scene) -> Swap:
    """One more document in the same consent."""
    other = scene.appliance.new_request(scene.person, pdfs.one_page(text="otro"))
    item = scene.row(_ITEM, request=scene.request)
    # Columns of the consent alone: those that a worker fills are no front's.
    held = {key: value for key, value in item._mapping.items() if value is not None}
    extra = {**held, "seq": 1, "request": other, "code": "1" * 26}
    extra["document_sha256"] = scene.row(
        tables.document, id=scene.row(tables.signature_request, id=other).document
    ).sha256
    return Swap(
        insert(_ITEM).values(extra), delete(_ITEM).where(_ITEM.c.code == "1" * 26)
    )


def _consent(**values: object) -> Callable[[Scene], Swap]:
    """What the record says of the consent itself."""

    def swap(scene: Scene) -> Swap:
        item = scene.row(_ITEM, request=scene.request)
        return scene.swap(tables.activation, "id", item.activation, **values)

    return swap


MORE: Final[dict[str, Callable[[Scene], Swap]]] = {
    "document": _another_document,
    "extra document": _extra_document,
    "factors": _consent(factors=["pwd", "otp", "hwk", "sign-pwd"]),
}
ALL: Final = {**SWAPS, **MORE}
_INSPECTED: Final = {
    "rotation of the pages",
    "marks of other signatures",
    "place of the field",
    "number of the last object",
}
MAY: Final = {
    Role.API: {*_INSPECTED, "certificate", "chain", "extra document"},
    Role.EMBED: {*_INSPECTED, "extra document"},
    Role.ADMIN: {
        *_INSPECTED,
        "certificate",
        "chain",
        "integrator's level",
        "integrator's digest",
        "integrator's timestamping authority",
    },
    Role.CHORES: _INSPECTED,
}
"""By role: what its user of PostgreSQL may alter of a consent that waits."""


@pytest.fixture(scope="module")
def sqlite() -> Iterator[Installed]:
    """An installation that knows no users."""
    with Installed.made("sqlite", more=_SETTINGS) as made:
        yield made


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Installed]:
    """An installation whose roles have users, and whose stamps show a logo."""
    out = io.BytesIO()
    Image.new("RGB", (8, 4), "red").save(out, "PNG")

    async def show(front: ServiceRegistry) -> None:
        await front.logos.show(out.getvalue(), "operator")

    with Installed.made("postgresql", more=_SETTINGS) as made:
        made.appliance.do(show)
        yield made


@pytest.fixture(scope="module")
def victim(postgresql: Installed) -> TestPerson:
    """Somebody who signs."""
    return postgresql.appliance.new_person()


def _alter(installed: Installed, victim: TestPerson, role: Role, *what: str) -> str:
    """Alter things as a role after a consent; the lock that held, and nothing signed.

    What was altered is put right again, and then it is signed.
    """
    request = installed.appliance.new_request(victim, with_fields(Field(_FIELD)))
    scene = Scene(installed.appliance, victim, request)
    fields = {"campo": _FIELD}
    with installed.appliance.client(victim) as client:
        with held(installed.appliance):
            assert sign(client, victim, request, **fields).status_code == 202
            swaps = []
            for each in what:
                # Read after the one before: several are of one row.
                swaps.append(ALL[each](scene))
                assert installed.write(role, swaps[-1].does)
        assert installed.ended(request) == RequestState.PENDING.value
        write(installed.appliance, *(swap.undoes for swap in reversed(swaps)))
        (back,) = installed.audited(EventKind.REQUEST_RETURNED, request)
        assert installed.audited(EventKind.KEY_INTENDED, request) == []
        assert sign_at_last(client, victim, request, **fields).status_code == 200
    return str(back["layer"])


def test_role_may_alter_little_of_a_consent(
    postgresql: Installed, victim: TestPerson
) -> None:
    """PostgreSQL refuses the rest; each change is undone at once, and it is signed."""
    request = postgresql.appliance.new_request(victim, with_fields(Field(_FIELD)))
    scene = Scene(postgresql.appliance, victim, request)
    with postgresql.appliance.client(victim) as client, held(postgresql.appliance):
        assert sign(client, victim, request).status_code == 202
        changes = {what: swap(scene).does for what, swap in ALL.items()}
        may = {
            role: {
                what
                for what, change in changes.items()
                if postgresql.write(role, change, keep=False)
            }
            for role in MAY
        }

    assert may == MAY
    assert postgresql.ended(request) == RequestState.SIGNED.value


@pytest.mark.parametrize("role", MAY)
def test_what_a_role_alters_signs_nothing(
    postgresql: Installed, victim: TestPerson, role: Role
) -> None:
    """All of it at once; `test_k10_whole_consent` tries each alone, as the owner."""
    layer = _alter(postgresql, victim, role, *sorted(MAY[role] - MORE.keys()))
    assert layer == ("certificate-issuer" if "certificate" in MAY[role] else "seal")
    for what in MAY[role] & MORE.keys():
        assert _alter(postgresql, victim, role, what) == "seal"


@pytest.mark.parametrize("what", MORE)
def test_whoever_writes_sqlite_alters_no_consent(sqlite: Installed, what: str) -> None:
    """Every role writes every table there: the seal holds."""
    victim = sqlite.appliance.new_person()

    assert _alter(sqlite, victim, Role.CHORES, what) == "seal"
