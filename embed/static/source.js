// A stored document that comes in parts: what pdf.js asks for first, the rest behind it.
// When all of it is there its hash is compared: what is shown is what is signed.

import { callPart } from "./api.js";
import { sha256 } from "./base64.js";
import { Stopped, Unreachable, ownFailure } from "./failure.js";

/** A document up to this size comes in one piece. */
export const WHOLE_AT_MOST = 1_048_576;
export const BLOCK = 65_536;
const AGAIN_MS = 1_500;

const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));

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
  #whole;
  #settle;
  /** Why no more of it can be had. */
  error = null;
  /** Called with the bytes that are here, and all that there are. */
  progress = () => {};
  /** Called with whether the network is away. */
  lost = () => {};

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
   */
  async read(start, end) {
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
    this.#filling = true;
    this.#goOn();
  }

  /** Have the rest come no more. */
  rest() {
    this.#filling = false;
    this.#fill?.abort();
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
    const coming = this.#fetch(first, next, this.#end.signal).finally(() => {
      this.#coming.fill(null, first, next);
      this.#urgent -= 1;
      this.#goOn();
    });
    coming.catch((error) => this.#fail(error));
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
    if ((await sha256(this.#bytes)) === this.#sha256) this.#settle.resolve(this.#bytes);
    else this.#fail(ownFailure("DOCUMENT_CHANGED"));
  }

  #fail(error) {
    if (error instanceof Stopped) return;
    this.rest();
    this.error = error;
    this.#settle.reject(error);
  }

  /** Fetch blocks, over again while there is no network. */
  async #fetch(first, next, signal) {
    const end = Math.min(next * BLOCK, this.size);
    for (let isLost = false; ; ) {
      let start = first;
      while (start < next && this.#here[start]) start += 1;
      if (start === next) break;
      try {
        const part = { start: start * BLOCK, end, sha256: this.#sha256, signal };
        await callPart(this.#path, part, (piece, at) => this.#take(piece, at));
      } catch (error) {
        const isPassing = error instanceof Unreachable || error.category === "retry";
        if (!isPassing || signal.aborted) throw error;
        if (!isLost) this.lost((isLost = true));
        await pause(AGAIN_MS);
        continue;
      }
      if (isLost) this.lost((isLost = false));
    }
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
