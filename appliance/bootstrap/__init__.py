"""The one place where storage and services are built and closed, by hand.

A worker gets a `Core`: the record, documents and notifiers. A front (and the command
line) gets a `ServiceRegistry` on top of it, the console an `AdminServiceRegistry`,
each with the keys of its role's secret files and the use cases that need them.
"""

from appliance.bootstrap.admin import AdminServiceRegistry, open_admin
from appliance.bootstrap.certificates import (
    open_auto_renewal,
    open_credential_faults,
    open_expiry,
    open_trust,
)
from appliance.bootstrap.core import (
    Core,
    WorkChannel,
    data_sealer,
    document_sealer,
    open_core,
)
from appliance.bootstrap.documents import open_documents
from appliance.bootstrap.front import ServiceRegistry, open_front
from appliance.bootstrap.heartbeat import heartbeat
from appliance.bootstrap.known_addresses import known_addresses
from appliance.bootstrap.secrets import open_secret_rotation

__all__ = [
    "AdminServiceRegistry",
    "Core",
    "ServiceRegistry",
    "WorkChannel",
    "data_sealer",
    "document_sealer",
    "heartbeat",
    "known_addresses",
    "open_admin",
    "open_auto_renewal",
    "open_core",
    "open_credential_faults",
    "open_documents",
    "open_expiry",
    "open_front",
    "open_secret_rotation",
    "open_trust",
]
