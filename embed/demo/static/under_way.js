/**
 * The signature that is under way in this tab, kept over a reload of the page.
 *
 * The token and the idempotency key belong together: with the same two, and the same
 * document, the frame goes on where it was, and makes no second request.
 */

const KEY = "rubrica.demo.under-way";

/**
 * Keep it. A document too large for the tab's storage is not kept, nor is the rest then.
 * @param {{session: object, order: object, asked: object|null}} underWay
 */
export function keepUnderWay(underWay) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(underWay));
  } catch {
    forgetUnderWay();
  }
}

/** What was kept for this page, or null: another request's is not continued here. */
export function keptUnderWay(asked) {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY));
    return kept && JSON.stringify(kept.asked) === JSON.stringify(asked) ? kept : null;
  } catch {
    return null;
  }
}

/** Begin anew at the next load. */
export function forgetUnderWay() {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // A browser that keeps nothing has nothing to forget.
  }
}
