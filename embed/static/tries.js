// How often the service is asked again after an answer that fails.

const MOST = 4;

/** Tries in a row that bring nothing new: what gets farther may fail as often again. */
export class Tries {
  #left = MOST;
  #farthest = -1;

  /**
   * Count a failure.
   * @param {number} reached bytes that are here by now.
   * @returns {boolean} whether to try again.
   */
  isOneLeft(reached) {
    if (reached > this.#farthest) this.#left = MOST;
    this.#farthest = Math.max(this.#farthest, reached);
    this.#left -= 1;
    return this.#left > 0;
  }
}
