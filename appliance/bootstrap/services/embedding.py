"""Services of the signing frame: sessions, and how each goes on."""

from dataclasses import dataclass

from appliance.bootstrap.services.foundation import Foundation
from appliance.bootstrap.services.signing import SigningServices
from appliance.embedding.batch import EmbedSessionBatches
from appliance.embedding.ceremony import Ceremony
from appliance.embedding.identification import EmbedSessionIdentity
from appliance.embedding.request import EmbedSessionRequests
from appliance.embedding.session import Sessions
from appliance.embedding.session_steps import SessionSteps
from appliance.embedding.session_views import EmbedSessionViews
from appliance.embedding.signing import EmbedSessionSigning


@dataclass(frozen=True)
class EmbeddingServices:
    """What the frame asks for its sessions."""

    sessions: Sessions
    progress: SessionSteps
    """How a session of the frame goes on."""
    framing: Ceremony
    frame_signing: EmbedSessionSigning
    frame_batches: EmbedSessionBatches


def embedding_services(on: Foundation, signing: SigningServices) -> EmbeddingServices:
    """Make them."""
    store, clock, settings, core = on.store, on.clock, on.settings, on.core
    sessions = Sessions(store, on.lookup, clock, settings)
    progress = SessionSteps(store, clock)
    views = EmbedSessionViews(store, clock, settings.verify_url, trial=settings.trial)
    identity = EmbedSessionIdentity(
        store,
        on.lookup,
        on.sealer,
        clock,
        on.throttle,
        progress,
        settings.auth.codes_per_session,
    )
    frame_signing = EmbedSessionSigning(
        store,
        clock,
        views,
        signing.signing,
        signing.requests,
        signing.links,
        settings.web.base_url,
        on.stamping,
        core.inspector,
    )
    return EmbeddingServices(
        sessions=sessions,
        progress=progress,
        framing=Ceremony(
            store=store,
            documents=core.documents,
            inspector=core.inspector,
            clock=clock,
            sessions=sessions,
            progress=progress,
            identity=identity,
            frame_requests=EmbedSessionRequests(store, on.lookup, clock, progress),
            intake=signing.intake,
            requests=signing.requests,
            views=views,
            settings=settings.documents,
        ),
        frame_signing=frame_signing,
        frame_batches=EmbedSessionBatches(
            store, frame_signing, signing.signing, signing.requests, progress, views
        ),
    )
