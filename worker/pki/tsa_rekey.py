"""`rubrica hsm renew-tsa`: a new key of the internal TSA, which workers take up.

    rubrica hsm renew-tsa
    rubrica hsm renew-tsa --retire 1

For an operator with access to the HSM; `docs/timestamps.md` tells the rest.
"""

import argparse
from typing import Final

from appliance.bootstrap import Core
from appliance.cli.terminal import run_async, say
from appliance.domain.errors import HsmUnavailableError
from appliance.domain.keys.hsm_keys import TokenRole
from appliance.domain.pki.certificates import CertificateRecord
from appliance.pki.publication import Publishing
from appliance.pki.tsa.tsa_certificates import TsaCertificates
from appliance.settings import Settings
from hsm_config.pkcs11.key_pairs import spki
from hsm_config.profile import load_profile
from hsm_config.provisioning.ca_certificates import read_ca
from hsm_config.provisioning.tsa_renewal import destroy_tsa_key, next_tsa_key
from worker.hsm.cli import serving_core
from worker.hsm.connection import HsmStatus
from worker.hsm.session import HsmSession
from worker.pades.algorithms import key_of
from worker.pki.certificate_authority import Authority
from worker.pki.tsa import InternalTsa

_ACTOR: Final = "operator"


def renew_tsa(args: argparse.Namespace) -> int:
    """Run the command; its exit status."""

    async def work(settings: Settings) -> int:
        async with serving_core(settings) as core:
            kept = TsaCertificates(core.store, core.clock)
            if args.retire is not None:
                return await _retire(settings, kept, args.retire)
            return await _renew(core, kept)

    return run_async(work, args)


async def _renew(core: Core, kept: TsaCertificates) -> int:
    settings = core.settings
    certified = {spki(key_of(each.der)) for each in await kept.all()}
    generation, made = next_tsa_key(settings, certified)
    say(f"TSA key {generation} was made" if made else f"TSA key {generation} is there")
    await kept.key_created(generation, _ACTOR)
    held = await _certify(core)
    until = held.not_after.date().isoformat()
    say(f"certificate {held.serial} until {until}; workers stamp by it from now on")
    return 0


async def _certify(core: Core) -> CertificateRecord:
    """Have the CA certify the newest key, on the record.

    Raises:
        HsmUnavailableError: the pki token cannot be used.
        HsmRefusedError: the CA is out of date, or the key is compromised.
    """
    settings = core.settings
    session = HsmSession(
        settings.hsm,
        load_profile(settings.hsm.profile),
        environment=settings.environment,
    )
    async with session:
        if session.status_of(TokenRole.PKI) is not HsmStatus.READY:
            raise HsmUnavailableError(session.reason)
        authority = Authority(session, read_ca(settings), settings)
        publishing = Publishing(core.store, core.clock, settings.pki, _ACTOR)
        accuracy_s = settings.timestamps.accuracy_s
        tsa = InternalTsa(session, authority, publishing, core.clock, accuracy_s)
        _, held = await tsa.certify()
    return held


async def _retire(settings: Settings, kept: TsaCertificates, generation: int) -> int:
    if not destroy_tsa_key(settings, generation):
        say(f"there is no TSA key {generation}")
        return 1
    await kept.key_retired(generation, _ACTOR)
    say(f"TSA key {generation} was destroyed")
    return 0
