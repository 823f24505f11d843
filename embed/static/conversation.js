// What the host says, in the order it says it. A valid init is always answered.

import { call, hasSession, openSession, renewSession } from "./api.js";
import { decodeBase64 } from "./base64.js";
import { Failure, Unreachable, ownFailure } from "./failure.js";
import { firstFault } from "./guard.js";
import { LEGACY_FIELD, MESSAGES, PROTOCOL_VERSION } from "./protocol.js";

const INIT_FIELDS = MESSAGES.init.fields.filter((field) => field.name !== "autoLoadFile");
const LATE_INIT_MS = 1000;

export class Conversation {
  #boot;
  #host;
  #machine;
  #flow;
  #clock;
  #acked = false;
  #held = null;
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
      "load.file": () => this.#loadFile(payload, origin, early),
      "session.renew": () => this.#renew(payload),
      cancel: () => (this.#machine.accepts("cancel") ? this.#flow.cancel("host") : null),
    }[name];
    this.#queue = this.#queue.then(act).catch((error) => this.#report(error, origin));
  }

  #report(error, origin) {
    if (error instanceof Failure) this.#host.post("error", error.payload, origin);
    else if (!(error instanceof Unreachable)) throw error;
  }

  async #init(payload, origin) {
    this.#check(payload);
    const { autoLoadFile, ...rest } = payload;
    const content = JSON.stringify([rest.sessionToken, rest.idemKey, rest.userData]);
    let refused = null;
    let session = null;
    if (content !== this.#held || !hasSession()) {
      try {
        session = await this.#open(rest);
        this.#held = content;
      } catch (error) {
        if (error.code !== "SESSION_IN_USE" || !this.#acked) return this.#refuse(error, origin);
        refused = error;
      }
    }
    this.#host.pin(origin);
    this.#acked = true;
    this.#host.post("handshake.ack", {
      protocol: PROTOCOL_VERSION,
      sessionExpiresAt: (session ?? this.#flow.session).expiresAt,
    });
    if (refused !== null) throw refused;
    await this.#go(session, autoLoadFile);
  }

  #check(payload) {
    if (payload === null) throw ownFailure("INIT_INVALID", { field: "payload" });
    if (LEGACY_FIELD in payload) {
      // Told without its value: that must go nowhere any more.
      call("legacy", { body: { session: this.#boot.session } }).catch(() => {});
      throw ownFailure("LEGACY_CREDENTIALS", { field: LEGACY_FIELD });
    }
    const { dni, cuil } = payload.userData ?? {};
    const fault = firstFault(payload, INIT_FIELDS) ?? (dni || cuil ? null : "userData.cuil");
    if (fault !== null) throw ownFailure("INIT_INVALID", { field: fault });
  }

  async #open(init) {
    for (;;) {
      try {
        return await openSession({ page: this.#boot.session, init });
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        await new Promise((again) => setTimeout(again, LATE_INIT_MS));
      }
    }
  }

  #refuse(error, origin) {
    if (error.category === "new_session") this.#flow.block(error);
    else this.#report(error, origin);
  }

  /** After the ack: the document, or wherever the session stands. */
  async #go(session, file) {
    if (session !== null) {
      this.#flow.claim = claimOf(JSON.parse(this.#held)[2]);
      this.#clock.set(session);
      this.#enter(session);
    } else if (this.#machine.is("signed")) {
      return this.#flow.replay();
    }
    if (file?.base64) {
      const mark = `${file.fileName}|${file.mime}|${await digest(file.base64)}`;
      if (mark === this.#file && session === null) return undefined;
      this.#file = mark;
      if (!this.#machine.is("authorising", "submitting", "reconciling")) {
        return this.#take(file);
      }
      throw ownFailure("SESSION_IN_USE");
    }
    return session === null ? undefined : this.#flow.resume(session);
  }

  #enter(session) {
    this.#flow.session = session;
    if (!this.#machine.is("authorising", "submitting", "reconciling", "signed")) {
      this.#machine.move("connected");
    }
  }

  async #loadFile(payload, origin, early) {
    if (early) return this.#report(ownFailure("HANDSHAKE_REQUIRED"), origin);
    if (!this.#machine.accepts("load.file")) throw ownFailure("SESSION_IN_USE");
    if (payload === null) throw ownFailure("INIT_INVALID", { field: "payload" });
    this.#file = null;
    return this.#take(payload);
  }

  async #take(file) {
    const fault = firstFault(file, MESSAGES["load.file"].fields);
    if (fault === "mime" || (file.mime && file.mime.toLowerCase() !== "application/pdf")) {
      throw ownFailure("MIME", { field: "mime" });
    }
    if (fault !== null) throw ownFailure("INIT_INVALID", { field: fault });
    const most = this.#boot.maxDocumentBytes;
    if ((file.base64 ?? "").length > Math.ceil(most / 3) * 4 + 1024) {
      throw ownFailure("DOCUMENT_TOO_LARGE", { limit: most, field: "base64" });
    }
    const bytes = decodeBase64(file.base64 ?? "");
    if (bytes === null) throw ownFailure("BASE64_INVALID", { field: "base64" });
    return this.#flow.take(bytes, file.fileName);
  }

  async #renew(payload) {
    if (!this.#machine.accepts("session.renew")) return;
    const fault = payload === null ? "payload" : firstFault(payload, MESSAGES["session.renew"].fields);
    if (fault !== null) throw ownFailure("INIT_INVALID", { field: fault });
    // Without a session there is nothing to carry over: init brings the new token.
    if (!hasSession()) return;
    const session = await renewSession(payload.sessionToken);
    this.#clock.set(session);
    if (this.#held) {
      const [, ...rest] = JSON.parse(this.#held);
      this.#held = JSON.stringify([payload.sessionToken, ...rest]);
    }
    const blocked = this.#machine.is("blocked");
    this.#flow.session = { ...this.#flow.session, ...session };
    if (blocked) {
      this.#machine.move("connected");
      await this.#flow.resume(session);
    }
  }
}

/** What of the host's data says who the signer is. */
function claimOf({ dni, cuil, email, name }) {
  return Object.fromEntries(
    Object.entries({ dni, cuil, email, name }).filter(([, value]) => value),
  );
}

async function digest(text) {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return new Uint8Array(bytes).join("-");
}
