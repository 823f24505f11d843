/**
 * `<svc-signer>`: the signing iframe of Rúbrica as an element.
 *
 * It embeds the iframe, speaks its messages with it and with nobody else, and passes
 * them on as events. It adds nothing to the protocol: what it does, a page can do by
 * `postMessage` alone. Types, and what everything is for: rubrica-embed.d.ts.
 */

const READY_WAIT_MS = 15_000;
const ACK_WAIT_MS = 10_000;
const PROPERTIES = ["token", "fetchToken", "userData", "file", "idemKey"];
const EVENTS = {
  "handshake.ack": "connected",
  "signature.completed": "completed",
  "batch.completed": "batchcompleted",
  "signer.unknown": "unknown",
  "session.expiring": "expiring",
  "document.loaded": "loaded",
};
/** Errors of the page's side, beside those of `svc.error`: category, sentence. */
const TROUBLES = {
  NO_TOKEN: ["retry", "no session token could be had"],
  NO_FILE: ["fix_request", "the document could not be read"],
  NO_READY: ["fix_request", "the frame says nothing: is this origin registered, does a policy block it?"],
  NO_ACK: ["fix_request", "the frame does not answer: are frame-url and prefix right?"],
};
const STYLE = `:host { display: block; min-width: min(400px, 100%); min-height: 500px; height: 80vh; height: 80dvh }
:host([hidden]) { display: none }
iframe { display: block; width: 100%; height: 100%; min-height: inherit; border: 0 }`;

/** Keys by the fingerprint of their token, the newest last: in the tab, as far as it keeps any. */
const KEPT = "svc-signer.keys";
let kept = [];

function keys() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)) ?? kept;
  } catch {
    return kept;
  }
}

/** The key of a token: after a reload of the page, too. No token is kept, and no secret. */
async function keyOf(token, own) {
  const print = await fingerprint(new TextEncoder().encode(token));
  const known = keys().filter(([of]) => of !== print);
  const key = own ?? keys().find(([of]) => of === print)?.[1] ?? crypto.randomUUID();
  kept = [...known.slice(-9), [print, key]];
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(kept));
  } catch {
    // Storage is refused: the page remembers until it is loaded again.
  }
  return key;
}

async function fingerprint(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Modules may be loaded where there is no page: what renders them on a server. */
const Element = globalThis.HTMLElement ?? class {};

export class SvcSigner extends Element {
  static observedAttributes = ["frame-url"];

  static {
    for (const name of PROPERTIES) {
      Object.defineProperty(this.prototype, name, {
        configurable: true,
        enumerable: true,
        get() {
          return this.#given[name];
        },
        set(value) {
          this.#given[name] = value;
          if (this.#acked) this.#sendFile();
          else this.#startSoon();
        },
      });
    }
  }

  #given = {};
  #frame = null;
  #origin = "";
  #token = "";
  #init = null;
  #sentFile;
  #acked = false;
  #timer = 0;
  /** Which opening is the present one; what an earlier one awaited is let go. */
  #opening = 0;
  #isOpening = false;
  #isClosed = false;

  constructor() {
    super();
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    this.attachShadow({ mode: "open" }).adoptedStyleSheets = [sheet];
  }

  get frame() {
    return this.#frame;
  }

  connectedCallback() {
    // Set before this module had come: they stand in front of the class's own.
    for (const name of PROPERTIES.filter((each) => Object.hasOwn(this, each))) {
      const value = this[name];
      delete this[name];
      this[name] = value;
    }
    this.#startSoon();
  }

  disconnectedCallback() {
    this.#end();
  }

  attributeChangedCallback() {
    this.#startSoon();
  }

  /** Take the iframe away, until `restart`; what waits for a signature goes on waiting. */
  close() {
    this.#isClosed = true;
    this.#end();
  }

  #end() {
    this.#opening += 1;
    this.#isOpening = false;
    clearTimeout(this.#timer);
    globalThis.removeEventListener("message", this.#receive);
    this.#frame?.remove();
    this.#frame = null;
    this.#acked = false;
  }

  /** Embed anew, with another token and the same `idemKey`. */
  restart() {
    this.#end();
    this.#isClosed = false;
    this.#token = "";
    this.#startSoon();
  }

  /** Ask the iframe to leave; it answers by the event `cancelled`. */
  cancel() {
    this.#send("cancel", {});
  }

  /** Go on with a fresh token; nothing that was done is lost. */
  renew(token) {
    this.#token = token;
    keyOf(token, this.#given.idemKey);
    this.#send("session.renew", { sessionToken: token });
  }

  #isComplete() {
    const { token, fetchToken, userData } = this.#given;
    return this.isConnected && this.getAttribute("frame-url") && userData && (token || fetchToken);
  }

  /** Once everything is there, and once what is set together has been set. */
  #startSoon() {
    if (this.#frame || this.#isOpening || this.#isClosed || !this.#isComplete()) return;
    this.#isOpening = true;
    const opening = ++this.#opening;
    queueMicrotask(() => opening === this.#opening && this.#start(opening));
  }

  async #start(opening) {
    const { userData, file } = this.#given;
    const init = { nonce: crypto.randomUUID(), userData };
    let trouble = "NO_FILE";
    try {
      if (file) init.autoLoadFile = await documentOf(file);
      trouble = "NO_TOKEN";
      this.#token ||= await this.#freshToken();
      init.idemKey = await keyOf(this.#token, this.#given.idemKey);
    } catch (cause) {
      if (opening !== this.#opening) return;
      this.#isOpening = false;
      this.#complain(trouble, cause);
      return;
    }
    if (opening !== this.#opening) return;
    this.#isOpening = false;
    this.#given.idemKey = init.idemKey;
    this.#init = init;
    this.#sentFile = file;
    this.#embed();
  }

  async #freshToken() {
    const { token, fetchToken } = this.#given;
    const fresh = fetchToken ? await fetchToken() : token;
    if (typeof fresh !== "string" || !fresh) throw new TypeError("not a token");
    return fresh;
  }

  #embed() {
    const frame = document.createElement("iframe");
    this.#origin = new URL(this.getAttribute("frame-url")).origin;
    frame.id = "firma";
    frame.title = this.getAttribute("frame-title") || "Firma";
    frame.allow = "clipboard-read; clipboard-write; camera *; microphone";
    // Lets the service tell which origin is missing in the registration.
    frame.referrerPolicy = "origin";
    frame.part = "frame";
    frame.src = `${this.#origin}/embed/?sessionToken=${encodeURIComponent(this.#token)}`;
    this.#frame = frame;
    // Listening comes before the frame exists: `ready` may be quick.
    globalThis.addEventListener("message", this.#receive);
    this.#expect("NO_READY", READY_WAIT_MS);
    this.shadowRoot.append(frame);
  }

  get #prefix() {
    return `${this.getAttribute("prefix") || "svc"}.`;
  }

  #send(type, payload) {
    const to = this.#frame?.contentWindow;
    if (!to) return;
    const message = { type: this.#prefix + type, payload };
    // The origin, never "*": nobody else may read what is sent.
    to.postMessage(message, this.#origin);
    this.#tell("sent", message);
  }

  #receive = ({ source, origin, data }) => {
    // Both: nobody else's window, and nobody else's origin.
    if (source !== this.#frame?.contentWindow || origin !== this.#origin) return;
    if (typeof data?.type !== "string" || !data.type.startsWith(this.#prefix)) return;
    const type = data.type.slice(this.#prefix.length);
    this.#tell("message", { type: data.type, payload: data.payload });
    const goesOn = this.#tell(EVENTS[type] ?? type, data.payload, type === "session.expiring");
    this.#goOn(type, data.payload, goesOn);
  };

  #goOn(type, payload, goesOn) {
    if (type === "ready") {
      // It comes again when the frame was loaded again: init is owed again.
      this.#acked = false;
      this.#expect("NO_ACK", ACK_WAIT_MS);
      this.#send("init", { ...this.#init, sessionToken: this.#token });
    } else if (type === "handshake.ack") {
      clearTimeout(this.#timer);
      this.#acked = true;
      // One that was set since the frame was opened.
      this.#sendFile();
    } else if (type === "error") {
      clearTimeout(this.#timer);
    } else if (type === "session.expiring" && goesOn && this.#given.fetchToken) {
      this.#renewSelf();
    } else if (type === "resize" && this.hasAttribute("auto-height") && payload?.height > 0) {
      this.style.height = `${payload.height}px`;
    }
  }

  async #renewSelf() {
    const opening = this.#opening;
    try {
      const token = await this.#freshToken();
      if (opening === this.#opening) this.renew(token);
    } catch (cause) {
      if (opening === this.#opening) this.#complain("NO_TOKEN", cause);
    }
  }

  async #sendFile() {
    const { file } = this.#given;
    if (!file || file === this.#sentFile) return;
    this.#sentFile = file;
    const opening = this.#opening;
    try {
      const loaded = await documentOf(file);
      if (opening !== this.#opening || file !== this.#given.file) return;
      this.#init.autoLoadFile = loaded;
      this.#send("load.file", loaded);
    } catch (cause) {
      if (opening === this.#opening) this.#complain("NO_FILE", cause);
    }
  }

  #expect(trouble, waitMs) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#complain(trouble), waitMs);
  }

  #complain(code, cause) {
    const [category, message] = TROUBLES[code];
    this.#tell("error", { code, category, message, retryable: category === "retry", cause });
  }

  #tell(name, detail, cancelable = false) {
    return this.dispatchEvent(new CustomEvent(name, { detail, cancelable }));
  }
}

/** A file as the protocol wants it: Base64 without its `data:` prefix. */
export async function documentOf(file) {
  if (!(file instanceof Blob)) return file;
  const url = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  const base64 = url.slice(url.indexOf(",") + 1);
  return { fileName: file.name ?? "documento.pdf", mime: "application/pdf", base64 };
}

/** The signed PDF of `completed`, inline or from its address, once it is whole. */
export async function signedDocument({ delivery, document: told }) {
  const bytes = delivery.fileBase64
    ? Uint8Array.from(atob(delivery.fileBase64), (letter) => letter.charCodeAt(0))
    : await download(delivery.url);
  if ((await fingerprint(bytes)) !== told.sha256 || bytes.length !== told.size) {
    throw new Error("the document is not the announced one");
  }
  return new File([bytes], told.fileName, { type: "application/pdf" });
}

async function download(url) {
  const answer = await fetch(url, { credentials: "omit", referrerPolicy: "no-referrer" });
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

if (globalThis.customElements && !customElements.get("svc-signer")) {
  customElements.define("svc-signer", SvcSigner);
}
