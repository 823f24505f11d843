// How long the session lasts, and what is said of its end beforehand.

const WARN_S = [300, 60];

export class SessionClock {
  #timers = [];
  #warn;
  #over;

  /**
   * @param {(secondsLeft: number, expiresAt: string) => void} warn
   * @param {() => void} over
   */
  constructor(warn, over) {
    this.#warn = warn;
    this.#over = over;
  }

  /** @param {{secondsLeft: number, expiresAt: string}} session as just answered. */
  set({ secondsLeft, expiresAt }) {
    this.#timers.forEach(clearTimeout);
    // Counted from the answer, not by the device's clock, which may be wrong.
    // Who comes when less than the last one's time is left is warned at once.
    const warnings = WARN_S.filter((left) => left < secondsLeft);
    if (!warnings.length) warnings.push(secondsLeft);
    this.#timers = warnings.map((left) =>
      setTimeout(() => this.#warn(left, expiresAt), (secondsLeft - left) * 1000),
    );
    this.#timers.push(setTimeout(this.#over, secondsLeft * 1000));
  }
}
