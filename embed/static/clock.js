// How long the session lasts, and what is said of its end beforehand.

const WARN_S = [300, 60];

export class SessionClock {
  #timers = [];
  #warn;
  #tell;
  #over;

  /**
   * @param {(secondsLeft: number, expiresAt: string) => void} warn
   * @param {(secondsLeft: number) => void} tell each minute after the first warning.
   * @param {() => void} over
   */
  constructor(warn, tell, over) {
    this.#warn = warn;
    this.#tell = tell;
    this.#over = over;
  }

  /** @param {{secondsLeft: number, expiresAt: string}} session as just answered. */
  set({ secondsLeft, expiresAt }) {
    this.#timers.forEach(clearTimeout);
    // Counted from the answer, not by the device's clock, which may be wrong.
    // Who comes when less than the first one's time is left is warned at once.
    const warnings = WARN_S.filter((left) => left < secondsLeft);
    if (warnings.length < WARN_S.length) warnings.unshift(secondsLeft);
    this.#timers = warnings.map((left) =>
      setTimeout(() => this.#warn(left, expiresAt), (secondsLeft - left) * 1000),
    );
    for (let left = 60; left < Math.min(warnings[0], secondsLeft); left += 60) {
      if (warnings.includes(left)) continue;
      this.#timers.push(setTimeout(() => this.#tell(left), (secondsLeft - left) * 1000));
    }
    this.#timers.push(setTimeout(this.#over, secondsLeft * 1000));
  }
}
