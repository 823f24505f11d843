// The state of the frame; what is not in the protocol's table does not happen.

import { STATES } from "./protocol.js";

export class Machine {
  #state = "boot";
  #changed;

  /** @param {(state: string) => void} changed */
  constructor(changed) {
    this.#changed = changed;
  }

  get state() {
    return this.#state;
  }

  /** @param {string} name of a message of the host. */
  accepts(name) {
    return STATES[this.#state].accepts.includes(name);
  }

  /** @param {...string} states */
  is(...states) {
    return states.includes(this.#state);
  }

  /** @param {string} next */
  move(next) {
    if (next === this.#state) return;
    if (!STATES[this.#state].leads.includes(next)) {
      throw new Error(`no way from ${this.#state} to ${next}`);
    }
    this.#state = next;
    document.documentElement.dataset.state = next;
    this.#changed(next);
  }
}
