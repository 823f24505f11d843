// What the host says, in the order it says it. A valid init is always answered.

import { call, hasSession, openSession, renewSession } from "./api.js";
import { decodeBase64, sha256 } from "./base64.js";
import { Failure, ownFailure } from "./failure.js";
import { firstFault } from "./guard.js";
import { LEGACY_FIELD, MESSAGES, PROTOCOL_VERSION } from "./protocol.js";
import { notice } from "./screen.js";

const INIT_FIELDS = MESSAGES.init.fields.filter((field) => field.name !== "autoLoadFile");

export class Conversation {
  #boot;
  #host;
  #machine;
  #flow;
  #clock;
  #acked = false;
  /** The init that holds: its token and everything it said of the signer. */
  #held = null;
  /** The document that came with it, to know it when it comes again. */
  #file = null;
  #queue = Promise.resolve();

  constructor(boot, host, machine, flow, clock) {
    this.#boot = boot;
    this.#host = host;
    this.#machine = machine;
    this.#flow = flow;
    this.#clock = clock;
  }

  /**
   * Take a message of the host.
   * @param {string} name
   * @param {object|null} payload null when it is none that we read.
   * @param {string} origin
   */
  receive(name, payload, origin) {
    // Judged when it comes, not when its turn comes: who sends before the ack was
    // sent cannot have waited for it.
    const early = !this.#acked;
    const act = {
      init: () => this.#init(payload, origin),
      "load.file": () => this.#loadFile(payload, early),
      "session.renew": () => this.#renew(payload),
      cancel: () => (this.#machine.accepts("cancel") ? this.#flow.cancel("host") : null),
    }[name];
    this.#queue = this.#queue.then(act).catch((error) => this.#report(error, origin));
    // A fault of ours must not silence the conversation.
    this.#queue = this.#queue.catch(reportError);
  }

  #report(error, origin) {
    if (!(error instanceof Failure)) throw error;
    this.#host.post("error", error.payload, origin);
  }

  // -- init -----------------------------------------------------------------------

  async #init(payload, origin) {
    check(payload, this.#boot);
    const { nonce, idemKey, sessionToken, userData } = payload;
    const content = JSON.stringify([sessionToken, idemKey, userData]);
    const known = content === this.#held && hasSession() && !this.#machine.is("blocked");
    let session = null;
    let refused = null;
    if (!known) {
      try {
        if (this.#busy() && !this.#sameToken(sessionToken)) throw ownFailure("SESSION_IN_USE");
        session = await this.#open({ nonce, idemKey, sessionToken, userData });
        this.#held = content;
      } catch (error) {
        if (error.code !== "SESSION_IN_USE" || !this.#acked) return this.#refuse(error, origin);
        refused = error;
      }
    }
    this.#ack(session ?? this.#flow.session, origin);
    if (refused !== null) throw refused;
    if (session !== null) return this.#enter(session, userData, payload.autoLoadFile);
    if (this.#machine.is("signed")) return this.#flow.guarded(() => this.#flow.replay());
    return this.#again(payload.autoLoadFile);
  }

  /** Whether a signer has begun to authorise: then nothing is replaced any more. */
  #busy() {
    return this.#machine.is("authorising", "submitting", "reconciling");
  }

  #sameToken(token) {
    return this.#held !== null && JSON.parse(this.#held)[0] === token;
  }

  #open(init) {
    return this.#flow.persist(() => openSession({ page: this.#boot.session, init }));
  }

  #refuse(error, origin) {
    if (error.category === "new_session") this.#flow.block(error);
    else this.#report(error, origin);
  }

  #ack({ expiresAt }, origin) {
    this.#host.pin(origin);
    this.#acked = true;
    this.#host.post("handshake.ack", {
      protocol: PROTOCOL_VERSION,
      sessionExpiresAt: expiresAt,
    });
  }

  /** A session was opened: its document, or wherever it stands. */
  async #enter(session, userData, file) {
    const again = this.#flow.session?.id === session.id;
    this.#clock.set(session);
    this.#flow.claim = claimOf(userData);
    this.#flow.session = session;
    if (!this.#busy() && !(again && this.#machine.is("signed"))) {
      this.#machine.move("connected");
    }
    if (file?.base64 && session.state === "open") {
      this.#file = await markOf(file);
      return this.#take(file);
    }
    await this.#flow.guarded(() => this.#flow.resume(session));
    if (file?.base64 && (await sha256(this.#bytesOf(file))) !== session.document?.sha256) {
      throw ownFailure("SESSION_IN_USE");
    }
    return undefined;
  }

  /** The init that holds came again, perhaps with another document. */
  async #again(file) {
    if (!file?.base64) return undefined;
    const mark = await markOf(file);
    if (mark === this.#file) return undefined;
    if (!this.#machine.accepts("load.file")) throw ownFailure("SESSION_IN_USE");
    this.#file = mark;
    return this.#take(file);
  }

  // -- documents and renewal --------------------------------------------------------

  async #loadFile(payload, early) {
    if (early) throw ownFailure("HANDSHAKE_REQUIRED");
    if (!this.#machine.accepts("load.file")) throw ownFailure("SESSION_IN_USE");
    if (payload === null) throw ownFailure("INIT_INVALID", { field: "payload" });
    this.#file = null;
    return this.#take(payload);
  }

  #take(file) {
    return this.#flow.take(this.#bytesOf(file), file.fileName);
  }

  /** The bytes of a document object, if it is as the contract has it. */
  #bytesOf(file) {
    if (file.mime && String(file.mime).toLowerCase() !== "application/pdf") {
      throw ownFailure("MIME", { field: "mime" });
    }
    const fault = firstFault(file, MESSAGES["load.file"].fields);
    if (fault !== null) throw ownFailure("INIT_INVALID", { field: fault });
    if (!file.base64) throw ownFailure("DOCUMENT_EMPTY", { field: "base64" });
    const most = this.#boot.maxDocumentBytes;
    if (file.base64.length > Math.ceil(most / 3) * 4) {
      throw ownFailure("DOCUMENT_TOO_LARGE", { limit: most, field: "base64" });
    }
    const bytes = decodeBase64(file.base64);
    if (bytes === null) throw ownFailure("BASE64_INVALID", { field: "base64" });
    return bytes;
  }

  async #renew(payload) {
    // Without a session there is nothing to carry over: init brings the new token.
    if (!this.#machine.accepts("session.renew") || !hasSession()) return;
    const { fields } = MESSAGES["session.renew"];
    const fault = payload === null ? "payload" : firstFault(payload, fields);
    if (fault !== null) throw ownFailure("INIT_INVALID", { field: fault });
    const { sessionToken } = payload;
    const session = await this.#flow.persist(() => renewSession(sessionToken));
    this.#held = JSON.stringify([sessionToken, ...JSON.parse(this.#held).slice(1)]);
    this.#clock.set(session);
    notice(null);
    const blocked = this.#machine.is("blocked");
    this.#flow.session = session;
    if (!blocked) return;
    this.#machine.move("connected");
    await this.#flow.guarded(() => this.#flow.resume(session));
  }
}

/** Throw what is wrong with an init. */
function check(payload, boot) {
  if (payload === null) throw ownFailure("INIT_INVALID", { field: "payload" });
  if (LEGACY_FIELD in payload) {
    // Told without its value: that must go nowhere any more.
    call("legacy", { body: { session: boot.session } }).catch(() => {});
    throw ownFailure("LEGACY_CREDENTIALS", { field: LEGACY_FIELD });
  }
  const { dni, cuil } = payload.userData ?? {};
  const fault = firstFault(payload, INIT_FIELDS) ?? (dni || cuil ? null : "userData.cuil");
  if (fault !== null) throw ownFailure("INIT_INVALID", { field: fault });
}

/** What of the host's data says who the signer is. */
function claimOf({ dni, cuil, email, name }) {
  return Object.fromEntries(
    Object.entries({ dni, cuil, email, name }).filter(([, value]) => value),
  );
}

/** Tells one document object from another without keeping it. */
async function markOf({ fileName, mime, base64 }) {
  const digest = await sha256(new TextEncoder().encode(String(base64)));
  return JSON.stringify([fileName, mime, digest]);
}
