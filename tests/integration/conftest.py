"""Parts of the product that tests of several modules drive."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from appliance.domain.ids import PersonId
from appliance.domain.keys.hsm_keys import ResidentKey
from appliance.domain.vocab import RequestState
from appliance.keys import password_hashing
from embed.assets import Assets, load_assets
from tests.support.documents.software_signer import SoftwareSigner, make_signer
from tests.support.factories import cached_hashes
from tests.support.factories.document_storage import (
    KINDS,
    BucketStorage,
    DocumentStorage,
    FolderStorage,
)
from tests.support.factories.fakes import request_view
from tests.support.factories.signing_front import SigningFront, open_front
from tests.support.hsm.hsm_installation import HsmInstallation
from tests.support.hsm.pkcs11_shim import Pkcs11Shim
from tests.support.installation.api import ApiServices, Caller
from tests.support.installation.frame import Frame
from tests.support.installation.installation import Installation
from tests.support.installation.record import CoreFixture
from tests.support.processes.scratch import short_folder
from tests.support.services.s3 import S3Server
from worker.pades.appearance.fonts import StampFonts, load_fonts


@pytest.fixture
async def front(core: CoreFixture) -> AsyncIterator[SigningFront]:
    """A face that signs, on each database."""
    async with open_front(core) as opened:
        yield opened


@pytest.fixture
async def sqlite_front(sqlite_core: CoreFixture) -> AsyncIterator[SigningFront]:
    """A face that signs, on SQLite."""
    async with open_front(sqlite_core) as opened:
        yield opened


@pytest.fixture
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have hashes of login passwords cost next to nothing.

    For tests of what is done about a hundred tries, which are as real as ever; what
    one costs is held elsewhere.
    """
    time_cost, memory_kib, parallelism = 1, 8, 1
    hasher = PasswordHasher(time_cost, memory_kib, parallelism)
    monkeypatch.setattr(password_hashing, "_HASHER", hasher)
    monkeypatch.setattr(password_hashing, "TIME_COST", time_cost)
    monkeypatch.setattr(password_hashing, "MEMORY_KIB", memory_kib)
    # Whatever was made before is not of that cost.
    monkeypatch.setattr(cached_hashes, "_KEPT", {})


@pytest.fixture
async def api_services(tmp_path: Path) -> AsyncIterator[ApiServices]:
    """The core of a face; signing is played."""
    async with Installation(tmp_path).api() as made:
        yield made


@pytest.fixture
async def person(api_services: ApiServices) -> PersonId:
    """A signer with requests in every state that is told."""
    who, _ = await api_services.add_person()
    await api_services.add_requests(who, 11)
    states = [
        (7, RequestState.PENDING),
        (8, RequestState.IN_PROGRESS),
        (9, RequestState.SIGNED),
        (10, RequestState.REJECTED),
    ]
    api_services.requests.views = [
        request_view(number, who, state) for number, state in states
    ]
    api_services.requests.views.append(request_view(70, "somebody else"))
    return who


@pytest.fixture
async def caller(api_services: ApiServices, person: PersonId) -> Caller:
    """Calls the API as `person`, signed in."""
    return Caller(api_services, await api_services.bearer(person))


@pytest.fixture(scope="session")
def fonts() -> StampFonts:
    """Every font, prepared."""
    return load_fonts(Path("/usr/share/fonts/truetype/liberation2"))


@pytest.fixture(scope="session")
def signer() -> SoftwareSigner:
    """Somebody with an RSA key and a certificate of a CA of their own."""
    return make_signer()


@pytest.fixture(scope="session")
def assets() -> Assets:
    """The page's files, read once."""
    return load_assets()


@pytest.fixture
async def frame(tmp_path: Path, assets: Assets) -> AsyncIterator[Frame]:
    """The role of the frame over fresh storage, with two registered origins."""
    async with Installation(tmp_path).frame(assets) as opened:
        yield opened


@pytest.fixture
def initialised_hsm(tmp_path: Path) -> HsmInstallation:
    """An installation after `hsm init`, of the test's own."""
    return HsmInstallation.ready(tmp_path)


@pytest.fixture
def shim(
    initialised_hsm: HsmInstallation, monkeypatch: pytest.MonkeyPatch
) -> Pkcs11Shim:
    """A shim around the module of `initialised_hsm`, for this process."""
    return initialised_hsm.shimmed(monkeypatch)


@pytest.fixture(scope="session")
def hsm_with_key_template(tmp_path_factory: pytest.TempPathFactory) -> HsmInstallation:
    """An installation with a user's `KEY`, to copy."""
    installation = HsmInstallation.ready(tmp_path_factory.mktemp("keyed"))
    installation.make_user_key()
    return installation


@pytest.fixture
def hsm_with_key(
    hsm_with_key_template: HsmInstallation, tmp_path: Path
) -> HsmInstallation:
    """An installation with a user's `KEY`, of the test's own."""
    return hsm_with_key_template.copy(tmp_path)


@pytest.fixture
def user_key(hsm_with_key: HsmInstallation) -> ResidentKey:
    """The user's key of `hsm_with_key`."""
    return hsm_with_key.user_key


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """The run's S3-compatible store; each test has a bucket of its own."""
    with short_folder() as folder, S3Server.running(folder) as server:
        yield server


@pytest.fixture(params=KINDS)
def document_storage(request: pytest.FixtureRequest, tmp_path: Path) -> DocumentStorage:
    """An empty place of documents, of each kind."""
    if request.param == "folder":
        return FolderStorage(tmp_path / "deep" / "documents")
    server: S3Server = request.getfixturevalue("s3_server")
    return BucketStorage(server.settings(f"{server.new_bucket()}/a/prefix"))
