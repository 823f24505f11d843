"""What the core needs from outside; adapters stand in storage and worker.

Each port has one contract test that runs on every adapter of it.
"""

from appliance.domain.ports.documents import (
    BlobMaintenance,
    BlobStore,
    DocumentBytes,
    DocumentKeys,
    DocumentMemory,
    DocumentStream,
)
from appliance.domain.ports.inspection import PdfInspector
from appliance.domain.ports.notifications import (
    CompletionNotifier,
    Subscription,
    WorkNotifier,
)
from appliance.domain.ports.secrets import (
    AdmittedHostKeys,
    LookupIndex,
    OldestFormat,
    Sealer,
    WorkerIdentities,
)
from appliance.domain.ports.timestamps import (
    OwnTimestampAuthority,
    TimestampAuthority,
)

__all__ = [
    "AdmittedHostKeys",
    "BlobMaintenance",
    "BlobStore",
    "CompletionNotifier",
    "DocumentBytes",
    "DocumentKeys",
    "DocumentMemory",
    "DocumentStream",
    "LookupIndex",
    "OldestFormat",
    "OwnTimestampAuthority",
    "PdfInspector",
    "Sealer",
    "Subscription",
    "TimestampAuthority",
    "WorkNotifier",
    "WorkerIdentities",
]
