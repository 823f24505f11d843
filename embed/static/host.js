// The conversation with the page around the frame. A message counts only if it comes
// from that very window and from a registered origin; once an init was valid, from
// the origin that sent it. Nothing is ever posted to an origin that is not registered.

import { isPlain, weight } from "./guard.js";
import { MESSAGES, SMALL_MESSAGE } from "./protocol.js";

const STRANGE_MOST = 5;
const STRANGE_LENGTH = 100;
const TYPE = /^[\w.-]{1,64}$/;

export class Host {
  #prefix;
  #origins;
  #deliver;
  #pinned = null;
  #warned = false;
  /** What came and was not read: origins that are not registered, other types. */
  #strange = { origins: new Set(), types: new Set() };

  /**
   * @param {{prefix: string, origins: string[]}} boot
   * @param {(name: string, payload: object, origin: string) => void} deliver
   */
  constructor(boot, deliver) {
    this.#prefix = `${boot.prefix}.`;
    this.#origins = boot.origins;
    this.#deliver = deliver;
  }

  /** Whether there is a page around the frame at all. */
  static get present() {
    return window.parent !== window;
  }

  /** Whether an init was valid: then there is one origin to talk to. */
  get connected() {
    return this.#pinned !== null;
  }

  /** Listen, and take what came before the modules did. */
  listen() {
    addEventListener("message", (event) => this.#receive(event));
    removeEventListener("message", window.rubricaKeep);
    for (const event of window.rubricaEarly.splice(0)) this.#receive(event);
  }

  /** From now on talk to this origin alone. */
  pin(origin) {
    this.#pinned = origin;
  }

  /**
   * Post a message.
   * @param {string} name without prefix.
   * @param {object} payload
   * @param {string} [origin] a registered one, to answer before any is pinned.
   */
  post(name, payload = {}, origin) {
    if (!Host.present) return;
    const message = { type: this.#prefix + name, payload };
    for (const target of this.#targets(origin)) window.parent.postMessage(message, target);
  }

  #targets(origin) {
    if (this.#pinned !== null) return [this.#pinned];
    if (origin !== undefined) return this.#origins.includes(origin) ? [origin] : [];
    // A browser that tells who is around spares the console of the others' refusals.
    const around = window.location.ancestorOrigins?.[0];
    if (around !== undefined && this.#origins.includes(around)) return [around];
    return this.#origins;
  }

  /** Two mistakes that leave a host waiting for ever: said once, to its developer. */
  #warn(data) {
    const isText = typeof data === "string" && /^\s*\{[^]{0,200}"[\w-]+\.init"/.test(data);
    const isOther =
      isPlain(data) &&
      typeof data.type === "string" &&
      /^[\w-]{1,32}\.init$/.test(data.type) &&
      data.type !== `${this.#prefix}init`;
    if (this.#warned || (!isText && !isOther)) return;
    this.#warned = true;
    const wanted = `{ type: "${this.#prefix}init", payload: {…} }`;
    console.warn(`The signing iframe ignored a message: it takes ${wanted}, an object and no text.`);
  }

  /**
   * Why nothing may have come, for whoever made the host's page; nothing of it is secret.
   * @param {number} seconds that were waited.
   */
  unheard(seconds) {
    const { origins, types } = this.#strange;
    const listed = (found) => [...found].join(", ") || "none";
    return (
      `Signing iframe: no ${this.#prefix}init in ${seconds} s. Send { type: "${this.#prefix}init", payload: {…} }, ` +
      `an object and no text, to the iframe's contentWindow, from a registered origin (${listed(this.#origins)}). ` +
      `Ignored so far: from other origins: ${listed(origins)}; of other types: ${listed(types)}.`
    );
  }

  #note(found, text) {
    if (found.size < STRANGE_MOST) found.add(text.slice(0, STRANGE_LENGTH));
  }

  #receive(event) {
    if (!Host.present || event.source !== window.parent) return;
    if (!this.#origins.includes(event.origin)) {
      this.#note(this.#strange.origins, event.origin);
      return;
    }
    if (this.#pinned !== null && event.origin !== this.#pinned) return;
    const { data } = event;
    this.#warn(data);
    if (!isPlain(data) || typeof data.type !== "string") return;
    if (!data.type.startsWith(this.#prefix)) {
      if (TYPE.test(data.type)) this.#note(this.#strange.types, data.type);
      return;
    }
    const name = data.type.slice(this.#prefix.length);
    const known = Object.hasOwn(MESSAGES, name) ? MESSAGES[name] : null;
    if (known?.direction !== "toFrame") return;
    const payload = data.payload ?? {};
    if (!isPlain(payload) || weight(payload) > SMALL_MESSAGE) {
      this.#deliver(name, null, event.origin);
      return;
    }
    this.#deliver(name, payload, event.origin);
  }
}
