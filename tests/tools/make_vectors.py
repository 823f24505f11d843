"""Write the golden vectors of tests/vectors that are not there yet.

`python -m tests.tools.make_vectors` adds files and cases that are missing, and changes
none that is there: what this tree writes must be what an earlier one wrote. Whoever
changes a format on purpose names its file after `--rewrite`.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from tests.support.documents.software_signer import make_signer
from tests.support.processes.event_loops import run_apart
from tests.support.processes.scratch import short_folder
from tests.vectors import kept
from tests.vectors.formats import FORMATS
from tests.vectors.names import NAMES
from tests.vectors.part_adapters import PARTS, Part
from tests.vectors.scenes import SCENES, play
from tests.vectors.signature_adapters import KEYS


def main(argv: Sequence[str] | None = None) -> int:
    """Write what is missing, and what is to be made anew; always 0."""
    parser = argparse.ArgumentParser(prog="make_vectors", description=__doc__)
    parser.add_argument(
        "--rewrite",
        nargs="+",
        default=[],
        metavar="FILE",
        choices=[*FORMATS, *NAMES, *SCENES, *PARTS],
        help="files that are made anew, by their names without `.json`",
    )
    anew = set(parser.parse_args(argv).rewrite)
    if not KEYS.exists():
        _make_keys()
    for name, form in FORMATS.items():
        path = kept.path_of(name)
        before = kept.cases_of(name) if path.exists() and name not in anew else {}
        missing = {
            case: form.made(given)
            for case, given in form.cases.items()
            if case not in before
        }
        if missing:
            kept.write(path, {"says": form.says, "cases": before | missing})
            _say(f"{path.name}: {', '.join(missing)}")
    for name, look in NAMES.items():
        _write(kept.NAMES / f"{name}.json", look, anew)
    for name in SCENES:
        _write(kept.WIRE / f"{name}.json", partial(_played, name), anew)
    for name, part in PARTS.items():
        _write(kept.PARTS / f"{name}.json", partial(_used, part), anew)
    return 0


def _write(path: Path, look: Callable[[], Any], anew: Collection[str]) -> None:
    if path.stem in anew or not path.exists():
        kept.write(path, look())
        _say(path.name)


def _played(name: str) -> Any:
    """What was answered in a scene."""
    with tempfile.TemporaryDirectory() as folder:
        return run_apart(play(name, Path(folder)))


def _used(part: Part) -> Any:
    """What a real part makes, and what is read of it."""
    with short_folder() as first, short_folder() as second:
        made = run_apart(part.make(first))
        used = run_apart(part.use(second, made))
    return {"says": part.says, "made": made, "used": used}


def _make_keys() -> None:
    """A signer of no worth, whose key everybody may read."""
    made = make_signer()
    key = made.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    kept.write(
        KEYS,
        {
            "key": key.hex(),
            "certificate": made.certificate.hex(),
            "chain": [each.hex() for each in made.chain],
        },
    )


def _say(text: str) -> None:
    print(text)  # noqa: T201 (a command's output)


if __name__ == "__main__":
    sys.exit(main())
