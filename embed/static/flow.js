// The ceremony: from a document to its signature, step by step. The server decides;
// what is kept here is what is on the screen.

import { call } from "./api.js";
import { encodeBase64 } from "./base64.js";
import { byId, fill } from "./dom.js";
import { Failure, Unreachable } from "./failure.js";
import { t } from "./i18n.js";
import { alert, announce, notice, show } from "./screen.js";
import * as steps from "./steps.js";
import { toolbar } from "./viewer.js";

const MENDED_HERE = new Set([
  "OTP_INVALID",
  "SIGN_PASSWORD_WRONG",
  "RATE_LIMITED",
  "FIELD_INVALID",
  "BUSY",
]);
const SESSION_OVER = new Set([
  "SESSION_TOKEN_EXPIRED",
  "SESSION_TOKEN_INVALID",
  "SESSION_SUPERSEDED",
  "TOKEN_MISSING",
]);
const LOOK_AGAIN_MS = 1500;

export class Flow {
  session = null;
  claim = {};
  #boot;
  #host;
  #machine;
  #viewer;
  #chosen = { corner: "bottomLeft", page: 1 };
  #placement = null;
  #own = false;
  #redraw = () => {};
  #turn = 0;

  constructor(boot, host, machine, viewer) {
    this.#boot = boot;
    this.#host = host;
    this.#machine = machine;
    this.#viewer = viewer;
  }

  /** Draw the present step again, in another language. */
  redraw() {
    this.#redraw();
  }

  /** Show a step before there is a session. */
  start(make) {
    this.#step(make);
  }

  #step(make) {
    this.#redraw = () => show(make());
    this.#redraw();
  }

  // -- where a session stands -------------------------------------------------

  /** Go on from what the server says of a session. */
  async resume(session) {
    this.session = session;
    if (session.state === "signed") return this.finish();
    if (session.state === "cancelled") return this.#ended();
    if (session.state === "failed") return this.#fail(this.#reasonOf(session));
    if (session.document && !this.#shown()) await this.#reopen();
    if (session.state === "signing") return this.#reconcile();
    if (session.state === "authorised") return this.#authorised();
    return session.document ? this.read() : this.pick();
  }

  #shown() {
    return byId("viewer").dataset.sha256 === this.session.document?.sha256;
  }

  #reasonOf(session) {
    return new Failure({
      code: session.reason.code,
      category: session.reason.category,
      detail: session.reason.message,
      requestId: this.session.id,
    });
  }

  /** Nothing goes on: show why, and tell the host. */
  block(failure) {
    notice(null);
    if (this.#machine.state !== "blocked") this.#machine.move("blocked");
    const integrator = this.#boot.integrator;
    this.#step(() => steps.blocked({ failure, integrator }));
    this.#host.post("error", failure.payload);
  }

  #fail(failure) {
    if (this.#machine.is("connected", "loading", "reviewing")) this.#machine.move("authorising");
    this.#machine.move("failed");
    this.#step(() => steps.failed({ failure }));
    this.#host.post("error", failure.payload);
  }

  // -- the document -----------------------------------------------------------

  pick() {
    if (!this.#machine.is("connected")) this.#machine.move("connected");
    this.#step(() =>
      steps.pick({
        integrator: this.#boot.integrator,
        choose: (file) => this.#guarded(() => this.#chooseFile(file)),
        pending: () => this.#guarded(() => this.#identified(() => this.#requests())),
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
   * Take a document in.
   * @param {Uint8Array} bytes
   * @param {string} name
   * @param {{own?: boolean}} [how] whether the signer brought it.
   */
  async take(bytes, name, { own = false } = {}) {
    const turn = (this.#turn += 1);
    this.#machine.move("loading");
    this.#step(() => steps.loading());
    try {
      const session = await call("document", { file: bytes, fileName: name });
      if (turn !== this.#turn) return;
      this.#own = own;
      this.session = session;
      if (session.state === "signed") return this.finish();
      await this.#open(bytes);
      if (session.state === "authorised") return this.#authorised();
      this.read();
    } catch (error) {
      if (turn !== this.#turn) return;
      this.#machine.move("connected");
      if (this.session.document && this.#shown()) this.read();
      else this.pick();
      this.#tell(error, { quiet: own });
    }
  }

  async #reopen() {
    const turn = (this.#turn += 1);
    this.#machine.move("loading");
    this.#step(() => steps.loading());
    const bytes = await call("document", { raw: true });
    if (turn === this.#turn) await this.#open(bytes);
  }

  async #open(bytes) {
    const { document } = this.session;
    document.pages.length && (await this.#viewer.open(bytes, document.pages));
    byId("viewer").dataset.sha256 = document.sha256;
    fill(byId("tools"), toolbar(this.#viewer, document.pages.length));
    this.#chosen = { corner: "bottomLeft", page: 1 };
    this.#host.post("document.loaded", {
      fileName: document.name,
      sha256: document.sha256,
      pages: document.pages.length,
      size: document.size,
    });
  }

  read() {
    if (this.#machine.is("connected")) this.#machine.move("loading");
    this.#machine.move("reviewing");
    this.#step(() =>
      steps.read({
        session: this.session,
        go: () => this.#identified(() => this.code()),
        save: () => this.#save("document", this.session.document.name),
        change: this.#own ? () => this.pick() : null,
        cancel: () => this.cancel("signer"),
      }),
    );
    announce(t("The document is on the screen."));
  }

  // -- who signs --------------------------------------------------------------

  /** Match what the host said of the signer; ask only for what is missing. */
  async #identified(next) {
    if (this.session.proven) return next();
    try {
      const { ask } = await call("identify", { body: this.claim });
      if (ask === "cuil") return this.#identify(next);
      this.code(next);
    } catch (error) {
      if (error.code === "IDENTITY_MISMATCH") this.#identify(next);
      this.#tell(error);
    }
  }

  #identify(next) {
    const back = () => (this.session.document ? this.read() : this.pick());
    this.#step(() =>
      steps.identify({
        claim: this.claim,
        back,
        go: async (form) => {
          const said = { cuil: form.get("cuil").trim(), email: form.get("email").trim() };
          try {
            await call("identify", { body: said });
            this.claim = { ...this.claim, ...said };
            this.code(next);
          } catch (error) {
            this.#tell(error, { quiet: true, field: "cuil" });
          }
        },
      }),
    );
  }

  code(next) {
    const back = () => (this.session.document ? this.read() : this.pick());
    this.#step(() =>
      steps.code({
        claim: this.claim,
        back,
        go: async (form) => {
          try {
            this.session = await call("otp", { body: { code: form.get("code") } });
          } catch (error) {
            return this.#tell(error, { field: "code" });
          }
          if (this.session.state === "signed") return this.finish();
          return this.session.state === "authorised" ? this.#authorised() : next?.();
        },
      }),
    );
  }

  async #requests() {
    const { list } = await call("requests");
    this.#step(() =>
      steps.requests({
        list,
        back: () => this.pick(),
        choose: (id) =>
          this.#guarded(async () => {
            this.session = await call("choose", { body: { request: id } });
            this.#own = true;
            await this.#reopen();
            await this.#authorised();
          }),
      }),
    );
  }

  // -- where, and the signature ------------------------------------------------

  async #authorised() {
    this.#machine.move("authorising");
    await this.#place();
  }

  async #place() {
    await this.#look();
    this.#step(() =>
      steps.place({
        session: this.session,
        chosen: this.#chosen,
        change: (change) => this.#guarded(() => this.#choosePlace(change)),
        go: async () => {
          if (await this.#choosePlace({})) this.password();
        },
        cancel: () => this.cancel("signer"),
      }),
    );
  }

  async #choosePlace(change) {
    const page = document.getElementById("page");
    const wanted = { ...this.#chosen, ...change };
    if (page) wanted.page = Number(page.value);
    const before = this.#chosen;
    this.#chosen = wanted;
    try {
      await this.#look();
      return true;
    } catch (error) {
      this.#chosen = before;
      this.#tell(error, { field: "page" });
      return false;
    }
  }

  /** Ask where the mark would lie, and show it on the page. */
  async #look() {
    const { corner, page } = this.#chosen;
    this.#placement = await call("place", { body: { corner, page } });
    this.#viewer.mark(this.#placement.stamp);
  }

  password() {
    this.#step(() =>
      steps.password({
        session: this.session,
        back: () => this.#place(),
        cancel: () => this.cancel("signer"),
        go: (form) => this.#sign(form.get("password")),
      }),
    );
  }

  async #sign(password) {
    this.#machine.move("submitting");
    this.#step(() => steps.signing({ checking: false }));
    try {
      this.session = await call("sign", { body: { ...this.#chosen, password } });
    } catch (error) {
      if (error instanceof Unreachable) return this.#reconcile();
      return this.#refused(error);
    }
    return this.session.state === "signed" ? this.finish() : this.#reconcile();
  }

  async #refused(error) {
    if (error.code === "SIGNING_FAILED" || error.code === "STATE") return this.#fail(error);
    this.#machine.move("authorising");
    if (error.code?.startsWith("P") && error.problem.stamp) await this.#place();
    else this.password();
    this.#tell(error, { field: "password" });
  }

  /** Ask until the server knows the outcome; never say that it failed before. */
  async #reconcile() {
    if (this.#machine.is("connected", "loading", "reviewing")) this.#machine.move("authorising");
    if (this.#machine.is("authorising")) this.#machine.move("submitting");
    this.#machine.move("reconciling");
    this.#step(() => steps.signing({ checking: true }));
    let idle = 0;
    while (this.#machine.is("reconciling")) {
      try {
        this.session = await call("state?wait=1");
        if (this.session.state === "signed") return this.finish();
        if (this.session.state === "failed") return this.#fail(this.#reasonOf(this.session));
        // Not begun: the call never arrived, or it was undone. Seen twice, it is so.
        idle = this.session.state === "authorised" ? idle + 1 : 0;
        if (idle > 1) return this.#undone();
      } catch (error) {
        if (!(error instanceof Unreachable) && SESSION_OVER.has(error.code)) {
          return this.block(error);
        }
      }
      await new Promise((resume) => setTimeout(resume, LOOK_AGAIN_MS));
    }
  }

  #undone() {
    this.#machine.move("authorising");
    if (this.#placement === null) return this.#place();
    this.password();
    alert(this.session.reason?.message ?? t("It was not signed. Try again."), "password");
  }

  // -- the end ----------------------------------------------------------------

  async finish() {
    if (this.#machine.is("connected", "loading", "reviewing", "authorising", "submitting", "reconciling")) {
      this.#machine.move("signed");
    }
    notice(null);
    this.#viewer.mark(null);
    this.#step(() =>
      steps.done({
        session: this.session,
        save: () => this.#save("download", this.session.completed.document.fileName),
      }),
    );
    await this.replay();
  }

  /** Tell the host of the signature; as often as asked, always the same event. */
  async replay() {
    const { delivery, ...event } = await this.#persist(() => call("completed"));
    if (delivery.mode === "binary") {
      const bytes = await this.#persist(() => call("download", { raw: true }));
      delivery.fileBase64 = await encodeBase64(bytes);
    }
    this.#host.post("signature.completed", { ...event, delivery });
  }

  /** The signature is made: telling of it is tried until the network is back. */
  async #persist(ask) {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        await new Promise((again) => setTimeout(again, LOOK_AGAIN_MS));
      }
    }
  }

  /** @param {"signer"|"host"} reason */
  async cancel(reason) {
    await this.#guarded(async () => {
      await call("cancel", { body: { reason } });
      this.#ended(reason);
    });
  }

  #ended(reason = "signer") {
    notice(null);
    if (!this.#machine.is("cancelled")) this.#machine.move("cancelled");
    this.#step(() => steps.cancelled());
    this.#host.post("cancelled", { reason });
  }

  async #save(path, name) {
    await this.#guarded(async () => {
      const bytes = await call(path, { raw: true });
      const url = URL.createObjectURL(new Blob([bytes], { type: "application/pdf" }));
      const link = Object.assign(document.createElement("a"), { href: url, download: name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
      announce(t("Download started."));
    });
  }

  // -- errors -----------------------------------------------------------------

  async #guarded(act) {
    try {
      await act();
    } catch (error) {
      this.#tell(error);
    }
  }

  /** Show an error, and tell the host of what cannot be mended here. */
  #tell(error, { quiet = false, field } = {}) {
    if (error instanceof Unreachable) {
      alert(t("There is no connection. Try again."));
      return;
    }
    if (!(error instanceof Failure)) throw error;
    if (SESSION_OVER.has(error.code)) {
      this.block(error);
      return;
    }
    const left = error.problem.attemptsLeft;
    const more = left === undefined ? "" : ` ${t("Attempts left: {count}.", { count: left })}`;
    alert(error.message + more, field);
    if (!quiet && !MENDED_HERE.has(error.code)) this.#host.post("error", error.payload);
  }
}
