"""Make a small whole installation with the tree of a commit.

`python -m tests.tools.earlier_installation FOLDER` makes a trial in FOLDER/data (of
SQLite, documents, SoftHSM, PKI, secrets), signs in it, and leaves a backup and a signed
file in FOLDER/places. The commit is that of tests/vectors/earlier-tree.toml or another.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.hosts.earlier_installation import leave
from tests.support.hosts.earlier_tree import Tree, TreeInstallation, commit


def main(argv: Sequence[str] | None = None) -> int:
    """Make it; always 0."""
    parser = argparse.ArgumentParser(prog="earlier_installation", description=__doc__)
    parser.add_argument("folder", type=Path, help="a new one, of a short path")
    parser.add_argument("--commit", default=commit(), help="whole id of another one")
    options = parser.parse_args(argv)
    folder: Path = options.folder.resolve()
    for name in ("tree", "data", "places"):
        (folder / name).mkdir(mode=0o700, parents=True)
    tree = Tree.committed(folder / "tree", options.commit)
    site = TreeInstallation(folder / "data")
    with site.running(tree):
        leave(site, tree, folder / "places")
    return 0


if __name__ == "__main__":
    sys.exit(main())
