// What every part of the ceremony stands on: the session, the step on the screen, and
// one way of meeting errors.

import { call, stopCalls } from "./api.js";
import { BrokenOff, Failure, Stopped, Unreachable, ownFailure } from "./failure.js";
import { instant, t } from "./i18n.js";
import { nextStep } from "./next_step.js";
import { alert, announce, ask, clearAlert, isTyped, notice, retrying, show, tellBytes, waitFor } from "./screen.js";
import * as steps from "./steps.js";
import { Tries } from "./tries.js";

/** Errors that the signer mends here: no business of the host's. */
const MENDED_HERE = new Set([
  "OTP_INVALID",
  "SIGN_PASSWORD_WRONG",
  "RATE_LIMITED",
  "FIELD_INVALID",
  "BUSY",
]);
export const SESSION_OVER = new Set([
  "SESSION_TOKEN_EXPIRED",
  "SESSION_TOKEN_INVALID",
  "SESSION_SUPERSEDED",
  "TOKEN_MISSING",
]);
export const LOOK_AGAIN_MS = 1500;

const noConnection = () => t("There is no connection. Try again.");
const brokeOff = () => t("The service's answer broke off. Try again.");

/** The connection is back: say no more that there is none. */
export function connected() {
  clearAlert(noConnection);
}

export const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));

/** What the signer reads of a field of theirs, whose name on the wire says nothing. */
const TYPED_WRONGLY = {
  cuil: () => t("Check the CUIL: a digit is missing, to spare or wrong."),
  email: () => t("Check the e-mail address: it has to look like name@example.com."),
};

/** What an error is to the signer: with the tries that are left, or the time to wait. */
function sentenceOf(failure, integrator) {
  const { code, problem: { attemptsLeft, retryAfter, codeUsed } } = failure;
  if (code === "RATE_LIMITED" && retryAfter) return tooMany(Math.ceil(retryAfter));
  // Said here, for it is no wrong one: the service's sentence knows one language.
  if (code === "OTP_INVALID" && codeUsed) {
    return t("You have used this code already. It is not wrong, but each code works once: wait for the next one that your app shows.");
  }
  const typed = code === "FIELD_INVALID" && TYPED_WRONGLY[failure.field];
  if (typed) return typed();
  const sentence = MENDED_HERE.has(code) ? failure.sentence : failure.toSigner(integrator);
  if (attemptsLeft === undefined) return sentence;
  return `${sentence} ${t("Attempts left: {count}.", { count: attemptsLeft })}`;
}

function tooMany(seconds) {
  if (seconds === 1) return t("Too many attempts. Try again in 1 second.");
  if (seconds <= 60) {
    return t("Too many attempts. Try again in {seconds} seconds.", { seconds });
  }
  const minutes = Math.ceil(seconds / 60);
  return t("Too many attempts. Try again in {minutes} minutes.", { minutes });
}

/** Seconds of a wait that is said as a day, not in minutes. */
const LONG_WAIT_S = 3600;

/** Why this signer cannot sign at all, and since when. */
function barOf({ obstacle, since, detail }) {
  const values = { date: since && instant(since) };
  const said = {
    expired: since && t("Your certificate expired on {date}.", values),
    revoked: since
      ? t("Your certificate was revoked on {date}.", values)
      : t("Your certificate was revoked."),
    locked: since && t("Your signing password has been locked since {date}, after too many wrong tries.", values),
    missing: t("You have no certificate that can sign yet."),
    disabled: t("You are not enabled to sign."),
  };
  return said[obstacle] || detail;
}

export class Stage {
  /** What the server last said of the session. */
  session = null;
  _redraw = () => {};
  /** Whether the signer says who they are before they read. */
  _whoFirst = false;
  /** What was written of why the document is refused: kept until it is sent. */
  _reason = "";
  /** Ends the document's way to the service or from it. */
  #transfer = new AbortController();
  #isLeaving = false;
  /** Settles once a session that is being left has ended, or could not be. */
  leaving = Promise.resolve();

  /**
   * @param {object} boot
   * @param {import("./host.js").Host} host
   * @param {import("./machine.js").Machine} machine
   * @param {import("./viewer.js").Viewer} viewer
   */
  constructor(boot, host, machine, viewer) {
    this._boot = boot;
    this._host = host;
    this._machine = machine;
    this._viewer = viewer;
  }

  /** Show a step; `make` is called again when the language changes. */
  step(make, first = {}) {
    this._redraw = (how) => show(make(), { ...how, whoFirst: this._whoFirst, isPlaced: !this.session?.forBatch });
    this._redraw(first);
  }

  /** Draw the present step again, in another language. */
  redraw() {
    this._redraw({ again: true });
  }

  /** Another document is on its way now, or none: the one before comes no further. */
  _transfer() {
    this.#transfer.abort();
    this.#transfer = new AbortController();
    return this.#transfer.signal;
  }

  /**
   * Show that a document is on its way, and how much of it.
   * @param {"sending"|"fetching"} doing
   * @param {{label: string, act: () => unknown}} [back] gives it up, without leaving.
   * @returns {(done: number, total: number) => void} to be called as it goes on.
   */
  _moving(doing, back) {
    const at = { doing, done: 0, total: 0 };
    this.step(() => steps.loading({ ...at, back: back?.(), cancel: () => this.leave() }));
    const redraw = this._redraw;
    return (done, total) => {
      if (redraw !== this._redraw) return;
      const isFirst = at.total === 0;
      Object.assign(at, { done, total });
      // All of it is there: now it is looked at.
      if (isFirst || (doing === "sending" && done >= total)) {
        if (done >= total && doing === "sending") at.doing = "checking";
        this.redraw();
      } else {
        tellBytes("moved", done, total);
      }
    };
  }

  /**
   * Nothing goes on here: show why, and tell the host.
   * @param {Failure} failure
   * @param {() => string} [say] what the signer reads.
   */
  block(failure, say = () => failure.toSigner(this._boot.integrator)) {
    // What has ended stays so.
    if (this._machine.is("signed", "failed", "cancelled", "rejected")) {
      alert(say);
      return;
    }
    notice(null);
    this._viewer.rest();
    this._machine.move("blocked");
    const { integrator } = this._boot;
    const show = () => {
      const topic = failure.problem.obstacle === "locked" ? "locked" : "other";
      const ask = () => this.#askHelp(topic, show);
      this.step(() => steps.blocked({ failure, told: say(), integrator, desk: this.#desk, ask }));
    };
    show();
    this._host.post("error", failure.payload);
  }

  /** Whom the signer asks who gets no further. */
  get #desk() {
    const { installation, contact, contactHref, help: url, revocation, mailed } = this._boot;
    return { installation, contact, contactHref, url, revocation, mailed };
  }

  /**
   * What the signer loses who forgot the password or has no phone, and a way to ask.
   * @param {"password"|"phone"} topic
   * @param {() => unknown} back to the step that it was asked from.
   */
  help(topic, back) {
    const ask = () => this.#askHelp(topic, back);
    this.step(() => steps.help({ topic, desk: this.#desk, ask, back }));
  }

  /** File a request for help of the session's person. */
  async #askHelp(topic, back) {
    try {
      await call("help", { body: { topic } });
    } catch (error) {
      const isLong = error.code === "RATE_LIMITED" && error.problem.retryAfter > LONG_WAIT_S;
      if (!isLong) return this.tell(error, { quiet: true });
      const { installation } = this._boot;
      return alert(() => t("You asked as often as one can in a day. Ask whoever runs {installation}, or try again tomorrow.", { installation }));
    }
    return this.step(() => steps.helpAsked({ desk: this.#desk, back }));
  }

  /** The server says that this document cannot be signed. */
  fail(failure) {
    this._through("authorising");
    this._machine.move("failed");
    this.step(() => steps.failed({ failure, integrator: this._boot.integrator }));
    this._host.post("error", failure.payload);
  }

  /** The reason that the record gives. */
  recorded(session) {
    const { code, category, message } = session.reason;
    return new Failure({ code, category, detail: message, requestId: session.id });
  }

  /**
   * Ask what has become of the request; true if it is over, which is shown then.
   * @param {Failure} error by which the service refused a call for it.
   */
  async _isOverNow(error) {
    this.session = await this.persist(() => call("state"));
    if (this.session.state !== "failed") return this._isOver();
    // Of the same code the refusal has the better reference.
    this.fail(this.session.reason.code === error.code ? error : this.recorded(this.session));
    return true;
  }

  /** Come to a later state of the flow from wherever a session is taken up. */
  _through(state) {
    if (this._machine.is("connected", "loading", "reviewing")) this._machine.move(state);
  }

  /**
   * Ask until the network is there: for what may be asked any number of times.
   * @throws {Failure} of the service; also where its answer breaks off time and again.
   */
  async persist(ask) {
    const tries = new Tries();
    const wasLeft = this._machine.is("cancelled");
    for (let lost = false; ; lost = true) {
      // Who has left meanwhile waits for nothing.
      if (lost && !wasLeft && this._machine.is("cancelled")) throw new Stopped();
      try {
        const answer = await ask();
        if (lost) retrying(null);
        return answer;
      } catch (error) {
        if (!(error instanceof Unreachable)) {
          // The service has answered: there is a connection.
          if (lost) retrying(null);
          throw error;
        }
        if (error instanceof BrokenOff && !tries.isOneLeft(error.reached)) {
          retrying(null);
          throw ownFailure("INTERNAL", { isBrokenOff: true });
        }
        retrying(() => t("There is no connection; trying again."));
        await pause(LOOK_AGAIN_MS);
      }
    }
  }

  /**
   * Do something that the signer asked for, and meet its errors.
   * @param {() => unknown} act
   * @param {() => string} [say] what is waited for, where no button of the bar tells.
   */
  async guarded(act, say) {
    const wait = say && waitFor(say);
    try {
      await act();
    } catch (error) {
      this.tell(error);
    } finally {
      wait?.end();
    }
  }

  /**
   * Show an error, and tell the host of what cannot be mended here.
   * @param {unknown} error
   * @param {{quiet?: boolean, field?: string, file?: string}} [how] quiet: not to the
   *   host; field: where on the screen; file: name of the one that it is about.
   */
  tell(error, { quiet = false, field, file } = {}) {
    if (error instanceof Stopped) return;
    if (error instanceof Unreachable) {
      alert(error instanceof BrokenOff ? brokeOff : noConnection);
      return;
    }
    if (!(error instanceof Failure)) throw error;
    if (SESSION_OVER.has(error.code)) {
      this.block(error);
      return;
    }
    if (error.problem.obstacle) {
      const say = () => barOf(error.problem);
      this.block(new Failure({ ...error.problem, detail: say() }), say);
      return;
    }
    const about = () => (file ? [t("{name} was not opened.", { name: file })] : []);
    const { integrator } = this._boot;
    const say = () => [...about(), sentenceOf(error, integrator), nextStep(error, integrator, Boolean(file))];
    alert(() => say().filter(Boolean).join(" "), field);
    if (!quiet) this._tellHost(error);
  }

  /** Tell the host of an error, unless the signer mends it here. */
  _tellHost(failure) {
    if (!MENDED_HERE.has(failure.code)) this._host.post("error", failure.payload);
  }

  /**
   * Save a file on the signer's device.
   * @param {string} name
   * @param {(how: object) => Promise<Uint8Array>} bytesOf its bytes; `how` is for `call`.
   */
  async save(name, bytesOf) {
    const stop = new AbortController();
    const wait = waitFor(() => t("Downloading {name}", { name }), { stop: () => stop.abort() });
    await this.guarded(async () => {
      const how = { raw: true, signal: stop.signal, progress: wait.progress };
      const bytes = await bytesOf(how).finally(wait.end);
      const url = URL.createObjectURL(new Blob([bytes], { type: "application/pdf" }));
      Object.assign(document.createElement("a"), { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
      announce(() => t("Download started."));
    });
  }

  /**
   * End the session.
   * @param {"signer"|"host"} reason who ends it.
   */
  cancel(reason) {
    const leaving = this._cancel(reason);
    this.leaving = leaving.catch(() => {});
    return leaving;
  }

  async _cancel(reason) {
    // Nothing else is waited for any more.
    this._viewer.rest();
    this._transfer();
    stopCalls();
    await this.guarded(async () => {
      try {
        await this.persist(() => call("cancel", { body: { reason } }));
      } catch (error) {
        if (error.code !== "SESSION_IN_USE") {
          this._viewer.fill();
          throw error;
        }
        // Signed meanwhile, or over: the host is told what became of it.
        return this.resume(await call("state"));
      }
      return this.ended(reason);
    }, () => t("Leaving…"));
  }

  /** Leave at the signer's wish: asked again where something of theirs would be lost. */
  async leave() {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    const leaving = {
      title: t("Leave without signing?"),
      text: this._leaving,
      yes: t("Leave"),
      no: t("Stay"),
    };
    try {
      if ((this._begun || isTyped()) && !(await ask(leaving))) return;
      if (this.session === null) this.ended("signer");
      else await this.cancel("signer");
    } finally {
      this.#isLeaving = false;
    }
  }

  /** What becomes of all this where the signer leaves. */
  get _leaving() {
    return t("Nothing is signed and nothing is rejected, but what you did here is lost: you would start again.");
  }

  /** Whether the signer has done something that would have to be done again. */
  get _begun() {
    return this.session?.proven === true;
  }

  /** Refuse to sign, for good: asked again, with a reason if the signer gives one. */
  reject(back) {
    const { integrator } = this._boot;
    const { name } = this.session.document;
    const go = async (form) => {
      const reason = form.get("reason").trim();
      const refusing = {
        title: t("Reject {name} for good?", { name }),
        text: t("It cannot be undone: you will not be able to sign it any more."),
        yes: t("Yes, reject"),
        no: t("Do not reject"),
        kind: "danger",
      };
      if (!(await ask(refusing))) return;
      await this.guarded(async () => {
        await this._wasRejected(await call("reject", { body: { reason } }), reason);
      });
    };
    const keep = (reason) => {
      this._reason = reason;
    };
    this.step(() => steps.reject({ integrator, name, reason: this._reason, keep, go, back }));
  }

  /** The server took the refusal. */
  _wasRejected(_session, reason) {
    this.rejected(reason);
  }

  /** The signer refused to sign. */
  rejected(reason = "") {
    notice(null);
    this._viewer.rest();
    this._reason = "";
    this._machine.move("rejected");
    const { idemKey, batch } = this.session;
    this.step(() => steps.rejected({ integrator: this._boot.integrator, count: batch?.rejected }));
    this._host.post("rejected", {
      ...(idemKey && { idemKey }),
      ...(batch && { loteId: batch.id }),
      ...(reason && { reason }),
    });
  }

  /** Show that a session came to its end without a signature; whether it did. */
  _isOver() {
    const { state, withdrawn } = this.session;
    if (state === "rejected") this.rejected();
    else if (state === "cancelled") this.ended(withdrawn ? "host" : "signer");
    return state === "rejected" || state === "cancelled";
  }

  /** Somebody left without a signature, or what they were to sign is withdrawn. */
  ended(reason = "signer") {
    notice(null);
    this._machine.move("cancelled");
    const { integrator } = this._boot;
    const withdrawn = this.session?.withdrawn === true;
    this.step(() => steps.cancelled({ integrator, withdrawn }));
    this._host.post("cancelled", { reason });
  }
}
