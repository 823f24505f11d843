// From the proven signer to the signature: the mark's place, the password, the outcome.

import { call } from "./api.js";
import { encodeBase64 } from "./base64.js";
import { byId } from "./dom.js";
import { Unreachable } from "./failure.js";
import { currentLanguage, t } from "./i18n.js";
import { fieldId, place, reflect } from "./place.js";
import { within } from "./mark.js";
import { alert, announce, clearAlert, notice, waitFor } from "./screen.js";
import { LOOK_AGAIN_MS, SESSION_OVER, Stage, pause } from "./stage.js";
import * as steps from "./steps.js";

/** Somebody else's call is making, or made, this very signature. */
const MADE_ELSEWHERE = new Set(["IN_PROGRESS", "ALREADY_SIGNED"]);
const CANNOT_BE_SIGNED = new Set(["SIGNING_FAILED", "STATE", "PDF_LOCKED"]);
/** Refusals of one place, where others may be chosen. */
const OF_THE_PLACE = new Set([
  "PAGE_OUT_OF_RANGE",
  "POSITION_OUT_OF_PAGE",
  "SIGNATURE_FIELD_NOT_FOUND",
  "SIGNATURE_FIELD_FILLED",
  "SIGNATURE_FIELD_DEMANDS",
]);
/** What the place that is proposed may fail by, where another one will do. */
const OF_THE_PRESET = new Set([...OF_THE_PLACE, "PDF_ALREADY_SIGNED", "PDF_CERTIFIED", "SIGNERS_LOCKED_OUT"]);
const DEFAULT = { corner: "bottomLeft", page: 1, field: null, x: null, y: null, preset: false };
const CM_PT = 72 / 2.54;

export class Signature extends Stage {
  #chosen = DEFAULT;
  /** The choice whose mark is shown: it holds again when a later one is refused. */
  #shown = DEFAULT;
  #placed = false;
  /** How often a place was chosen: the last one holds. */
  #turn = 0;
  /** The choice that is being looked at, whether it came to hold; null: none is. */
  #choosing = null;
  /** The mark of the choice that is shown. */
  #stamp = null;
  /** What the signature says and permits by that choice. */
  #terms = null;
  /** Width and height of a mark that is put anywhere, by page. */
  #sizes = new Map();
  /** Settles once the host was told of the signature. */
  _told = null;
  /** Whether it was. */
  #handedOver = false;

  /** Begin with the choice of place. */
  async authorised() {
    this._machine.move("authorising");
    this.#placed = false;
    // Where whoever asked for the signature wants it, if they said so.
    this.#chosen = this.#shown = { ...DEFAULT, preset: this.session.document.preset !== null };
    this.#sizes.clear();
    await this.place();
  }

  async place() {
    const { preset, fields, newField } = this.session.document;
    const isFixed = preset !== null && preset.fixed;
    try {
      await this.persist(() => this.#look());
    } catch (error) {
      const isProposed = this.#chosen.preset && OF_THE_PRESET.has(error.code);
      if (isProposed && !isFixed) {
        this.#chosen = DEFAULT;
        return this.place();
      }
      if (isProposed || CANNOT_BE_SIGNED.has(error.code)) return this.fail(error);
      throw error;
    }
    this._viewer.fields(isFixed ? [] : fields, (index) =>
      byId(fieldId(index)).click(),
    );
    this.step(() =>
      place({
        session: this.session,
        chosen: this.#chosen,
        isSeen: this.#stamp !== null,
        change: (change) => this.#begin(() => this.#change(change)),
        go: () => this.#leave(),
        reject: () => this.reject(() => this.place()),
        cancel: () => this.leave(),
      }),
    );
    const anywhere = newField === "visible" && !isFixed;
    this._viewer.place = anywhere ? (put) => this.#begin(() => this.#put(put)) : null;
    // Only now does a narrow frame show the document.
    this._viewer.bring({ anew: true });
    return undefined;
  }

  /**
   * Choose, and let who goes on meanwhile wait for it.
   * @param {() => Promise<boolean>} choose whether the choice came to hold.
   */
  #begin(choose) {
    const wait = waitFor(() => t("Working out where your mark goes…"));
    const work = choose()
      .catch((error) => {
        this.tell(error);
        return false;
      })
      .finally(wait.end);
    this.#choosing = work;
    return work.then((holds) => {
      if (this.#choosing === work) {
        this.#choosing = null;
        if (!holds) this.#putBack();
      }
      return holds;
    });
  }

  /** Show what holds: a choice that came to nothing must not look as if it did. */
  #putBack() {
    if (!this._machine.is("authorising")) return;
    this.#chosen = this.#shown;
    // One that was dragged goes back, too.
    this._viewer.mark(this.#stamp);
    // A page number stays as it was typed: to be mended, and asked for by going on.
    reflect(this.#chosen, { page: false });
  }

  /** Go on to the password: where the mark is seen is where it is signed. */
  async #leave() {
    // Moved by keys a moment ago: now, and not once more when the keys have rested.
    const moved = this._viewer.takeMoved();
    if (moved !== null) this.#begin(() => this.#put(moved));
    if (!(await this.#settled())) return;
    this.#begin(() => this.#change({ page: this.#page() }));
    if (await this.#settled()) this.password();
  }

  /** Wait for the last choice; whether it came to hold. */
  async #settled() {
    let holds = true;
    while (this.#choosing !== null) holds = await this.#choosing;
    return holds;
  }

  /** Take what the form says; the place on the page stays where it fits. */
  async #change(change) {
    clearAlert();
    const { corner } = change;
    const { length: pages } = this.session.document.pages;
    const isThere = change.page >= 1 && change.page <= pages && Number.isInteger(change.page);
    if (change.page !== undefined && !isThere) {
      alert(() => t("Type a page number, from 1 to {pages}.", { pages }), "page");
      return false;
    }
    if (corner === "preset") return this.#choose({ ...DEFAULT, preset: true });
    if (corner === "custom") {
      const { page, width, height } = this._viewer.sizeOf(this.#chosen.page);
      const there = this._viewer.marked ?? { page, x: width / 2, y: height / 2 };
      return this.#put({ ...there, page: this.#chosen.page });
    }
    if (corner !== undefined || change.field) {
      return this.#choose({ x: null, y: null, preset: false, ...change });
    }
    const { x, y } = this.#chosen;
    return x === null ? this.#choose(change) : this.#put({ ...change, x, y });
  }

  /**
   * Put the mark somewhere on a page: wholly on it, and as near as may be.
   * @param {{page: number, x: number, y: number, isCentre?: boolean}} put
   */
  async #put({ page, x, y, isCentre = false }) {
    clearAlert();
    const turn = (this.#turn += 1);
    const size = await this.#sizeOn(page);
    if (turn !== this.#turn) return false;
    const [left, top] = isCentre ? [x - size.width / 2, y - size.height / 2] : [x, y];
    const box = within({ x: left, y: top, ...size }, this._viewer.sizeOf(page));
    const at = { page, x: box.x, y: box.y };
    const done = await this.#choose({ ...DEFAULT, ...at });
    reflect(this.#chosen);
    if (done) announce(() => whereabouts(at));
    return done;
  }

  async #sizeOn(page) {
    if (!this.#sizes.has(page)) {
      const { stamp } = await call("place", { body: { ...DEFAULT, page, x: 0, y: 0 } });
      const { width, height } = stamp.box;
      this.#sizes.set(page, { width, height });
    }
    return this.#sizes.get(page);
  }

  /** The page as it stands in its input, if that is asked for. */
  #page() {
    const input = document.getElementById("page");
    const isAsked = input !== null && this.#chosen.field === null && !this.#chosen.preset;
    return isAsked ? Number(input.value) : this.#chosen.page;
  }

  async #choose(change) {
    const chosen = { ...this.#chosen, ...change };
    this.#turn += 1;
    this.#chosen = chosen;
    try {
      await this.#look();
      return true;
    } catch (error) {
      if (this.#chosen === chosen) this.#chosen = this.#shown;
      // Another place is chosen here: no business of the host's.
      const quiet = OF_THE_PLACE.has(error.code);
      this.tell(error, { quiet, field: change.field ? undefined : "page" });
      return false;
    }
  }

  /** Ask where the mark would lie, and show it on its page. */
  async #look() {
    const chosen = this.#chosen;
    this._viewer.busy = true;
    const { params, stamp, terms } = await call("place", { body: chosen }).finally(() => {
      if (chosen === this.#chosen) this._viewer.busy = false;
    });
    if (chosen === this.#chosen) {
      this.#stamp = stamp;
      this.#terms = terms;
      this._viewer.mark(stamp);
      // A certified document is signed where it permits, whatever was chosen.
      const field = chosen.preset ? null : params.campo ?? null;
      const corner = params.visible ? chosen.corner : "none";
      const page = chosen.preset && stamp ? stamp.page : chosen.page;
      this.#chosen = this.#shown = { ...chosen, field, corner, page };
      reflect(this.#chosen);
    }
    this.#placed = true;
  }

  password() {
    this._viewer.fields([]);
    this._viewer.place = null;
    this.step(() =>
      steps.password({
        session: this.session,
        chosen: this.#chosen,
        told: this.#terms,
        back: () => this.place(),
        reject: () => this.reject(() => this.password()),
        cancel: () => this.leave(),
        help: () => this.help("password", () => this.password()),
        go: (form) => this.#sign(form.get("password")),
      }),
    );
  }

  async #sign(password) {
    if (!password) {
      alert(() => t("Type your signing password."), "password");
      return undefined;
    }
    const { sha256 } = byId("viewer").dataset;
    // Nothing is to be in the way of the signature.
    this._viewer.rest();
    this._machine.move("submitting");
    this.step(() => steps.signing({ checking: false }));
    try {
      this.session = await call("sign", { body: { ...this.#chosen, sha256, password } });
    } catch (error) {
      return error instanceof Unreachable ? this.reconcile() : this.#refused(error);
    }
    return this.session.state === "signed" ? this.finish() : this.reconcile();
  }

  async #refused(error) {
    if (MADE_ELSEWHERE.has(error.code)) return this.reconcile();
    if (CANNOT_BE_SIGNED.has(error.code)) return this.fail(error);
    this._machine.move("authorising");
    if (error.code === "DOCUMENT_CHANGED") return this._changed();
    // Rejected, withdrawn or failed for good, while the password was typed here.
    const mayBeOver = error.code === "SESSION_IN_USE" || error.category === "terminal";
    if (mayBeOver && (await this._isOverNow(error))) return undefined;
    this._viewer.fill();
    this.password();
    this.tell(error, { field: "password" });
    return undefined;
  }

  /** Ask until the server knows the outcome; never say before that it failed. */
  async reconcile() {
    this._through("authorising");
    if (this._machine.is("authorising")) this._machine.move("submitting");
    this._machine.move("reconciling");
    this.step(() => steps.signing({ checking: true }));
    for (let idle = 0; this._machine.is("reconciling"); await pause(LOOK_AGAIN_MS)) {
      try {
        this.session = await call("state?wait=1");
      } catch (error) {
        if (SESSION_OVER.has(error.code)) return this.block(error);
        continue;
      }
      if (this.session.state === "signed") return this.finish();
      if (this.session.state === "failed") return this.fail(this.recorded(this.session));
      // Not begun: the call never arrived, or it was undone. Seen twice, it is so.
      idle = this.session.state === "signing" ? 0 : idle + 1;
      if (idle > 1) return this.#undone();
    }
    return undefined;
  }

  async #undone() {
    this._machine.move("authorising");
    this._viewer.fill();
    if (!this.#placed) await this.persist(() => this.#look());
    this.password();
    const { reason } = this.session;
    alert(() => reason?.message ?? t("It was not signed. Try again."), "password");
  }

  /** The result is stored: show it, and tell the host. */
  finish() {
    this._viewer.rest();
    this._machine.move("signed");
    notice(null);
    this._viewer.mark(null);
    this.#handedOver = false;
    this.step(() =>
      steps.done({
        session: this.session,
        handedOver: this.#handedOver,
        save: () => this.save(this.session.signed.fileName, (how) => call("download", how)),
      }),
    );
    // Not waited for by what the signer does next: it can be saved meanwhile.
    this._told = this.guarded(() => this.replay());
  }

  /** Tell the host of the signature; as often as asked, always the same event. */
  async replay() {
    const { delivery, ...event } = await this.persist(() => call("completed"));
    if (delivery.mode === "binary") {
      const bytes = await this.persist(() => call("download", { raw: true }));
      delivery.fileBase64 = await encodeBase64(bytes);
    }
    this._host.post("signature.completed", { ...event, delivery });
    this.#handedOver = true;
    const shown = byId("outcome");
    if (!shown) return;
    const say = () => steps.outcome(this.session, this.#handedOver);
    shown.textContent = say();
    announce(say);
  }
}

/** A place on a page, said to who does not see it. */
function whereabouts({ page, x, y }) {
  const cm = (points) => (points / CM_PT).toLocaleString(currentLanguage(), { maximumFractionDigits: 1 });
  return t("Page {page}: {left} cm from the left, {top} cm from the top.", { page, left: cm(x), top: cm(y) });
}
