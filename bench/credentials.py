"""A signature with many credentials on the record against one with few.

    python -m bench.credentials [--many 100000] [--few 10] [--pairs 300] [--runs 3]
                                [--postgres URL] [--all] [--json FILE]

Two records with one HSM behind both; signatures of the one and of the other take
turns, and medians are compared. Then `rubrica hsm rotate-master` runs over the
large record, killed twice on the way, and its keys sign. What is timed, and what
the clones of a key share, stands in `bench/credential_place.py`.
"""

import argparse
import asyncio
import hashlib
import json
import logging
import os
import secrets
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import structlog

from appliance.bootstrap import open_core
from appliance.database.migrate import migrate
from appliance.domain.clock import SystemClock
from appliance.domain.ids import PersonId
from appliance.domain.keys.hsm_keys import KeyAlgorithm, SignatureScheme
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.keys.credential_store import CredentialStore
from appliance.keys.key_encryption import open_outer, signing_key
from appliance.keys.master_key_rotation import MasterKeyRotation
from appliance.secrets.sealed_box import SecretBox
from appliance.settings import Settings, load_settings
from bench.credential_place import CredentialPlace, Owner
from hsm_config.pkcs11.key_pairs import load_spki
from hsm_config.pkcs11.signatures import verify
from hsm_config.provisioning.init import provision
from tests.support.hsm.hsm_installation import HsmInstallation
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer
from worker.hsm.session import HsmSession
from worker.pades.appearance.fonts import load_fonts

_FONTS: Final = Path("/usr/share/fonts/truetype/liberation2")
_OWNERS: Final = 10
_WARM: Final = 20
_SAMPLE: Final = 1_000
_KILLS: Final = 2
_DIGEST: Final = hashlib.sha256(b"after the rotation").digest()
_MAIN: Final = "import sys; from appliance.cli import main; sys.exit(main())"


def place_settings(hsm: HsmInstallation, name: str, url: str) -> tuple[Path, Settings]:
    """A settings file of a record of its own, with the HSM of an installation."""
    text = hsm.file.read_text("utf-8")
    text = text.replace('data_dir = "data"', f'data_dir = "{name}"')
    path = hsm.folder / f"{name}.toml"
    path.write_text(f'{text}\n[database]\nurl = "{url}"\n', "utf-8")
    return path, load_settings(path)


async def compare(
    few: CredentialPlace, many: CredentialPlace, pairs: int
) -> dict[str, float]:
    """Sign in pairs, the first of each by turns; medians in ms and their ratio."""
    places = {"few": few, "many": many}
    people = {name: await place.people() for name, place in places.items()}
    times: dict[str, list[float]] = {"few": [], "many": []}
    for pair in range(pairs + _WARM):
        order = ("few", "many") if pair % 2 else ("many", "few")
        for name in order:
            person = secrets.choice(people[name])
            took_ms = await places[name].sign(person)
            if pair >= _WARM:
                times[name].append(took_ms)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    return {**medians, "ratio": medians["many"] / medians["few"]}


def rotate(settings_file: Path) -> dict[str, Any]:
    """Run the command, kill it twice on the way, and let it come to its end."""
    command = [sys.executable, "-c", _MAIN, "--settings", str(settings_file)]
    kills = []
    for _ in range(_KILLS):
        process = subprocess.Popen(
            [*command, "hsm", "rotate-master"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        stream = process.stderr
        if stream is None:
            msg = "no standard error"
            raise RuntimeError(msg)
        # Some way into what is left, so that each kill leaves both versions.
        lines = [stream.readline() for _ in range(3)]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        stream.close()
        kills.append(lines[-1].strip())
    begun = time.perf_counter()
    done = subprocess.run(
        [*command, "hsm", "rotate-master"], capture_output=True, text=True, check=True
    )
    return {
        "killed after": kills,
        "said": done.stdout.split("\n")[:-1],
        "last run s": round(time.perf_counter() - begun, 1),
    }


async def sign_after(
    place: CredentialPlace,
    session: HsmSession,
    owners: Sequence[Owner],
    people: Sequence[PersonId],
) -> int:
    """Sign by the key of each of them, as its row is now; how many verified."""
    unlocks = {owner.key.spki: owner.unlock for owner in owners}
    installation = place.core.settings.installation
    for person in people:
        async with place.core.store.read() as transaction:
            credential = await CredentialStore(transaction).active(person)
        if credential is None or credential.master == 1:
            msg = f"{person}: not under the new master key"
            raise RuntimeError(msg)
        unlock = unlocks[credential.spki]
        opened = open_outer(unlock, credential.outer, credential.aad(installation))
        scheme = SignatureScheme.RSA_PKCS1
        value = await session.sign(signing_key(credential, opened), _DIGEST, scheme)
        verify(load_spki(credential.spki), value, _DIGEST, scheme)
    return len(people)


async def measure(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Everything, on one kind of database."""
    hsm = HsmInstallation(folder)
    provision(hsm.settings)
    (hsm.folder / "keys").mkdir()
    result: dict[str, Any] = {"runs": []}
    async with AsyncExitStack() as stack:
        urls = _databases(args.postgres, stack)
        session = await stack.enter_async_context(hsm.session())
        algorithm = KeyAlgorithm.RSA_2048
        owners = [
            Owner(await session.generate_wrapped(algorithm), secrets.token_bytes(32))
            for _ in range(_OWNERS)
        ]
        fonts = load_fonts(_FONTS)
        places, files = {}, {}
        sealer = SecretBox(KeyRing.of(secrets.token_bytes(32)))
        for name, count in (("few", args.few), ("many", args.many)):
            files[name], settings = place_settings(hsm, name, urls[name])
            await migrate(settings)
            core = await stack.enter_async_context(
                open_core(settings, SystemClock(), "signing/bench/1", sealer)
            )
            keys = hsm.folder / "keys" / name
            keys.mkdir(mode=0o700)
            places[name] = CredentialPlace(core, session, owners, fonts, keys)
            await places[name].fill(count)
        for _ in range(args.runs):
            run = await compare(places["few"], places["many"], args.pairs)
            result["runs"].append({what: round(n, 3) for what, n in run.items()})
            _say(f"  {result['runs'][-1]}")
        many = places["many"]
        result["rotation"] = await asyncio.to_thread(rotate, files["many"])
        counts = await MasterKeyRotation(many.core.store, many.core.clock).counts()
        result["keys by master key"] = counts
        people = await many.people()
        if not args.all:
            people = people[:: max(1, len(people) // _SAMPLE)]
        result["signed after"] = await sign_after(many, session, owners, people)
        await compare(places["few"], many, 1)
    return result


def _databases(postgres: str | None, stack: AsyncExitStack) -> dict[str, str]:
    """Where the two records go."""
    if postgres is None:
        return {"few": "sqlite", "many": "sqlite"}
    server = PostgresServer.at(postgres)
    urls = {}
    for name in ("few", "many"):
        database = server.create_database()
        stack.callback(server.drop_database, database)
        urls[name] = server.url(database)
    return urls


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Measure and print; fails when a ratio or a key is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--many", type=int, default=100_000)
    parser.add_argument("--few", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--most", type=float, default=1.05, help="highest ratio")
    parser.add_argument("--postgres", help="URL of a server; SQLite without it")
    parser.add_argument("--all", action="store_true", help="have every key sign after")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    _say(
        f"{args.many} credentials against {args.few}: claim, unlock, intent, unwrap, "
        f"sign, commit, check, store, publish; {args.pairs} pairs, medians in ms. "
        f"{_OWNERS} private keys made in the HSM; each row is a clone of one, with a "
        "lock and a wrapped W of its own from the rotation on."
    )
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING)
    )
    with short_folder() as folder:
        result = asyncio.run(measure(args, folder))
    _say(json.dumps(result, indent=2, ensure_ascii=False))
    if args.json:
        args.json.write_text(json.dumps(result, indent=2), "utf-8")
    ratio = statistics.median(run["ratio"] for run in result["runs"])
    whole = result["keys by master key"] == {2: args.many}
    _say(f"ratio {ratio:.3f} (at most {args.most}); all keys moved: {whole}")
    return 0 if ratio <= args.most and whole else 1


if __name__ == "__main__":
    sys.exit(main())
