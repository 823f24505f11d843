"""The file that says what a timer's backup does.

Source: docs/backup.md "Every day".
"""

from pathlib import Path

import pytest

from appliance.operations.backup.config import BackupConfig
from appliance.settings import SettingsError


def test_documented_file_is_read(tmp_path: Path) -> None:
    """As it stands in the manual."""
    manual = Path(__file__).parents[3] / "docs/backup.md"
    text = manual.read_text("utf-8").partition("```toml\n")[2].partition("```")[0]
    file = tmp_path / "backup.toml"
    file.write_text(text)

    read = BackupConfig.read(file)

    assert read == BackupConfig(
        Path("/backup/record"), Path("/elsewhere/secrets"), ["age1…"], [], 30
    )


def test_documented_buckets_are_reached(tmp_path: Path) -> None:
    """By all that the manual's tables say."""
    manual = Path(__file__).parents[3] / "docs/backup.md"
    text = manual.read_text("utf-8").split("```toml\n")[2].partition("```")[0]
    file = tmp_path / "backup.toml"
    file.write_text(text)

    record, secrets = BackupConfig.read(file).buckets()

    assert record is not None
    assert secrets is not None
    assert record.url == "s3://backups-record/rubrica"
    assert secrets.settings.address == "https://s3.elsewhere.example"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('to = "backup"', "to"),
        ("to = 3", "to"),
        ('recipients = "age1"', "recipients"),
        ("recipients = [1]", "recipients"),
        ("recipients_files = [1]", "recipients_files"),
        ("keep = -1", "keep"),
        ("keep = true", "keep"),
        ('colour = "red"', "colour"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, line: str, key: str) -> None:
    """With file and key, and beside every other fault."""
    file = tmp_path / "backup.toml"
    file.write_text(f"{line}\nsecrets_to = 1\n")

    with pytest.raises(SettingsError) as refused:
        BackupConfig.read(file)

    told = str(refused.value).splitlines()
    assert len(told) == 2
    assert told[0].startswith(f"{file}: {key}: ")
    assert told[1].startswith(f"{file}: secrets_to: ")


def test_file_that_is_none_is_told(tmp_path: Path) -> None:
    """It is not there; it is not TOML."""
    file = tmp_path / "backup.toml"
    with pytest.raises(SettingsError, match="cannot be read"):
        BackupConfig.read(file)
    file.write_text("to = ")
    with pytest.raises(SettingsError, match="not valid TOML"):
        BackupConfig.read(file)


@pytest.mark.parametrize(
    "text",
    [
        f"keep = {'9' * 5000}",
        f"to = {'[' * 5000}",
        ".".join("a" * 5000) + " = 1",
        'to = "/a\\u0000b"',
        'recipients = ["age1", "a\\u0000b"]',
        '[bucket]\naccess_key_file = "/a\\u0000b"',
    ],
)
def test_odd_file_is_told(tmp_path: Path, text: str) -> None:
    """In one line, whatever stands in it."""
    file = tmp_path / "backup.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        BackupConfig.read(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert len(str(refused.value).splitlines()) == 1


def test_bucket_has_a_table_of_its_own(tmp_path: Path) -> None:
    """Its URL is a place; each fault of the table is told by its key."""
    file = tmp_path / "backup.toml"
    file.write_text(
        'to = "s3://backups/a"\n[bucket]\nregion = "x y"\naccess_key = "AKIA"\n'
    )
    with pytest.raises(SettingsError) as refused:
        BackupConfig.read(file)
    first, second = str(refused.value).splitlines()
    assert first.startswith(f"{file}: bucket.access_key: unknown key")
    assert second.startswith(f"{file}: bucket.region: ")
    assert "AKIA" not in str(refused.value)

    file.write_text('to = "s3://backups/a"\n[bucket]\nretry_s = 5\n')
    read = BackupConfig.read(file)
    assert (read.to, read.bucket) == ("s3://backups/a", {"retry_s": 5})
    file.write_text('to = "s3://Backups"\nbucket = 3\n')
    with pytest.raises(SettingsError, match=r"to: must be .*\n.*bucket: must be a tab"):
        BackupConfig.read(file)
