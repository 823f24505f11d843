// The mark of the signature on its page: shown where it will be, and moved by pointer
// or by arrow keys. Places are points from the top left of the page as it is seen.

import { h } from "./dom.js";
import { t } from "./i18n.js";

const STEPS_PT = { coarse: 10, fine: 1 };
const ARROWS = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
const SETTLE_MS = 300;
const CLICK_PX = 4;

/** Lay an element over a box of a page, in points from the page's top left. */
export function lay(element, box, page) {
  element.style.left = `${(100 * box.x) / page.width}%`;
  element.style.top = `${(100 * box.y) / page.height}%`;
  element.style.width = `${(100 * box.width) / page.width}%`;
  element.style.height = `${(100 * box.height) / page.height}%`;
  if (element.parentElement !== page.element) page.element.append(element);
}

/**
 * The place nearest to a wanted one at which a box lies wholly on its page.
 * @param {{x: number, y: number, width: number, height: number}} box
 * @param {{width: number, height: number}} page
 */
export function within(box, page) {
  const keep = (at, length, room) => Math.max(0, Math.min(at, room - length));
  return {
    ...box,
    x: keep(box.x, box.width, page.width),
    y: keep(box.y, box.height, page.height),
  };
}

/** The stamp as it will be drawn, or, where that cannot be had, its words in a box. */
function picture({ png, lines }) {
  if (!png) return h("div", { class: "words" }, ...lines.map((line) => h("span", {}, line)));
  return h("img", {
    src: `data:image/png;base64,${png}`,
    alt: lines.join(", "),
    draggable: "false",
  });
}

export class Mark {
  #element = null;
  #page = null;
  #box = null;
  #move = null;
  #settling = 0;

  /** Whether and where it is: its page's number and its box, or null. */
  get place() {
    return this.#element && { page: this.#page.number, ...this.#box };
  }

  /** Where it was moved to, if nobody was told of it yet; now nobody else will be. */
  takeMoved() {
    if (this.#settling === 0) return null;
    clearTimeout(this.#settling);
    this.#settling = 0;
    return this.place;
  }

  /**
   * Let the mark be moved, or no more.
   * @param {((place: {page: number, x: number, y: number}) => void)|null} move
   */
  set move(move) {
    this.#move = move;
    this.#dress();
  }

  /**
   * Show it.
   * @param {{box: object, lines: string[], png: string|null}|null} stamp
   * @param {{number: number, width: number, height: number, element: Element}} [page]
   */
  show(stamp, page) {
    const hadFocus = this.#element !== null && this.#element === document.activeElement;
    clearTimeout(this.#settling);
    this.#settling = 0;
    this.#element?.remove();
    this.#element = null;
    if (!stamp || !page) return;
    this.#page = page;
    this.#box = stamp.box;
    this.#element = h(
      "div",
      {
        class: "stamp",
        onpointerdown: (event) => this.#drag(event),
        onkeydown: (event) => this.#press(event),
      },
      picture(stamp),
    );
    lay(this.#element, stamp.box, page);
    this.#dress();
    if (hadFocus) this.#element.focus({ preventScroll: true });
  }

  /** @returns {DOMRect|undefined} where it is in the window. */
  get bounds() {
    return this.#element?.getBoundingClientRect();
  }

  /** @returns {DOMRect|undefined} where its page is in the window. */
  get pageBounds() {
    return this.#element?.parentElement.getBoundingClientRect();
  }

  /** Say what it is in the language in use. */
  relabel() {
    this.#dress();
  }

  #dress() {
    const told = {
      role: "application",
      tabindex: "0",
      "aria-roledescription": t("mark that can be moved"),
      "aria-label": t("Your mark. The arrow keys move it, with Shift little by little."),
    };
    for (const [name, value] of Object.entries(told)) {
      if (this.#move) this.#element?.setAttribute(name, value);
      else this.#element?.removeAttribute(name);
    }
    this.#element?.classList.toggle("movable", this.#move !== null);
  }

  #to(x, y) {
    this.#box = within({ ...this.#box, x, y }, this.#page);
    lay(this.#element, this.#box, this.#page);
  }

  #settle() {
    this.#settling = 0;
    const { x, y } = this.#box;
    this.#move?.({ page: this.#page.number, x, y });
  }

  #press(event) {
    const way = ARROWS[event.key];
    if (!way || !this.#move) return;
    event.preventDefault();
    const step = event.shiftKey ? STEPS_PT.fine : STEPS_PT.coarse;
    this.#to(this.#box.x + way[0] * step, this.#box.y + way[1] * step);
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => this.#settle(), SETTLE_MS);
  }

  #drag(begin) {
    if (!this.#move || begin.button !== 0) return;
    begin.preventDefault();
    const element = this.#element;
    element.focus({ preventScroll: true });
    element.setPointerCapture(begin.pointerId);
    const from = { ...this.#box };
    let moved = false;
    const follow = (event) => {
      const [dx, dy] = [event.clientX - begin.clientX, event.clientY - begin.clientY];
      moved ||= Math.hypot(dx, dy) >= CLICK_PX;
      if (!moved || element !== this.#element) return;
      const { width } = this.#page.element.getBoundingClientRect();
      const points = this.#page.width / width;
      this.#to(from.x + dx * points, from.y + dy * points);
    };
    const end = () => {
      element.removeEventListener("pointermove", follow);
      if (moved && element === this.#element) this.#settle();
    };
    element.addEventListener("pointermove", follow);
    element.addEventListener("lostpointercapture", end, { once: true });
  }
}
