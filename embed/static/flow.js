// The ceremony up to the proven signer: a document on the screen, and who signs it.
// The server decides; what is kept here is what is on the screen.

import { call } from "./api.js";
import { sha256 } from "./base64.js";
import { Batch } from "./batch.js";
import { byId, fill } from "./dom.js";
import { Failure, Stopped, failureOf, isRefusal, ownFailure } from "./failure.js";
import { t } from "./i18n.js";
import { countDown } from "./next_code.js";
import { alert, announce, retrying, run, waitFor } from "./screen.js";
import { DocumentSource, WHOLE_AT_MOST } from "./source.js";
import { LOOK_AGAIN_MS, SESSION_OVER, pause } from "./stage.js";
import * as steps from "./steps.js";
import { showCame, toolbar } from "./viewer.js";

const CODE = /^\d{6}$/;
/** A file at least so large takes a while to be sent. */
const TOLD_FROM = 262_144;
const UPLOADS = 4; // tries while an earlier one is still under way

export class Flow extends Batch {
  /** Who the host says that the signer is. */
  claim = {};
  #own = false;
  /** Whether the signer says who they are to refuse the document. */
  #rejecting = false;
  /** Whether the signer typed who they are. */
  #typed = false;
  /** Fingerprint of the document that was read to its step's end. */
  #read = null;
  _painted = Promise.resolve();
  /** Whether the document that is shown was on the screen yet. */
  _isPainted = true;
  /** Fingerprint of the document that was picked from the list. */
  #picked = null;
  /** Where a large document on the screen comes from, and who saves it meanwhile. */
  #source = null;
  #saving = null;
  #turn = 0;
  #taking = Promise.resolve();
  /** Why the host's last document was refused, and how to have it looked at again. */
  #refusal = null;

  get _begun() {
    return super._begun || this.#own || this.#typed || (this.session !== null && this.#shown());
  }

  /** Settles when what changes the document now is done. */
  get settled() {
    return this.#taking;
  }

  /**
   * Change the document, one after the other: the server's last word must be about
   * the last one. Of several in a row the last one counts.
   * @param {(holds: () => boolean) => Promise<unknown>} work asks after each wait
   *   whether it still counts.
   */
  #inTurn(work) {
    const turn = (this.#turn += 1);
    // What the one before still sends or fetches is of no use any more.
    this._transfer();
    const holds = () =>
      turn === this.#turn && !this._machine.is("blocked", "cancelled", "rejected");
    const done = this.#taking.then(() => (holds() ? work(holds) : undefined));
    this.#taking = done.catch(() => {});
    return done;
  }

  /** From now on it is about this session; what was said of another one is over. */
  begin(session) {
    if (session.id !== this.session?.id) {
      this.#refusal = null;
      this.#typed = this._whoFirst = false;
      this._reason = "";
    }
    this.session = session;
  }

  /** Go on from what the server says of a session. */
  resume(session) {
    return this.#inTurn(() => this.#resumeNow(session));
  }

  async #resumeNow(session) {
    this.session = session;
    if (session.batch) {
      this.#opening();
      return this.batch();
    }
    if (session.state === "signed") {
      this.finish();
      return this._told;
    }
    if (this._isOver()) return undefined;
    if (session.state === "failed") return this.fail(this.recorded(session));
    if (session.document && !this.#shown()) await this.#reopened();
    else if (session.state !== "signing") this._viewer.fill();
    if (session.state === "signing") return this.reconcile();
    if (session.state === "authorised") return this.authorised();
    return session.document ? this.read() : this.pick();
  }

  /** Whether the session's document is the one on the screen. */
  #shown() {
    const { sha256: shown } = byId("viewer").dataset;
    return shown !== undefined && shown === this.session.document?.sha256;
  }

  /** Something is being opened, of which no bytes are counted. */
  #opening() {
    this.step(() => steps.loading({ cancel: () => this.leave() }));
  }

  // -- the document -------------------------------------------------------------

  pick() {
    this._machine.move("connected");
    if (this.#isHosts) return this.#awaited();
    // Opened for one request or a batch: it shows once it is certain who is here.
    if (this.session?.forRequest) return this.identified(() => this.#wanted());
    this.step(() =>
      steps.pick({
        integrator: this._boot.integrator,
        choose: (file) => this.guarded(() => this.#chooseFile(file)),
        pending: () => this.guarded(() => this.identified(() => this.#requests()), steps.lookingUp),
        cancel: () => this.leave(),
      }),
    );
  }

  async #chooseFile(file) {
    if (!file) return;
    const { maxDocumentBytes: limit } = this._boot;
    const bytes = file.size > limit ? null : new Uint8Array(await file.arrayBuffer());
    const read = () => {
      if (bytes === null) throw ownFailure("DOCUMENT_TOO_LARGE", { limit });
      return bytes;
    };
    await this.take(read, file.name, { own: true });
  }

  /** Whether the host has sent a document, be it one that was refused. */
  get #isHosts() {
    return this.#refusal !== null || this.session?.hostDocument === true;
  }

  /** No document that can be signed: the host is to send another one. */
  #awaited() {
    const { failure, again } = this.#refusal ?? {};
    const { integrator } = this._boot;
    const cancel = () => this.leave();
    this.step(() => steps.refused({ failure, integrator, again, cancel }));
  }

  /**
   * Take a document in; of several in a row the last one stays.
   * @param {() => Uint8Array} read its bytes, or a failure.
   * @param {string} name
   * @param {{own?: boolean, prefix?: string}} [how] whether the signer brought it; else
   *   the prefix of its fields' paths in the host's message.
   */
  take(read, name, how = {}) {
    return this.#inTurn((holds) => this.#takeNow(read, name, how, holds));
  }

  async #takeNow(read, name, { own = false, prefix = "" }, holds) {
    this._machine.move("loading");
    const signal = this._transfer();
    this.#opening();
    // The host hears that it was understood before a large document is worked on.
    await pause(0);
    try {
      const bytes = read();
      const giveUp = own && (() => ({ label: t("Do not send it"), act: () => this.#giveUp() }));
      const progress = bytes.length >= TOLD_FROM ? this._moving("sending", giveUp || undefined) : null;
      const session = await this.#upload({ file: bytes, fileName: name, own, signal, progress });
      if (!holds()) return undefined;
      this.session = session;
      this.#own = own;
      this.#refusal = null;
      if (this.session.state === "signed") return this.finish();
      if (this._isOver()) return undefined;
      await this.#openKept(bytes, signal);
      if (!holds()) return undefined;
      if (this.session.state === "authorised") return await this.authorised();
      return this.read();
    } catch (error) {
      if (error instanceof Stopped || !holds()) return undefined;
      if (!own) {
        const failure = failureOf(error).ofDocument(prefix);
        return this.#refused(failure, () => this.take(read, name, { prefix }));
      }
      if (this.session.document && this.#shown()) this.read();
      else this.pick();
      return this.tell(error, { quiet: own, file: name });
    }
  }

  /** Do not send a file after all. It may have arrived: the service says. */
  #giveUp() {
    this._transfer();
    return this.guarded(async () => {
      const session = await this.persist(() => call("state"));
      const { sha256: shown } = byId("viewer").dataset;
      if (session.document && session.document.sha256 !== shown) this.#own = true;
      return this.resume(session);
    });
  }

  /** Send a document; one whose answer was lost may still be under way. */
  async #upload(file) {
    for (let left = UPLOADS; ; left -= 1) {
      try {
        return await this.persist(() => call("document", file));
      } catch (error) {
        if (error.code !== "IN_PROGRESS" || left === 0) throw error;
        await pause(LOOK_AGAIN_MS);
      }
    }
  }

  /** The host's document cannot be had: neither is an earlier one what it wants. */
  #refused(error, again) {
    const failure = failureOf(error);
    if (SESSION_OVER.has(failure.code)) return this.block(failure);
    // What the page itself refused never reached the service, which is to remember it.
    if (failure.isOwn) call("sent", { body: {} }).catch(() => {});
    failure.toConsole();
    this.#refusal = { failure, again: failure.category === "retry" ? again : null };
    this.#showNone();
    this.pick();
    this._host.post("error", failure.payload);
    if (failure !== error) throw error;
    return undefined;
  }

  /**
   * Show what is wrong with a message of the host.
   * @param {import("./failure.js").Failure} failure
   */
  refuse(failure) {
    failure.toConsole();
    if (this._machine.is("boot", "ready", "connected")) {
      const cancel = () => this.leave();
      const { integrator } = this._boot;
      this.step(() => steps.refused({ failure, integrator, cancel }));
    } else if (this._machine.is("reviewing", "authorising", "blocked")) {
      alert(() => failure.toSigner(this._boot.integrator));
    }
  }

  /** Show what was taken in of a file: it, or the copy that mended its damage. */
  async #openKept(bytes, signal) {
    const isSame = (await sha256(bytes)) === this.session.document.sha256;
    return isSame ? this.#open(bytes) : this.#fetch(signal, this._moving("fetching"));
  }

  /** Show the session's document; quietly: the step stays until it is there. */
  async _reopen({ quietly = false } = {}) {
    this._machine.move("loading");
    const signal = this._transfer();
    const wait = quietly ? waitFor(() => t("Opening the document")) : null;
    const progress = wait ? wait.progress : this._moving("fetching");
    try {
      await this.#fetch(signal, progress);
    } catch (error) {
      if (error.code !== "DOCUMENT_CHANGED") throw error;
      // Another one took its place since the service told of it: once more, and no more.
      this.session = await this.persist(() => call("state"));
      if (!this.session.document) throw error;
      await this.#fetch(signal, progress);
    } finally {
      wait?.end();
    }
  }

  /**
   * Show the session's document, or why it cannot be had and a way to try again.
   * @throws {Stopped} it cannot be had: that is said.
   */
  async #reopened() {
    try {
      await this._reopen();
    } catch (error) {
      if (!(error instanceof Failure) || SESSION_OVER.has(error.code)) throw error;
      this.#showNone();
      this._tellHost(error);
      const { integrator } = this._boot;
      const again = error.category === "retry" ? () => this.guarded(() => this.resume(this.session)) : null;
      this.step(() => steps.refused({ failure: error, integrator, again, cancel: () => this.leave() }));
      throw new Stopped();
    }
  }

  /** Fetch and show the session's document; of a large one its first page at first. */
  async #fetch(signal, progress) {
    const { document: wanted } = this.session;
    if (wanted.size <= WHOLE_AT_MOST) {
      return this.#open(await this.persist(() => call("document", { raw: true, signal, progress })));
    }
    const source = new DocumentSource("document", wanted);
    const stop = () => source.close();
    source.progress = progress;
    source.late = (why) => retrying(why && (() => lateness(why)));
    source.failed = (error) => this.#sourceFailed(source, error);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
    try {
      return await this.#open(source);
    } finally {
      // From here on it is the viewer's.
      signal.removeEventListener("abort", stop);
    }
  }

  async #open(file) {
    const shown = this.session.document;
    const source = file instanceof DocumentSource ? file : null;
    // What is shown is what will be signed, or nothing is. What comes in parts bears the
    // hash with each of them, and is hashed when all of it is here.
    if (!source && (await sha256(file)) !== shown.sha256) throw ownFailure("DOCUMENT_CHANGED");
    delete byId("viewer").dataset.sha256;
    const { painted } = await this._viewer.open(file, shown.pages);
    if (source?.error) throw source.error;
    this.#source = source;
    this._painted = painted;
    this._isPainted = false;
    byId("viewer").dataset.sha256 = shown.sha256;
    this.#tools();
    painted.then(() => {
      if (byId("viewer").dataset.sha256 !== shown.sha256) return;
      this._isPainted = true;
      if (source) this.#fetchRest(source);
      this._host.post("document.loaded", {
        fileName: shown.name,
        sha256: shown.sha256,
        pages: shown.pages.length,
        size: shown.size,
      });
    });
  }

  /** The first page is there: now the rest comes, and it is told how much of it has. */
  #fetchRest(source) {
    source.progress = (done, total) => {
      if (this.#source === source) showCame(done, total);
      this.#saving?.(done, total);
    };
    source.fill();
  }

  /** A document cannot be had any further. */
  #sourceFailed(source, error) {
    // While it is opened, who opens it is told.
    if (error instanceof Stopped || this.#source !== source) return;
    if (error.code === "DOCUMENT_CHANGED") this.guarded(() => this.#lookAgain());
    // The host hears once of each reason, however often the signer tries again.
    else this.tell(error, { quiet: source.toldCode === error.code });
    source.toldCode = error.code;
  }

  /** The document on the screen is not the service's: what has become of it? */
  async #lookAgain() {
    if (!this._machine.is("reviewing", "authorising")) return undefined;
    const session = await this.persist(() => call("state"));
    if (session.document?.sha256 === this.session.document.sha256) {
      return this.block(ownFailure("DOCUMENT_CHANGED"));
    }
    return session.state === "authorised" ? this._changed() : this.resume(session);
  }

  #showNone() {
    this._viewer.close();
    delete byId("viewer").dataset.sha256;
    fill(byId("tools"));
  }

  #tools() {
    const shown = this.session.document;
    const save = () => this.save(shown.name, (how) => this.#original(how));
    fill(byId("tools"), toolbar(this._viewer, shown, save, this.#source?.came ?? shown.size));
  }

  /** The bytes of the document on the screen; of a large one they come anyway. */
  async #original(how) {
    const source = this.#source;
    if (!source) return call("document", how);
    const stopped = new Promise((_, reject) => {
      how.signal.addEventListener("abort", () => reject(new Stopped()));
    });
    this.#saving = how.progress;
    source.fill();
    return Promise.race([source.whole, stopped]).finally(() => {
      this.#saving = null;
    });
  }

  /** Draw everything again, in another language. */
  redraw() {
    this._viewer.relabel();
    if (this.session?.document && this.#shown()) this.#tools();
    // The step at last: its messages may stand beside a tool.
    super.redraw();
  }

  /** Say what the service says of the document in the language in use, too. */
  async retell() {
    const shown = this.session?.document;
    if (!shown) return;
    const told = await call("state").catch(() => null);
    // Meanwhile there may be another document, or none.
    if (!told?.document || told.document.sha256 !== this.session.document?.sha256) return;
    // Steps keep the session that they were drawn with.
    Object.assign(this.session.document, told.document);
    this.redraw();
  }

  read() {
    // Of a document that the host brought, it was read first: the order stays.
    if (this.session.proven && !this.#isHosts && !this.#own) this._whoFirst = true;
    if (this._machine.is("connected", "authorising")) this._machine.move("loading");
    this._machine.move("reviewing");
    this.step(() =>
      steps.read({
        session: this.session,
        go: () => this.#leaveReading(),
        change: this.#own ? () => this.pick() : null,
        // A file of one's own is not rejected; of the host's it takes a proven signer.
        reject: this.#own ? null : () => this.#toReject(),
        list: this.#isPicked() ? () => this.guarded(() => this.#requests()) : null,
        cancel: () => this.leave(),
      }),
    );
    announce(() => t("The document is on the screen."));
  }

  /** Refuse the document that is read: whoever does says first who they are. */
  #toReject() {
    return this.identified(() => this.reject(() => this.authorised()), { rejecting: true });
  }

  /** On from the document, once it was on the screen. */
  async #leaveReading() {
    await this._painted;
    this.#read = this.session.document.sha256;
    return this.session.state === "authorised" ? this.guarded(() => this.authorised()) : this.identified();
  }

  /** On to the signature's place; a document that was not read yet is read first. */
  async authorised() {
    const { sha256: shown } = this.session.document;
    if (this.#read !== shown) return this.read();
    try {
      await this.persist(() => call("seen", { body: { sha256: shown } }));
    } catch (error) {
      if (error.code === "DOCUMENT_CHANGED") return this._changed();
      // Failed for good, while it was read here.
      if (isRefusal(error) && (await this._isOverNow(error))) return undefined;
      throw error;
    }
    return super.authorised();
  }

  /** Another one whose turn it is too has signed meanwhile: what is there now is read. */
  async _changed() {
    const picked = this.#isPicked();
    this.session = await this.persist(() => call("state"));
    if (this.session.state !== "authorised") return this.#proven();
    if (picked) this.#picked = this.session.document.sha256;
    await this.#reopened();
    this.read();
    alert(() => t("Somebody else has signed the document in the meantime. Read it again and go on."));
    return undefined;
  }

  /** Whether the document is one that the signer picked from the list. */
  #isPicked() {
    return this.session.state === "authorised" && this.#picked === this.session.document.sha256;
  }

  // -- who signs ----------------------------------------------------------------

  #back() {
    return this.session.document ? this.read() : this.pick();
  }

  /**
   * Match what the host said of the signer; ask only for what is missing.
   * @param {() => unknown} [next] what it is for, where it is not to sign what is read.
   * @param {{rejecting?: boolean}} [how] rejecting: it is to refuse the document.
   */
  async identified(next, { rejecting = false } = {}) {
    this.#rejecting = rejecting;
    if (next && !this.session.document) this._whoFirst = true;
    if (this.session.proven && next) return this.guarded(next);
    try {
      const { ask } = await call("identify", { body: this.claim });
      if (ask === "cuil") this.#ask(next);
      else this.#code(next);
    } catch (error) {
      // The signer mends it here, so it is no error of the host's.
      if (error.code === "IDENTITY_MISMATCH") this.#unknown(next);
      else this.tell(error);
    }
    return undefined;
  }

  /**
   * Nobody is known by these data; the host is told that, and no more.
   * @param {() => unknown} [next]
   * @param {{typed?: boolean}} [how] typed: the signer typed them just now.
   */
  #unknown(next, { typed = false } = {}) {
    this._host.post("signer.unknown");
    this.#ask(next, { unknown: !typed });
    const say = () => steps.unknownSigner(this._boot.integrator);
    // What was typed is to be mended; else the step says it, and one sentence is enough.
    if (typed) alert(say, "cuil");
    else announce(say);
  }

  #ask(next, { unknown = false } = {}) {
    const identify = async (form) => {
      const said = { cuil: form.get("cuil").replace(/[\s.\u00ad\u2010-\u2015\u2212-]+/g, ""), email: form.get("email").trim() };
      try {
        await call("identify", { body: said });
        this.#typed = true;
        this.claim = { ...said, name: this.claim.name };
        this.#code(next);
      } catch (error) {
        if (error.code === "IDENTITY_MISMATCH") {
          this.claim = { ...said, name: this.claim.name };
          return this.#unknown(next, { typed: true });
        }
        return this.tell(error, { quiet: true, field: error.field === "email" ? "email" : "cuil" });
      }
      return undefined;
    };
    this.step(() =>
      steps.identify({
        claim: this.claim,
        unknown,
        rejecting: this.#rejecting,
        integrator: this._boot.integrator,
        back: () => this.#back(),
        cancel: () => this.leave(),
        go: identify,
      }),
    );
  }

  #code(next) {
    const prove = async (form) => {
      const code = form.get("code").replaceAll(" ", "");
      if (!CODE.test(code)) return alert(() => t("The code has 6 digits."), "code");
      try {
        this.session = await call("otp", { body: { code } });
      } catch (error) {
        // Neither another code nor another try mends it: only what the host sends.
        if (error.code === "IDEMKEY_CONFLICT") return this.#refused(error);
        this.tell(error, { field: "code" });
        return error.problem?.codeUsed && countDown(error.problem.nextCodeIn);
      }
      return this.guarded(() => this.#proven(next));
    };
    const help = () => this.help("phone", () => this.#code(next));
    this.step(() => steps.code({ claim: this.claim, rejecting: this.#rejecting, installation: this._boot.installation, back: () => this.#back(), cancel: () => this.leave(), go: prove, help }));
  }

  #proven(next) {
    if (this.session.batch) return this.batch();
    // The key of this order may have come to its end in an earlier session.
    if (this.session.state === "signed") return this.finish();
    if (this.session.state === "signing") return this.reconcile();
    if (this._isOver()) return undefined;
    if (this.session.state !== "authorised") return next?.();
    if (this.session.document && next) {
      this._machine.move("authorising");
      return next();
    }
    return this.authorised();
  }

  /** What the session was opened for. */
  async #wanted() {
    if (this.session.batch) return this.batch();
    await this.#reopened();
    return this.authorised();
  }

  /** What waits for this signer here. */
  async #requests() {
    const { list } = await call("requests");
    const choose = (request) => {
      const open = async () => {
        try {
          this.session = await call("choose", { body: { request } });
        } catch (error) {
          if (error.code === "IDEMKEY_CONFLICT") return this.#refused(error);
          // Signed or withdrawn meanwhile: another one is picked here.
          return this.tell(error, { quiet: error.code === "SOLICITUD_NOT_FOUND" });
        }
        if (this._isOver()) return undefined;
        this.#picked = this.session.document.sha256;
        await this.#reopened();
        return this.#proven();
      };
      return run(() => this.guarded(open));
    };
    this.step(() => steps.requests({ list, choose, back: () => this.#back(), cancel: () => this.leave() }));
  }
}

/** Why a document is late: there is no network, or the service cannot give it. */
function lateness({ seconds }) {
  return seconds === null
    ? t("There is no connection; trying again.")
    : t("The service cannot give the document now. Trying again in {seconds} s.", { seconds });
}
