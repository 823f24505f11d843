// How long the signer waits for a code that works: each code works once.

import { byId } from "./dom.js";
import { t } from "./i18n.js";
import { announce } from "./screen.js";

let timer = 0;

/**
 * Count down below the field until the app shows another code.
 * @param {number} seconds 0: it may show one now.
 */
export function countDown(seconds) {
  clearInterval(timer);
  if (seconds <= 0) return;
  const end = performance.now() + seconds * 1000;
  const tick = () => {
    const line = byId("next-code");
    const left = Math.ceil((end - performance.now()) / 1000);
    if (!line || left <= 0) clearInterval(timer);
    if (!line) return;
    line.hidden = false;
    line.textContent = left > 0
      ? t("Your app shows another code in {seconds} s.", { seconds: left })
      : t("Your app shows another code now: type that one.");
    // Once, and not each second.
    if (left <= 0) announce(() => t("Your app shows another code now: type that one."));
  };
  tick();
  timer = setInterval(tick, 1000);
}
