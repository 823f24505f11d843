"""What an earlier tree leaves: an installation, and what people hold of it.

with tree_installation.running(earlier):
    left = leave(tree_installation, earlier, places)
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.hosts.earlier_tree import Tree, TreeInstallation


@dataclass(frozen=True)
class Left:
    """What the earlier tree left, and what its people and integrators hold."""

    site: TreeInstallation
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


def leave(tree_installation: TreeInstallation, earlier: Tree, places: Path) -> Left:
    """Have people do something while the earlier tree serves it.

    Args:
        tree_installation: that it serves.
        earlier: the tree.
        places: an empty folder for what they keep.
    """
    tree_installation.run(earlier, "demo", "setup")
    first = _new_request(tree_installation, earlier)
    waiting = _new_request(tree_installation, earlier)
    link = tree_installation.sign(tree_installation.sign_in(earlier), first)
    with tree_installation.client() as client:
        signed = client.get(link)
        assert signed.status_code == httpx.codes.OK
        (places / "signed.pdf").write_bytes(signed.content)
        key = tree_installation.run(
            earlier, "integrator", "key", "create", "demo", "old"
        )
        api_key = next(word for word in key.split() if word.startswith("rbk_test_"))
        session = client.post(
            "/api/integration/session/new?id=demo", headers={"X-Api-Key": api_key}
        ).json()["tokenSession"]
    _back_up(tree_installation, earlier, places)
    # Last, as it is good for a quarter of an hour.
    bearer = tree_installation.sign_in(earlier)
    return Left(
        tree_installation, earlier, places, bearer, api_key, session, link, waiting
    )


def _new_request(tree_installation: TreeInstallation, tree: Tree) -> int:
    return int(tree_installation.run(tree, "demo", "request").split()[-1])


def _back_up(tree_installation: TreeInstallation, tree: Tree, places: Path) -> None:
    for name in ("record", "secrets"):
        (places / name).mkdir()
    made = subprocess.run(
        ["age-keygen", "-o", str(places / "key")],
        check=True,
        capture_output=True,
        text=True,
    )
    recipient = made.stderr.rpartition(" ")[2].strip()
    tree_installation.run(
        tree,
        "backup",
        *("--to", str(places / "record")),
        *("--secrets-to", str(places / "secrets")),
        *("--recipient", recipient),
    )
