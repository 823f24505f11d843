// What the host says, in the order it says it. A valid init is always answered, and at
// once: documents are opened beside the conversation, not in it.

import { call, hasSession, openSession, renewSession } from "./api.js";
import { decodeBase64, sha256 } from "./base64.js";
import { Stopped, failureOf, ownFailure } from "./failure.js";
import { described, firstFault, isPlain } from "./guard.js";
import { LEGACY_FIELD, MESSAGES, PROTOCOL_VERSION } from "./protocol.js";
import { notice } from "./screen.js";
import { pause } from "./stage.js";

/** So long a page that may be left waits for the page of another token to be asked for. */
const GRACE_MS = 1_500;
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
  /** Whether the page told the host by itself that the session is over. */
  #saysOver;
  /** Public id of the session that the page is of. */
  #page;
  /** Tokens that have pages of their own, which answer for them. */
  #others = new Set();

  constructor(boot, host, machine, flow, clock) {
    this.#boot = boot;
    this.#saysOver = boot.kind === "expired";
    this.#page = boot.session;
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
      "load.file": () => this.#loadFile(payload, early, origin),
      "session.renew": () => this.#renew(payload, origin),
      cancel: () => (this.#machine.accepts("cancel") ? this.#flow.cancel("host") : null),
    }[name];
    this.#queue = this.#queue.then(act).catch((error) => this.#report(error, origin));
    // A fault of ours must not silence the conversation.
    this.#queue = this.#queue.catch(reportError);
  }

  /** Say what went wrong, to the signer and to the host: nobody waits for nothing. */
  #report(error, origin) {
    if (error instanceof Stopped) return;
    const failure = failureOf(error);
    this.#flow.refuse(failure);
    this.#host.post("error", failure.payload, origin);
    if (failure !== error) throw error;
  }

  /** Have something done while the conversation goes on. */
  #beside(work, origin) {
    work.catch((error) => this.#report(error, origin)).catch(reportError);
  }

  // -- init -----------------------------------------------------------------------

  async #init(payload, origin) {
    check(payload, this.#boot);
    const { nonce, idemKey, sessionToken, userData } = payload;
    const content = JSON.stringify([sessionToken, idemKey, userData]);
    if (this.#others.has(sessionToken)) return undefined;
    const known = content === this.#held && hasSession() && !this.#machine.is("blocked");
    const wasLeft = this.#machine.is("cancelled");
    let session = null;
    let refused = null;
    if (!known) {
      try {
        if (this.#busy() && !this.#sameToken(sessionToken)) throw ownFailure("SESSION_IN_USE");
        const init = { nonce, idemKey, sessionToken, userData };
        session = await this.#open(init, documentOf(payload) !== null);
        // The page of that token answers: this one is being left.
        if (session === null) return undefined;
        await this.#flow.leaving;
        if (!wasLeft && this.#machine.is("cancelled")) return await this.#endLeft();
        this.#held = content;
      } catch (error) {
        if (error.code !== "SESSION_IN_USE" || !this.#acked) return this.#refuse(error, origin);
        refused = error;
      }
    }
    this.#ack(session ?? this.#flow.session, origin);
    if (refused !== null) throw refused;
    const file = documentOf(payload);
    if (session !== null) this.#beside(this.#enter(session, userData, file), origin);
    else if (this.#machine.is("signed")) this.#beside(this.#flow.guarded(() => this.#flow.replay()), origin);
    else await this.#again(file, origin);
    return undefined;
  }

  /** End a session that was opened while the signer left: the host knows that they did. */
  async #endLeft() {
    try {
      await this.#flow.persist(() => call("cancel", { body: { reason: "signer" } }));
    } catch (error) {
      // Signed or over already: there is nothing left to end.
      if (error.code !== "SESSION_IN_USE") throw error;
    }
  }

  /** Whether a signer has begun to authorise: then nothing is replaced any more. */
  #busy() {
    return this.#machine.is("authorising", "submitting", "reconciling");
  }

  #sameToken(token) {
    return this.#held !== null && JSON.parse(this.#held)[0] === token;
  }

  async #open(init, document) {
    const body = { page: this.#page, init, document };
    const open = (more) => this.#flow.persist(() => openSession({ ...body, ...more }));
    let session = await open();
    if (session === null) {
      // A host that gives its frame another token may send init while the page of that
      // token is on its way: an ack of this page would have it wait for nothing.
      await pause(GRACE_MS);
      session = await open({ adopt: true });
    }
    if (session === null) this.#others.add(init.sessionToken);
    else this.#page = session.id;
    return session;
  }

  #refuse(error, origin) {
    // Said by the page itself before this init came: not said a second time.
    const isSaid = this.#saysOver && error.code === "SESSION_TOKEN_EXPIRED";
    this.#saysOver = false;
    if (isSaid) return;
    if (error.category === "new_session") this.#flow.block(error);
    else this.#report(error, origin);
  }

  #ack({ expiresAt }, origin) {
    this.#host.pin(origin);
    this.#acked = true;
    this.#saysOver = false;
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
    this.#flow.begin(session);
    if (!this.#busy() && !(again && this.#machine.is("signed"))) {
      this.#machine.move("connected");
    }
    if (file !== null) this.#file = markOf(file);
    if (file !== null && session.state === "open") return this.#take(file, "autoLoadFile.");
    await this.#flow.guarded(() => this.#flow.resume(session));
    if (file !== null) {
      const sent = await sha256(this.#bytesOf(file, "autoLoadFile."));
      if (sent !== session.document?.sha256) throw ownFailure("SESSION_IN_USE");
    }
    return undefined;
  }

  /** The init that holds came again, perhaps with another document. */
  async #again(file, origin) {
    if (file === null) return;
    const mark = markOf(file);
    if ((await mark) === (await this.#file)) return;
    if (!this.#machine.accepts("load.file")) throw ownFailure("SESSION_IN_USE");
    this.#file = mark;
    this.#beside(this.#take(file, "autoLoadFile."), origin);
  }

  // -- documents and renewal --------------------------------------------------------

  #loadFile(payload, early, origin) {
    if (early) throw ownFailure("HANDSHAKE_REQUIRED");
    if (!this.#machine.accepts("load.file")) throw ownFailure("SESSION_IN_USE");
    this.#file = null;
    this.#beside(this.#take(payload ?? {}, ""), origin);
  }

  /** From now on the document is the host's; a signer's own would be another one. */
  #take(file, prefix) {
    return this.#flow.take(() => this.#bytesOf(file, prefix), file.fileName, { prefix });
  }

  /**
   * The bytes of a document object, if it is as the contract has it.
   * @param {object} file
   * @param {string} prefix of its fields' paths: it comes in two messages.
   */
  #bytesOf(file, prefix) {
    const at = (name) => ({ field: prefix + name });
    if (file.mime && String(file.mime).toLowerCase() !== "application/pdf") {
      throw ownFailure("MIME", at("mime"));
    }
    const { fields } = MESSAGES["load.file"];
    const fault = firstFault(file, fields);
    const wrong = (name) => ownFailure("INIT_INVALID", { ...at(name), ...described(name, fields) });
    if (fault !== null) throw wrong(fault);
    if (!file.base64) {
      throw prefix ? wrong("base64") : ownFailure("DOCUMENT_EMPTY", at("base64"));
    }
    const most = this.#boot.maxDocumentBytes;
    const tooLarge = () => ownFailure("DOCUMENT_TOO_LARGE", { limit: most, ...at("base64") });
    if (file.base64.length > Math.ceil(most / 3) * 4) throw tooLarge();
    const bytes = decodeBase64(file.base64);
    if (bytes === null) throw notBase64(file.base64, at("base64"));
    if (bytes.length > most) throw tooLarge();
    return bytes;
  }

  async #renew(payload, origin) {
    // Without a session there is nothing to carry over: init brings the new token.
    if (!this.#machine.accepts("session.renew") || !hasSession()) return;
    const { fields } = MESSAGES["session.renew"];
    const fault = payload === null ? "payload" : firstFault(payload, fields);
    if (fault !== null) throw ownFailure("INIT_INVALID", { field: fault });
    const { sessionToken } = payload;
    // An upload under way is of the session so far.
    await this.#flow.settled;
    const session = await this.#flow.persist(() => renewSession(sessionToken));
    this.#held = JSON.stringify([sessionToken, ...JSON.parse(this.#held).slice(1)]);
    this.#page = session.id;
    this.#clock.set(session);
    notice(null);
    const blocked = this.#machine.is("blocked");
    this.#flow.session = session;
    if (!blocked) return;
    this.#machine.move("connected");
    this.#beside(this.#flow.guarded(() => this.#flow.resume(session)), origin);
  }
}

/** The document of an init; null when it brings none. */
function documentOf({ autoLoadFile }) {
  if (autoLoadFile === undefined || autoLoadFile === null) return null;
  const isNamedAlone = isPlain(autoLoadFile) && !("base64" in autoLoadFile);
  // The contract: it is preloaded if its content is there. Empty it is a mistake.
  if (isNamedAlone && Object.keys(autoLoadFile).length > 0) return null;
  return isPlain(autoLoadFile) ? autoLoadFile : {};
}

/** Why a text is not Base64: hosts send two things besides, each mended otherwise. */
function notBase64(text, at) {
  const values = { prefix: /^data:/i.test(text), blanks: /\s/.test(text), ...at };
  return ownFailure("BASE64_INVALID", values);
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
  if (fault !== null) {
    const { fields } = MESSAGES.init;
    throw ownFailure("INIT_INVALID", { field: fault, ...described(fault, fields) });
  }
}

/** What of the host's data says who the signer is. */
function claimOf({ dni, cuil, email, name }) {
  return Object.fromEntries(
    Object.entries({ dni, cuil, email, name }).filter(([, value]) => value),
  );
}

/** Tells one document object from another without keeping it. */
async function markOf({ fileName, mime, base64 }) {
  const digest = await sha256(new TextEncoder().encode(String(base64 ?? "")));
  return JSON.stringify([fileName, mime, digest]);
}
