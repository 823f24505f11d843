// A session for a batch: its documents are read one by one, and one password signs all
// that wait. The record says how each stands: what is kept here is what is shown.

import { call } from "./api.js";
import { encodeBase64 } from "./base64.js";
import * as batch from "./batch_steps.js";
import { byId, fill } from "./dom.js";
import { Failure, Stopped, Unreachable, isRefusal } from "./failure.js";
import { t } from "./i18n.js";
import { alert, announce, notice, run } from "./screen.js";
import { Signature } from "./signature.js";
import { LOOK_AGAIN_MS, SESSION_OVER, pause } from "./stage.js";
import { loading } from "./steps.js";

const LOOK_MS = 500;
const CALM_MS = 15_000;
/** What ends a document for others, while it is read or signed here. */
const MOVED_ON = new Set(["SOLICITUD_NOT_FOUND", "DOCUMENT_CHANGED", "SESSION_IN_USE", "STATE"]);

export class Batch extends Signature {
  /** Every document of the batch, in its order. */
  #list = [];
  /** What the integrator wrote to the signer, the same for all of it. */
  #message = null;
  /** Why documents were not signed by the last password, by their id. */
  #reasons = new Map();
  /** Documents that the host was told of, by this page. */
  #told = new Set();
  /** The document that is on the screen, as `#list` has it; null: the list is. */
  #onScreen = null;
  /** Settles when what is on the screen was noted as opened, or could not be. */
  #noted = Promise.resolve();

  get _isBatch() {
    return this.session?.forBatch === true;
  }

  get #counts() {
    return { ...this.session.batch, ...this.#read() };
  }

  /** What was opened is counted here: the server is not asked for each. */
  #read() {
    const pending = this.#list.filter(({ state }) => state === "pending");
    return {
      pending: pending.length,
      unread: pending.filter(({ seen, open }) => open && !seen).length,
    };
  }

  /** Go on wherever the batch of the proven signer stands. */
  async batch() {
    this._whoFirst = true;
    const { state } = this.session;
    if (this._isOver()) return undefined;
    if (state === "signing") return this.#follow({ checking: false });
    await this.#load();
    if (state === "signed" || state === "failed") return this.#finished();
    return this.#documents();
  }

  /** Read the list of documents anew. */
  async #load() {
    const all = [];
    for (let more = true; more; ) {
      const after = all.at(-1)?.id ?? 0;
      const page = await this.persist(() => call(`batch?after=${after}`));
      all.push(...page.list);
      if (after === 0) this.#message = page.message;
      ({ more } = page);
    }
    const shown = new Set(this.#list.filter(({ isShown }) => isShown).map(({ id }) => id));
    for (const item of all) item.isShown = shown.has(item.id);
    this.#list = all;
  }

  /**
   * The list of documents, or on to the password.
   * @param {() => string} [done] what was done just now.
   */
  #documents(done = () => "") {
    this.#closeDocument();
    this._machine.move("authorising");
    this.step(() =>
      batch.documents({
        list: this.#list,
        counts: this.#counts,
        openings: this.session.batch.openings,
        integrator: this._boot.integrator,
        message: this.#message,
        done: done(),
        open: (item) => this.guarded(() => this.#open(item)),
        go: () => this.guarded(() => this.#goOn()),
        cancel: () => this.leave(),
      }),
    );
  }

  #closeDocument() {
    this.#onScreen = null;
    this._viewer.close();
    delete byId("viewer").dataset.sha256;
    fill(byId("tools"));
  }

  /** To the next one that has to be read still, beginning after one; or to the password. */
  #goOn(from = -1) {
    const order = [...this.#list.slice(from + 1), ...this.#list.slice(0, from + 1)];
    const next = order.find(({ state, seen, open }) => state === "pending" && open && !seen);
    if (next) return this.#open(next);
    if (this.#read().pending === 0) return this.#reload();
    return this.#password();
  }

  /** Others have changed something: show how it stands. */
  async #reload(say) {
    this.session = await this.persist(() => call("state"));
    await this.batch();
    if (say && this.session.state === "authorised") alert(say);
  }

  // -- one of them is read ----------------------------------------------------------

  /** Open one; from another one, which stays on the screen until this one is there. */
  async #open(item) {
    const quietly = this._machine.is("reviewing");
    if (quietly) this._viewer.freeze();
    else this.step(() => loading({ cancel: () => this.leave() }));
    // From here on the server may speak of this one, whatever is painted late.
    this.#onScreen = null;
    try {
      this.session = await this.persist(() => call("choose", { body: { request: item.id } }));
    } catch (error) {
      this._viewer.thaw();
      if (error instanceof Stopped) throw error;
      if (!MOVED_ON.has(error.code)) {
        if (!quietly) this.#documents();
        throw error;
      }
      return this.#reload(() => t("{name} can no longer be signed.", { name: item.name }));
    }
    try {
      await this._reopen({ quietly });
    } catch (error) {
      if (error instanceof Stopped) throw error;
      // What is on the screen is not the session's document any more.
      this.#documents();
      throw error;
    }
    this._machine.move("reviewing");
    return this.#reading(item);
  }

  #reading(item) {
    const { session } = this;
    const at = this.#list.indexOf(item);
    const before = this.#list.slice(0, at).findLast(({ state }) => state === "pending");
    const others = () =>
      this.#list.filter((each) => each !== item && each.state === "pending" && each.open && !each.seen);
    this.step(() =>
      batch.reading({
        session,
        told: this.#message,
        at,
        left: others().length,
        previous: before && (() => run(() => this.guarded(() => this.#leaveTo(item, () => this.#open(before))))),
        list: () => run(() => this.guarded(() => this.#leaveTo(item, () => this.#documents()))),
        go: () => this.guarded(() => this.#leaveReading(item, at)),
        reject: () => this.guarded(() => this.#rejectReading(item)),
        cancel: () => this.leave(),
      }),
      { stay: true },
    );
    this.#note(item);
    const { total } = session.batch;
    announce(() => t("Document {number} of {total} is on the screen.", { number: at + 1, total }));
    return undefined;
  }

  /** Elsewhere from a document; it need not have been on the screen. */
  async #leaveTo(item, go) {
    if (this._isPainted && !(await this.#wasShown(item))) return undefined;
    return go();
  }

  /** On from a document, once it was on the screen. */
  async #leaveReading(item, at) {
    return (await this.#wasShown(item)) ? this.#goOn(at) : undefined;
  }

  async #rejectReading(item) {
    if (!(await this.#wasShown(item))) return;
    this.reject(() => this.guarded(() => this.#open(item)));
  }

  /** As soon as its first page is there it counts as opened: who leaves then has opened it. */
  #note(item) {
    this.#onScreen = item;
    this.#noted = this._painted.then(async () => {
      if (this.#onScreen !== item) return;
      try {
        await this.#saw(item);
      } catch (error) {
        // The way on asks again, and tells what is wrong.
        if (![Failure, Stopped, Unreachable].some((kind) => error instanceof kind)) throw error;
      }
    });
  }

  /** Whether it was noted as opened; one that cannot be signed any more leads to the list. */
  async #wasShown(item) {
    await this.#noted;
    try {
      await this.persist(() => this.#saw(item));
    } catch (error) {
      if (!isRefusal(error) || error.code === "DOCUMENT_CHANGED") throw error;
      await this.#reload(() => t("{name} can no longer be signed.", { name: item.name }));
      return false;
    }
    return true;
  }

  async #saw(item) {
    item.isShown = true;
    if (item.seen) return;
    const { sha256 } = this.session.document;
    await call("seen", { body: { sha256 } });
    item.seen = true;
  }

  /** What is being noted as opened comes before the end of the session. */
  async _cancel(reason) {
    if (this._isPainted) await this.#noted;
    return super._cancel(reason);
  }

  /** One of them was rejected: the others go on waiting. */
  async _wasRejected(session, reason) {
    if (!this._isBatch) return super._wasRejected(session, reason);
    const { name } = this.session.document;
    this._reason = "";
    this.session = session;
    if (session.state !== "authorised") return this.batch();
    await this.#load();
    const isLast = this.#read().pending === 1;
    const done = () =>
      isLast
        ? t("You rejected {name}. One is still waiting for you.", { name })
        : t("You rejected {name}. The others are still waiting for you.", { name });
    this.#documents(done);
    announce(done);
    return undefined;
  }

  get _leaving() {
    if (!this._isBatch) return super._leaving;
    return t("What you have not signed goes on waiting for you, and what you opened stays so.");
  }

  // -- the password, and what comes of it ---------------------------------------------

  #password() {
    this.#closeDocument();
    this._machine.move("authorising");
    this.step(() =>
      batch.password({
        session: this.session,
        list: this.#list,
        back: () => this.#documents(),
        cancel: () => this.leave(),
        help: () => this.help("password", () => this.#password()),
        go: (form) => this.#sign(form.get("password")),
      }),
    );
  }

  async #sign(password) {
    if (!password) return alert(() => t("Type your signing password."), "password");
    this._machine.move("submitting");
    this.#progress({ checking: false });
    try {
      const { refused, ...session } = await call("sign-batch", { body: { password } });
      this.session = session;
      this.#reasons = new Map(refused.map(({ id, reason }) => [id, reason]));
    } catch (error) {
      if (error instanceof Unreachable) return this.#follow({ checking: true });
      return this.#refused(error);
    }
    return this.#follow({ checking: false, isBegun: true });
  }

  async #refused(error) {
    this._machine.move("authorising");
    if (MOVED_ON.has(error.code)) {
      return this.#reload(() => t("Something has changed in the meantime. Look at the list and go on."));
    }
    this.#password();
    return this.tell(error, { field: "password" });
  }

  #progress({ checking }) {
    this.step(() => batch.signing({ counts: this.session.batch, checking }));
  }

  /** Ask until nothing of it is being signed any more. */
  async #follow({ checking, isBegun = false }) {
    this._through("authorising");
    if (this._machine.is("authorising")) this._machine.move("submitting");
    this._machine.move("reconciling");
    this.#progress({ checking });
    const begun = Date.now();
    // A call that never arrived, or is still on its way: seen twice, it is so.
    for (let idle = isBegun ? 1 : 0; this._machine.is("reconciling"); ) {
      try {
        this.session = await call("state");
        this.#count();
      } catch (error) {
        if (SESSION_OVER.has(error.code)) return this.block(error);
      }
      idle = this.session.state === "signing" ? 1 : idle + 1;
      if (idle > 1) return this.#settled();
      await pause(Date.now() - begun < CALM_MS ? LOOK_MS : LOOK_AGAIN_MS);
    }
    return undefined;
  }

  /** Show how many are signed by now, without drawing the step anew. */
  #count() {
    const shown = document.getElementById("sign-count");
    if (!shown || shown.value === this.session.batch.signed) return;
    shown.value = this.session.batch.signed;
    byId("sign-count-label").textContent = batch.signedSoFar(this.session.batch);
  }

  /** Nothing is being signed any more: how each one ended. */
  async #settled() {
    const { state } = this.session;
    await this.#load();
    if (state === "signed" || state === "failed") return this.#finished();
    this._machine.move("authorising");
    if (this._isOver()) return undefined;
    if (this.#reasons.size === 0 && this.session.batch.signed === 0 && !this.#list.some(({ reason }) => reason)) {
      this.#password();
      return alert(() => t("It was not signed. Try again."), "password");
    }
    this.step(() =>
      batch.partial({
        list: this.#list,
        counts: this.session.batch,
        reasons: this.#reasons,
        save: (item) => this.#save(item),
        again: () => this.#password(),
        finish: () => this.guarded(() => this.#leaveIt()),
        cancel: () => this.leave(),
      }),
    );
    announce(() => batch.tally(this.#list, { isOver: true }));
    this._told = this.guarded(() => this.#handOver());
    return undefined;
  }

  /** Leave it at what is signed. */
  async #leaveIt() {
    this.session = await this.persist(() => call("finish", { body: {} }));
    return this.#finished();
  }

  #save(item) {
    return this.save(item.signed.fileName, (how) => call(`download?request=${item.id}`, how));
  }

  /** It is over: show it, and tell the host. */
  #finished() {
    this._machine.move(this.session.state === "failed" ? "failed" : "signed");
    notice(null);
    this.#closeDocument();
    this.step(() =>
      batch.done({
        session: this.session,
        list: this.#list,
        reasons: this.#reasons,
        told: this.#told.size,
        save: (item) => this.#save(item),
      }),
    );
    announce(() => batch.tally(this.#list, { isOver: true }));
    // Not waited for by what the signer does next: they can be saved meanwhile.
    this._told = this.guarded(() => this.#tellAll());
  }

  /** Tell the host of all of it again: always the same events. */
  async replay() {
    if (!this._isBatch) return super.replay();
    this.#told.clear();
    return this.#tellAll();
  }

  async #tellAll() {
    await this.#handOver();
    const { id: loteId, total, signed: firmados } = this.session.batch;
    this._host.post("batch.completed", { loteId, total, firmados, fallidos: total - firmados });
  }

  /** Tell the host of each signature that it was not told of yet. */
  async #handOver() {
    for (const item of this.#list) {
      if (item.state !== "signed" || this.#told.has(item.id)) continue;
      const { delivery, ...event } = await this.persist(() => call(`completed?request=${item.id}`));
      if (delivery.mode === "binary") {
        const bytes = await this.persist(() => call(`download?request=${item.id}`, { raw: true }));
        delivery.fileBase64 = await encodeBase64(bytes);
      }
      this._host.post("signature.completed", { ...event, delivery });
      this.#told.add(item.id);
      this.#sayTold();
    }
  }

  #sayTold() {
    const shown = document.getElementById("outcome");
    if (!shown) return;
    const say = () => batch.outcome(this.session, this.#told.size);
    shown.textContent = say();
    if (this.#told.size === this.session.batch.signed) announce(say);
  }
}
