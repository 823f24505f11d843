"""The host on which `rubrica hsm init` runs: its key, its admission, the formats.

The key is a file of this host and is never in the HSM: PIN and database together must
not make a host that fronts believe.
"""

from appliance.domain.signing.activation import ActivationFormat
from appliance.secrets.host_key import fingerprint
from appliance.secrets.own_host import pin_format, prepare_own_host
from appliance.settings import Settings, SettingsError
from hsm_config.provisioning.init_report import ProvisionReport


def provision(settings: Settings, report: ProvisionReport, *, is_new: bool) -> None:
    """Make the host's key and admit the host here; pin the newest format.

    Args:
        settings: the installation.
        report: told what was made and what was there.
        is_new: the installation has no root yet: no earlier format counts in it.

    Raises:
        SettingsError: a file cannot be used or written.
    """
    own = prepare_own_host(settings)
    report.note(f"host key {settings.host_key_file}", made=own.is_key_new)
    told = f"signing host {own.name} ({fingerprint(own.public)}) admitted here"
    report.note(told, made=own.is_newly_admitted)
    path = settings.activation_format_file
    if is_new and not path.exists():
        try:
            pin_format(settings, max(ActivationFormat))
        except OSError as exc:
            msg = f"{path}: cannot be written ({exc.strerror})"
            raise SettingsError(msg) from exc
        report.note(f"oldest format of activations {path}", made=True)
