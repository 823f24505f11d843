"""An installation that an earlier tree made goes on under this one, and back.

The tree of the commit that `tests/vectors/earlier-tree.toml` names makes a trial with
SQLite, documents, SoftHSM and secrets, signs, and takes a backup. This tree serves it
after that: opens what was sealed, verifies what was hashed, signs with the same keys.
"""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.support.hosts.earlier_installation import Left, leave
from tests.support.hosts.earlier_tree import Tree, TreeInstallation, commit
from tests.support.patience import CALL_S
from tests.support.processes.scratch import short_folder

NOW = Tree.present()

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    """Made by the earlier tree and stopped; this tree serves it from here on."""
    places = tmp_path_factory.mktemp("places")
    earlier = Tree.committed(tmp_path_factory.mktemp("tree"), commit())
    with short_folder() as folder:
        site = TreeInstallation(folder)
        with site.running(earlier):
            made = leave(site, earlier, places)
        with site.running(NOW):
            yield made


def test_documents_open(left: Left) -> None:
    """Every file is what the record says, and the old link leads to the same bytes."""
    left.site.run(NOW, "documents", "check")
    rechecked = left.site.run(NOW, "documents", "recheck")
    with left.site.client() as client:
        answer = client.get(left.link)

    assert answer.content == (left.places / "signed.pdf").read_bytes()
    assert rechecked.splitlines()[-1] == "1 documents: 1 whole"


def test_audit_and_signature_verify(left: Left) -> None:
    """Each chain hangs together, and the old signature is valid."""
    left.site.run(NOW, "audit", "verify")
    left.site.run(NOW, "verify", str(left.places / "signed.pdf"))


def test_tokens_and_keys_are_still_good(left: Left) -> None:
    """Access token, API key, session token and the frame's page."""
    iframe = left.site.toml()["web"]["iframe_url"]
    with left.site.client(left.bearer) as client:
        listed = client.get("/solicitudes")
        opened = client.post(
            "/api/integration/session/new?id=demo",
            headers={"X-Api-Key": left.api_key},
        )
    page = httpx.get(f"{iframe}/embed/?sessionToken={left.session}", timeout=CALL_S)

    assert [one["solicitudId"] for one in listed.json()] == [left.waiting]
    assert opened.status_code == httpx.codes.OK
    assert page.status_code == httpx.codes.OK
    assert "frame-ancestors http" in page.headers["Content-Security-Policy"]


def test_sealed_seeds_open(left: Left) -> None:
    """A person signs in with the old password and seed; the console's one opens."""
    assert left.site.sign_in(NOW).count(".") == 2
    assert left.site.run(NOW, "demo", "otp", "admin").split()[-1].isdigit()


def test_backup_is_restored(left: Left) -> None:
    """Into a place beside it, and every document of it opens there."""
    options = {
        "backup": next((left.places / "record").iterdir()),
        "secrets": next((left.places / "secrets").iterdir()),
        "identity": left.places / "key",
    }
    words = [
        word for name, path in options.items() for word in (f"--{name}", str(path))
    ]
    told = left.site.run(NOW, "restore", "--drill", *words)

    assert "is not in it" not in told


def test_old_keys_sign_and_the_earlier_tree_reads_it(left: Left) -> None:
    """What waited is signed by the old key; the earlier tree verifies all of it.

    It does so as on a host of its own: by its own sandbox, not by one of this tree.
    """
    link = left.site.sign(left.site.sign_in(NOW), left.waiting)
    with left.site.client() as client:
        signed = client.get(link).content
    path = left.places / "signed-now.pdf"
    path.write_bytes(signed)

    earlier_site = left.site.apart("earlier")
    for tree, site in ((NOW, left.site), (left.earlier, earlier_site)):
        site.run(tree, "verify", str(path))
        site.run(tree, "audit", "verify")
        site.run(tree, "documents", "check")
    # Its log comes before: the tables are newer than it.
    *_, people = earlier_site.run(left.earlier, "person", "list", "--json").splitlines()
    told = json.loads(people)
    assert {person["state"] for person in told["people"]} == {"active"}
