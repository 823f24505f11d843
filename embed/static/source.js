// A stored document that comes in parts: what pdf.js asks for first, the rest behind it.
// When all of it is there its hash is compared: what is shown is what is signed.

import { callPart } from "./api.js";
import { sha256 } from "./base64.js";
import { BrokenOff, Failure, Stopped, Unreachable, ownFailure } from "./failure.js";
import { Tries } from "./tries.js";

/** A document up to this size comes in one piece. */
export const WHOLE_AT_MOST = 1_048_576;
export const BLOCK = 65_536;
const AGAIN_MS = 1_500;
/** Seconds after which a failure that names none is tried again. */
const RETRY_AFTER_S = 5;
/** A service that wants a longer pause is not waited for. */
const RETRY_AFTER_MOST_S = 60;

/** Wait, unless what it is for is given up. */
function pause(ms, signal) {
  return new Promise((resume) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resume();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

export class DocumentSource {
  #path;
  #sha256;
  #bytes;
  /** Of each block of the document: whether it is here, and what brings it. */
  #here;
  #coming;
  #came = 0;
  /** How many parts are being asked for that somebody waits for. */
  #urgent = 0;
  #filling = false;
  #fill = null;
  #end = new AbortController();
  #isWhole = false;
  #whole;
  #settle;
  /** Why each part is late that is tried again, by its fetch. */
  #late = new Map();
  /** Why no more of it can be had. */
  error = null;
  /** Called with the bytes that are here, and all that there are. */
  progress = () => {};
  /**
   * Called with why the document is late, when that changes; null: it is not. Seconds
   * are those until the service is asked again, which cannot give it; null: there is no
   * network.
   * @type {(why: {seconds: number|null}|null) => void}
   */
  late = () => {};
  /** Called once nothing more comes by itself: a later `read` or `fill` tries again. */
  failed = () => {};

  /**
   * @param {string} path below `/embed/api/`.
   * @param {{sha256: string, size: number}} document
   */
  constructor(path, { sha256: hash, size }) {
    this.#path = path;
    this.#sha256 = hash;
    this.#bytes = new Uint8Array(size);
    const blocks = Math.ceil(size / BLOCK);
    this.#here = new Uint8Array(blocks);
    this.#coming = new Array(blocks).fill(null);
    this.#begin();
  }

  /** Wait for all of it, for the first time or after a failure. */
  #begin() {
    this.error = null;
    this.#whole = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.#whole.catch(() => {});
  }

  get size() {
    return this.#bytes.length;
  }

  get came() {
    return this.#came;
  }

  /** All of it, once it is here and was found to be the document. */
  get whole() {
    return this.#whole;
  }

  /**
   * Read a part; what is not here yet comes before anything else.
   * @param {number} start
   * @param {number} end after the last byte.
   * @returns {Promise<Uint8Array>} a copy.
   * @throws {Failure|Stopped}
   */
  async read(start, end) {
    this.#retry();
    const last = Math.ceil(end / BLOCK);
    const waits = new Set();
    for (let block = Math.floor(start / BLOCK); block < last; block += 1) {
      if (this.#here[block]) continue;
      if (!this.#coming[block]) this.#bring(block, last);
      waits.add(this.#coming[block]);
    }
    await Promise.all(waits);
    return this.#bytes.slice(start, end);
  }

  /** Have the rest come, too, while nobody waits for a part. */
  fill() {
    if (this.#isWhole) return;
    this.#retry();
    this.#filling = true;
    this.#goOn();
  }

  /** Have the rest come no more. */
  rest() {
    this.#filling = false;
    this.#fill?.abort();
  }

  /** Forget a failure that may pass, once nothing is under way any more. */
  #retry() {
    const isOver = this.error?.category === "retry" && !this.#urgent && !this.#fill;
    if (isOver && !this.#end.signal.aborted) this.#begin();
  }

  /** Nothing more comes. */
  close() {
    this.rest();
    this.#end.abort();
    this.error ??= new Stopped();
    this.#settle.reject(this.error);
  }

  /** Ask for the blocks from one on that are missing and not on their way. */
  #bring(first, last) {
    let next = first;
    while (next < last && !this.#here[next] && !this.#coming[next]) next += 1;
    this.#urgent += 1;
    this.#fill?.abort();
    const coming = this.#fetch(first, next, this.#end.signal)
      .catch((error) => {
        this.#fail(error);
        throw error;
      })
      .finally(() => {
        this.#coming.fill(null, first, next);
        this.#urgent -= 1;
        this.#goOn();
      });
    coming.catch(() => {});
    this.#coming.fill(coming, first, next);
  }

  async #goOn() {
    if (!this.#filling || this.#fill || this.#urgent || this.#end.signal.aborted) return;
    const first = this.#here.indexOf(0);
    if (first < 0) {
      await this.#finish();
      return;
    }
    const next = this.#here.indexOf(1, first);
    this.#fill = new AbortController();
    try {
      await this.#fetch(first, next < 0 ? this.#here.length : next, this.#fill.signal);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#fill = null;
    }
    this.#goOn();
  }

  async #finish() {
    this.#filling = false;
    if ((await sha256(this.#bytes)) !== this.#sha256) {
      this.#fail(ownFailure("DOCUMENT_CHANGED"));
      return;
    }
    this.#isWhole = true;
    this.#settle.resolve(this.#bytes);
  }

  #fail(error) {
    if (error instanceof Stopped) return;
    this.rest();
    // Of several parts that fail together the first one tells.
    if (this.error !== null) return;
    this.error = error;
    this.#settle.reject(error);
    this.failed(error);
  }

  /**
   * Fetch blocks. A lost network is waited for without end; an answer that fails or
   * breaks off is asked for again a few times.
   */
  async #fetch(first, next, signal) {
    const end = Math.min(next * BLOCK, this.size);
    const tries = new Tries();
    // An answer that broke off goes on at its very byte: a service that cannot give
    // what follows says so then, for it can no more within an answer.
    let reached = first * BLOCK;
    const take = (piece, at) => {
      this.#take(piece, at);
      reached = at + piece.length;
    };
    try {
      for (let start = first; ; ) {
        while (start < next && this.#here[start]) start += 1;
        if (start === next) return;
        reached = Math.max(reached, start * BLOCK);
        try {
          await callPart(this.#path, { start: reached, end, sha256: this.#sha256, signal }, take);
        } catch (error) {
          if (signal.aborted) throw error;
          await this.#waitAfter(error, tries, reached, signal);
          continue;
        }
        this.#tellLate(tries, null);
      }
    } finally {
      this.#tellLate(tries, null);
    }
  }

  /**
   * Wait until a part may be asked for again.
   * @param {unknown} error why it did not come.
   * @param {Tries} tries of its fetch.
   * @param {number} reached offset up to which it came.
   * @param {AbortSignal} signal
   * @throws {Failure} it is not to be asked for again.
   */
  async #waitAfter(error, tries, reached, signal) {
    if (error instanceof Unreachable) {
      if (error instanceof BrokenOff && !tries.isOneLeft(reached)) {
        throw ownFailure("INTERNAL", { isBrokenOff: true });
      }
      this.#tellLate(tries, { seconds: null });
      return pause(AGAIN_MS, signal);
    }
    // Nobody brings a damaged document back while the signer waits.
    const mayPass = error instanceof Failure && error.category === "retry" && error.code !== "DOCUMENT_DAMAGED";
    const { retryAfter: seconds = RETRY_AFTER_S } = error.problem ?? {};
    if (!mayPass || seconds > RETRY_AFTER_MOST_S || !tries.isOneLeft(reached)) throw error;
    this.#tellLate(tries, { seconds });
    return pause(seconds * 1000, signal);
  }

  /** Say why the part of a fetch is late; null: it is no more. */
  #tellLate(tries, why) {
    const last = () => [...this.#late.values()].at(-1) ?? null;
    const before = last();
    if (why === null) this.#late.delete(tries);
    else this.#late.set(tries, why);
    const now = last();
    if (now?.seconds !== before?.seconds) this.late(now);
  }

  /** Keep what has come; a block is here once its last byte is. */
  #take(piece, at) {
    this.#bytes.set(piece, at);
    const end = at + piece.length;
    const last = end === this.size ? this.#here.length : Math.floor(end / BLOCK);
    for (let block = Math.floor(at / BLOCK); block < last; block += 1) {
      if (this.#here[block]) continue;
      this.#here[block] = 1;
      this.#came += Math.min(BLOCK, this.size - block * BLOCK);
    }
    this.progress(this.#came, this.size);
  }
}
