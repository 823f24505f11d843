"""An appliance whose documents are in a bucket, by a link that can be cut.

with running_bucket_appliance() as bucket_appliance:
    with bucket_appliance.link.cut():
        …
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.appliance.appliance import Appliance
from tests.support.factories.document_storage import BucketStorage
from tests.support.installation.settings import toml
from tests.support.processes.scratch import short_folder
from tests.support.services.s3 import S3Server
from tests.support.services.tcp_links import Link


@dataclass(frozen=True)
class BucketAppliance:
    """All of it."""

    appliance: Appliance
    server: S3Server
    link: Link
    place: BucketStorage
    """The bucket, asked without the link."""

    def copy_to_folder(self) -> None:
        """Copy what the bucket has to where the folder of documents would be."""
        self.place.copy_to(self.appliance.settings.documents_dir)

    def copy_to_bucket(self, folder: Path) -> None:
        """Copy what a folder of documents has to the bucket."""
        for path in folder.rglob("*"):
            if path.is_file() and path.name != ".reserve":
                name = path.relative_to(folder).as_posix()
                self.place.write(name, path.read_bytes())


@contextmanager
def running_bucket_appliance(
    *, in_bucket: bool = True, signing: str = ""
) -> Iterator[BucketAppliance]:
    """Set one up, and start it.

    Args:
        in_bucket: whether it has its documents there from the start.
        signing: as of `Appliance`.
    """
    with (
        short_folder() as folder,
        short_folder() as keys,
        S3Server.running(keys) as server,
        Link(server.port) as link,
    ):
        bucket = f"{server.new_bucket()}/rubrica"
        documents = toml({"documents": server.tables(bucket, link.port)})
        appliance = Appliance(
            folder, signing=signing, more=documents if in_bucket else ""
        )
        place = BucketStorage(server.settings(bucket))
        try:
            appliance.set_up()
            if in_bucket:
                # What was set up for all tests has a folder.
                marked = appliance.rubrica("migrate")
                assert marked.returncode == 0, marked.stderr
            appliance.start()
            yield BucketAppliance(appliance, server, link, place)
        finally:
            appliance.close()
