"""Files that settings name: found where they are declared, wherever they stand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from appliance.settings import Settings
from appliance.settings.named_files import Holds, absolute, named_files
from tests.support.installation.settings import settings_in

MADE_BY_US = {
    *("data_dir", "run_dir", "documents.path", "metrics.folder"),
    *("sandbox.socket", "redis.socket"),
}
"""Folders and sockets that the appliance makes itself."""
HSM = "hsm."
"""Table whose files `hsm_config` looks at, which opens the HSM."""


def paths_of(model: type[BaseModel], under: str = "") -> Iterator[tuple[str, bool]]:
    """Each setting that is a path, and whether it says what it holds."""
    for name, field in model.model_fields.items():
        kinds = list(kinds_of(field.annotation))
        if Path in kinds:
            yield under + name, any(isinstance(m, Holds) for m in field.metadata)
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from paths_of(kind, f"{under}{name}.")


def kinds_of(annotation: Any) -> Iterator[Any]:
    """The classes that an annotation is made of."""
    yield annotation
    for each in get_args(annotation):
        yield from kinds_of(each)


def test_every_path_says_what_it_holds_or_why_not() -> None:
    """A new one is looked at by `rubrica check-config`, unless it is listed here."""
    silent = {key for key, is_told in paths_of(Settings) if not is_told}

    assert {key for key in silent if not key.startswith(HSM)} == MADE_BY_US


def test_relative_paths_count_from_the_folder_of_the_file() -> None:
    """Those of every table, and of each element of a list."""
    raw = {
        "data_dir": "data",
        "event_prefix": "svc",
        "metrics": {"folder": "figures", "listen": "unix:/x"},
        "webhooks": {"ca_file": "/etc/ca.pem"},
        "timestamps": {"outside": [{"name": "a", "password_file": "tsa"}]},
        "unknown": {"path": "x"},
    }

    made = absolute(raw, Settings, Path("/etc/rubrica"))

    assert made == {
        "data_dir": "/etc/rubrica/data",
        "event_prefix": "svc",
        "metrics": {"folder": "/etc/rubrica/figures", "listen": "unix:/x"},
        "webhooks": {"ca_file": "/etc/ca.pem"},
        "timestamps": {"outside": [{"name": "a", "password_file": "/etc/rubrica/tsa"}]},
        "unknown": {"path": "x"},
    }


def test_webhooks_authorities_are_a_named_file(tmp_path: Path) -> None:
    """So is a key whose place the settings leave open."""
    settings = settings_in(tmp_path)
    webhooks = settings.webhooks.model_copy(update={"ca_file": tmp_path / "ca.pem"})
    changed = settings.model_copy(update={"webhooks": webhooks})

    found = {file.key: file for file in named_files(changed)}

    assert found["webhooks.ca_file"].path == tmp_path / "ca.pem"
    assert found["webhooks.ca_file"].roles == {"chores"}
    assert found["secrets.document_key_file"].path == settings.document_key_file
    assert "mail.password_file" not in found


@pytest.mark.parametrize("role", ["api", "signing", "chores", "sandbox"])
def test_role_reads_what_is_its_own(tmp_path: Path, role: str) -> None:
    """Peppers are for roles that take passwords; the sandbox has no file at all."""
    found = named_files(settings_in(tmp_path))
    files = [file.key for file in found if role in file.roles]

    assert ("secrets.pepper_file" in files) is (role == "api")
    assert ("fonts_dir" in files) is (role == "signing")
    assert bool(files) is (role != "sandbox")
