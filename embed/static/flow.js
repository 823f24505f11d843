// The ceremony up to the proven signer: a document on the screen, and who signs it.
// The server decides; what is kept here is what is on the screen.

import { call } from "./api.js";
import { sha256 } from "./base64.js";
import { byId, fill } from "./dom.js";
import { ownFailure } from "./failure.js";
import { t } from "./i18n.js";
import { alert, announce } from "./screen.js";
import { Signature } from "./signature.js";
import * as steps from "./steps.js";
import { toolbar } from "./viewer.js";

const CODE = /^\d{6}$/;

export class Flow extends Signature {
  /** Who the host says that the signer is. */
  claim = {};
  #own = false;
  #turn = 0;
  #taking = Promise.resolve();

  /** Go on from what the server says of a session. */
  async resume(session) {
    this.session = session;
    if (session.state === "signed") {
      this.finish();
      return this._told;
    }
    if (session.state === "cancelled") return this.ended();
    if (session.state === "failed") return this.fail(this.recorded(session));
    if (session.document && !this.#shown()) await this.#reopen();
    if (session.state === "signing") return this.reconcile();
    if (session.state === "authorised") return this.authorised();
    return session.document ? this.read() : this.pick();
  }

  /** Whether the session's document is the one on the screen. */
  #shown() {
    return byId("viewer").dataset.sha256 === this.session.document?.sha256;
  }

  // -- the document -------------------------------------------------------------

  pick() {
    this._machine.move("connected");
    this.step(() =>
      steps.pick({
        integrator: this._boot.integrator,
        choose: (file) => this.guarded(() => this.#chooseFile(file)),
        pending: () => this.identified(() => this.#requests()),
        cancel: () => this.cancel("signer"),
      }),
    );
  }

  async #chooseFile(file) {
    if (!file) return;
    const bytes = new Uint8Array(await file.arrayBuffer());
    await this.take(bytes, file.name, { own: true });
  }

  /**
   * Take a document in; of several in a row the last one stays.
   * @param {Uint8Array} bytes
   * @param {string} name
   * @param {{own?: boolean}} [how] whether the signer brought it.
   */
  take(bytes, name, { own = false } = {}) {
    const turn = (this.#turn += 1);
    // One after the other: the server's last word must be about the last one.
    this.#taking = this.#taking.then(async () => {
      if (turn === this.#turn) await this.#takeNow(bytes, name, own);
    });
    return this.#taking;
  }

  async #takeNow(bytes, name, own) {
    this._machine.move("loading");
    this.step(() => steps.loading());
    try {
      this.session = await this.persist(() =>
        call("document", { file: bytes, fileName: name }),
      );
      this.#own = own;
      if (this.session.state === "signed") return this.finish();
      await this.#open(await this.#kept(bytes));
      if (this.session.state === "authorised") return await this.authorised();
      return this.read();
    } catch (error) {
      if (this.session.document && this.#shown()) this.read();
      else this.pick();
      return this.tell(error, { quiet: own });
    }
  }

  /** What was taken in of a file: it, or the copy that mended its damage. */
  async #kept(bytes) {
    const same = (await sha256(bytes)) === this.session.document.sha256;
    return same ? bytes : await this.persist(() => call("document", { raw: true }));
  }

  async #reopen() {
    this._machine.move("loading");
    this.step(() => steps.loading());
    await this.#open(await this.persist(() => call("document", { raw: true })));
  }

  async #open(bytes) {
    const shown = this.session.document;
    // What is shown is what will be signed, or nothing is.
    if ((await sha256(bytes)) !== shown.sha256) throw ownFailure("DOCUMENT_CHANGED");
    delete byId("viewer").dataset.sha256;
    const { painted } = await this._viewer.open(bytes, shown.pages);
    byId("viewer").dataset.sha256 = shown.sha256;
    this.#tools();
    painted.then(() => {
      if (byId("viewer").dataset.sha256 !== shown.sha256) return;
      this._host.post("document.loaded", {
        fileName: shown.name,
        sha256: shown.sha256,
        pages: shown.pages.length,
        size: shown.size,
      });
    });
  }

  #tools() {
    const shown = this.session.document;
    const save = () => this.save("document", shown.name);
    fill(byId("tools"), toolbar(this._viewer, shown, save));
  }

  /** Draw everything again, in another language. */
  redraw() {
    super.redraw();
    if (this.session?.document && this.#shown()) this.#tools();
  }

  read() {
    if (this._machine.is("connected")) this._machine.move("loading");
    this._machine.move("reviewing");
    this.step(() =>
      steps.read({
        session: this.session,
        go: () => this.identified(),
        change: this.#own ? () => this.pick() : null,
        cancel: () => this.cancel("signer"),
      }),
    );
    announce(t("The document is on the screen."));
  }

  // -- who signs ----------------------------------------------------------------

  #back() {
    return this.session.document ? this.read() : this.pick();
  }

  /**
   * Match what the host said of the signer; ask only for what is missing.
   * @param {() => unknown} [next] when there is no document yet.
   */
  async identified(next) {
    if (this.session.proven && next) return this.guarded(next);
    try {
      const { ask } = await call("identify", { body: this.claim });
      if (ask === "cuil") this.#ask(next);
      else this.#code(next);
    } catch (error) {
      if (error.code === "IDENTITY_MISMATCH") this.#ask(next);
      this.tell(error);
    }
    return undefined;
  }

  #ask(next) {
    const identify = async (form) => {
      const said = { cuil: form.get("cuil").trim(), email: form.get("email").trim() };
      try {
        await call("identify", { body: said });
        this.claim = { ...said, name: this.claim.name };
        this.#code(next);
      } catch (error) {
        this.tell(error, { quiet: true, field: error.field === "email" ? "email" : "cuil" });
      }
    };
    this.step(() =>
      steps.identify({ claim: this.claim, back: () => this.#back(), go: identify }),
    );
  }

  #code(next) {
    const prove = async (form) => {
      const code = form.get("code").replaceAll(" ", "");
      if (!CODE.test(code)) return alert(t("The code has 6 digits."), "code");
      try {
        this.session = await call("otp", { body: { code } });
      } catch (error) {
        return this.tell(error, { field: "code" });
      }
      return this.guarded(() => this.#proven(next));
    };
    this.step(() => steps.code({ claim: this.claim, back: () => this.#back(), go: prove }));
  }

  #proven(next) {
    if (this.session.state === "signed") return this.finish();
    if (this.session.state === "signing") return this.reconcile();
    if (this.session.state === "authorised") return this.authorised();
    return next?.();
  }

  /** What waits for this signer here. */
  async #requests() {
    const { list } = await call("requests");
    const choose = (request) =>
      this.guarded(async () => {
        this.session = await call("choose", { body: { request } });
        await this.#reopen();
        await this.#proven();
      });
    this.step(() => steps.requests({ list, choose, back: () => this.#back() }));
  }
}
