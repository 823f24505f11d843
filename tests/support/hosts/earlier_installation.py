"""What an earlier tree leaves: an installation, and what people hold of it.

with site.running(earlier):
    left = leave(site, earlier, places)
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.hosts.earlier_tree import Tree, TreeSite


@dataclass(frozen=True)
class Left:
    """What the earlier tree left, and what its people and integrators hold."""

    site: TreeSite
    earlier: Tree
    places: Path
    """Of backups, and of signed files."""
    bearer: str
    api_key: str
    session: str
    link: str
    """Of the document `signed.pdf`."""
    waiting: int
    """A request that nobody has signed yet."""


def leave(site: TreeSite, earlier: Tree, places: Path) -> Left:
    """Have people do something while the earlier tree serves it.

    Args:
        site: that it serves.
        earlier: the tree.
        places: an empty folder for what they keep.
    """
    site.run(earlier, "demo", "setup")
    first = _new_request(site, earlier)
    waiting = _new_request(site, earlier)
    link = site.sign(site.sign_in(earlier), first)
    with site.client() as client:
        signed = client.get(link)
        assert signed.status_code == httpx.codes.OK
        (places / "signed.pdf").write_bytes(signed.content)
        key = site.run(earlier, "integrator", "key", "create", "demo", "old")
        api_key = next(word for word in key.split() if word.startswith("rbk_test_"))
        session = client.post(
            "/api/integration/session/new?id=demo", headers={"X-Api-Key": api_key}
        ).json()["tokenSession"]
    _back_up(site, earlier, places)
    # Last, as it is good for a quarter of an hour.
    bearer = site.sign_in(earlier)
    return Left(site, earlier, places, bearer, api_key, session, link, waiting)


def _new_request(site: TreeSite, tree: Tree) -> int:
    return int(site.run(tree, "demo", "request").split()[-1])


def _back_up(site: TreeSite, tree: Tree, places: Path) -> None:
    for name in ("record", "secrets"):
        (places / name).mkdir()
    made = subprocess.run(
        ["age-keygen", "-o", str(places / "key")],
        check=True,
        capture_output=True,
        text=True,
    )
    recipient = made.stderr.rpartition(" ")[2].strip()
    site.run(
        tree,
        "backup",
        *("--to", str(places / "record")),
        *("--secrets-to", str(places / "secrets")),
        *("--recipient", recipient),
    )
