// The document as the signer reads it: pages drawn by pdf.js when they come near the
// screen, their text laid over for selection and screen readers. Scripts, XFA and
// links of the document do nothing here. Where pdf.js cannot, the server's pictures.

import { h } from "./dom.js";
import { pageCount, size, t } from "./i18n.js";
import { Mark, lay } from "./mark.js";
import { bytesOf } from "./screen.js";
import { BLOCK, DocumentSource } from "./source.js";

const MOST_PIXELS = 5_242_880; // of one canvas: more, and phones drop it
const MOST_IMAGE_PIXELS = 64_000_000; // of a picture on a page
const ZOOMS = [0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4];
const NEAR = "100% 0px";
/** How long a page is waited for before the document before it goes. */
const DRAWN_MS = 2_000;
/** Of pdf.js: that its worker wants no more of a stream, which is no error. */
const CANCELLED = 1;

const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));

export class Viewer {
  #root;
  #picture;
  #pdfjs;
  #base;
  #pages = [];
  /** Of pdf.js: what the document that is shown is drawn by. */
  #loaded = null;
  /** How often pdf.js left out what it could not draw, or the text of a page. */
  #leftOut = 0;
  #zoom = 1;
  #near;
  #mark = new Mark();
  #fields = [];
  #place = null;
  /** Width that pages were last laid out for, in pixels. */
  #room = 0;
  /** Counts what was opened and closed: what comes late is put away. */
  #turn = 0;
  /** The page that was last told of. */
  #told = 1;
  /** What is read, as last seen; and what is kept in view until somebody scrolls. */
  #spot = null;
  #held = null;
  #still = "";
  /** Called with the page that is most on the screen, when that changes. */
  turned = () => {};

  /**
   * @param {HTMLElement} root where pages go; scrolls by itself or with its parent.
   * @param {string} base address of pdf.js.
   * @param {(page: number) => Promise<Uint8Array>} picture a page as a PNG.
   */
  constructor(root, base, picture) {
    this.#root = root;
    this.#base = base;
    this.#picture = picture;
    this.#near = new IntersectionObserver((seen) => this.#come(seen), {
      root: document,
      rootMargin: NEAR,
    });
    new ResizeObserver(() => this.#layout()).observe(root);
    root.addEventListener("click", (event) => this.#click(event));
    this.#followScroll();
  }

  /** Whether the mark that is shown is about to change. */
  set busy(is) {
    this.#root.setAttribute("aria-busy", String(is));
  }

  /** Page that is most on the screen, from 1. */
  get current() {
    // Where nothing is shown, no page is on the screen.
    if (!this.#root.clientWidth) return this.#told;
    if (this.#held && this.#isSeen(this.#held.number)) return this.#held.number;
    return this.#at(this.#seen().middle);
  }

  /**
   * Whether pages have the sizes for the width there is. Not between a change of the
   * frame's size and #layout, which follows each: until then what is in the middle is
   * not what is read, and where it was scrolled may already be lost.
   */
  get #isLaidOut() {
    return this.#root.clientWidth === this.#room;
  }

  /** What of the window shows the document, in its pixels. */
  #seen() {
    const area = this.#root.parentElement.getBoundingClientRect();
    const top = Math.max(area.top, 0);
    const bottom = Math.min(area.bottom, window.innerHeight);
    return { top, bottom, middle: (top + bottom) / 2 };
  }

  /** The page at a height of the window. */
  #at(height) {
    const index = this.#pages.findIndex(
      (page) => page.element.getBoundingClientRect().bottom > height,
    );
    return index < 0 ? Math.max(this.#pages.length, 1) : index + 1;
  }

  #isSeen(number) {
    const { top, bottom } = this.#seen();
    const page = this.#pages[number - 1]?.element.getBoundingClientRect();
    return page !== undefined && page.bottom > top && page.top < bottom;
  }

  /** The page in the middle of what is seen, and how far down and across that is. */
  #spotNow() {
    const { top, middle } = this.#seen();
    const number = this.#at(middle);
    const box = this.#pages[number - 1].element.getBoundingClientRect();
    const { scrollLeft, clientWidth, scrollWidth } = this.#root;
    return {
      number,
      down: (middle - box.top) / box.height,
      across: (scrollLeft + clientWidth / 2) / scrollWidth,
      isTop: this.#pages[0].element.getBoundingClientRect().top >= top,
    };
  }

  /** Bring back what was read, after pages have got another size. */
  #return({ number, down, across, isTop }) {
    this.#root.scrollLeft = across * this.#root.scrollWidth - this.#root.clientWidth / 2;
    // Who is at the beginning stays there, with what stands above it.
    if (!isTop) {
      const box = this.#pages[number - 1].element.getBoundingClientRect();
      this.#scroller.scrollTop += box.top + down * box.height - this.#seen().middle;
    }
    this.#still = this.#position;
  }

  /** The document's own area where it scrolls by itself, else the whole page. */
  get #scroller() {
    const area = this.#root.parentElement;
    const isOwn = getComputedStyle(area).overflowY !== "visible";
    return isOwn ? area : document.scrollingElement;
  }

  get #position() {
    return `${this.#root.parentElement.scrollTop} ${document.scrollingElement.scrollTop}`;
  }

  /** Have no more of the document come than what is looked at. */
  rest() {
    this.#loaded?.source?.rest();
  }

  /** Have the rest of the document come, too, as before `rest` or a failure. */
  fill() {
    this.#loaded?.askAgain?.();
    this.#loaded?.source?.fill();
  }

  /** Draw no further page of a document that is about to be replaced. */
  freeze() {
    this.#near.disconnect();
  }

  /** It is not replaced after all. */
  thaw() {
    for (const page of this.#pages) this.#near.observe(page.element);
  }

  /**
   * Show a document. What was shown before stays until there is something to see of it.
   * @param {Uint8Array|DocumentSource} file bytes, taken over, or where they come from.
   * @param {Array<[number, number]>} sizes width and height of each page, in points.
   * @returns {Promise<{painted: Promise<void>}>} once it is opened; `painted` is when
   *   the first page is on the screen: never, while nobody sees the frame.
   */
  async open(file, sizes) {
    this.freeze();
    const turn = (this.#turn += 1);
    const loaded = await this.#load(file);
    const pages = sizes.map(([width, height], index) => ({
      number: index + 1,
      width,
      height,
      pdf: loaded.pdf,
      drawn: 0,
      lacks: false,
      work: null,
      element: h("div", { class: "page", role: "group" }),
    }));
    this.#size(pages);
    const drawn = this.#draw(pages[0]);
    if (this.#pages.length) await Promise.race([drawn, pause(DRAWN_MS)]);
    if (turn === this.#turn) this.#turnTo(pages, loaded);
    else end(loaded);
    return { painted: drawn.then(() => new Promise(requestAnimationFrame)) };
  }

  /** Put a document in the place of the one before. */
  #turnTo(pages, loaded) {
    if (this.#pages.length) this.#scroller.scrollTop = this.#root.scrollLeft = 0;
    this.#forget();
    this.#pages = pages;
    this.#loaded = loaded;
    this.relabel();
    this.#root.replaceChildren(...pages.map((page) => page.element));
    this.#layout();
    this.thaw();
  }

  /** Name the pages, and what can be done with the mark, in the language in use. */
  relabel() {
    const pages = this.#pages.length;
    for (const { element, number } of this.#pages) {
      element.setAttribute("aria-label", t("Page {page} of {pages}", { page: number, pages }));
      // Read where it takes a while until the page is drawn.
      element.dataset.waits = t("Page {page} is on its way…", { page: number });
    }
    this.#mark.relabel();
  }

  /** Show no document. */
  close() {
    this.#turn += 1;
    this.#forget();
    this.#root.replaceChildren();
  }

  #forget() {
    this.freeze();
    this.#mark.show(null);
    this.place = null;
    this.turned = () => {};
    this.#told = 1;
    this.#spot = this.#held = null;
    this.#fields = [];
    for (const page of this.#pages) page.work?.cancel();
    this.#pages = [];
    if (this.#loaded) end(this.#loaded);
    this.#loaded = null;
  }

  /** @param {number} steps bigger (1) or smaller (-1). */
  zoom(steps) {
    const index = ZOOMS.indexOf(this.#zoom) + steps;
    this.#zoom = ZOOMS[Math.min(Math.max(index, 0), ZOOMS.length - 1)];
    if (this.#pages.length && this.#isLaidOut) this.#held ??= this.#spotNow();
    this.#layout();
    return this.#zoom;
  }

  /** @param {number} number bring that page, or the nearest there is, on the screen. */
  go(number) {
    const index = Math.min(Math.max(Math.trunc(number) || 1, 1), this.#pages.length) - 1;
    this.#held = null;
    this.#pages[index]?.element.scrollIntoView({ block: "start" });
    // Not only once it is told that it was scrolled: another size may come before.
    this.#see();
  }

  /** Tell whoever asked which page is read, while it is scrolled. */
  #followScroll() {
    let waiting = false;
    const scrolled = () => {
      if (!waiting) {
        requestAnimationFrame(() => {
          waiting = false;
          this.#look();
        });
      }
      waiting = true;
    };
    addEventListener("scroll", scrolled, { capture: true, passive: true });
  }

  #look() {
    if (!this.#isLaidOut) return;
    if (this.#held && this.#position !== this.#still) this.#held = null;
    this.#see();
    const current = this.current;
    if (current === this.#told) return;
    this.#told = current;
    this.turned(current);
  }

  /** Remember what is read, unless the document is out of sight. */
  #see() {
    if (this.#root.clientWidth && this.#pages.length) this.#spot = this.#spotNow();
  }

  /** Width and height of a page, in points. */
  sizeOf(number) {
    const { width, height } = this.#pages[number - 1];
    return { width, height };
  }

  /**
   * Let the signer put the mark where they like, by a click on a page, by moving it,
   * or by arrow keys; null: no more.
   * @param {((place: {page: number, x: number, y: number, isCentre?: boolean}) => void)|null} place
   */
  set place(place) {
    this.#place = place;
    this.#mark.move = place;
    this.#root.classList.toggle("placing", place !== null);
  }

  /** Where the mark is that is shown: page and box, or null. */
  get marked() {
    return this.#mark.place;
  }

  /** Where the mark was moved to just now: whoever takes it is told instead of others. */
  takeMoved() {
    return this.#mark.takeMoved();
  }

  #click(event) {
    if (!this.#place || event.target.closest(".stamp, .own-field")) return;
    const page = this.#pages.find(({ element }) => element.contains(event.target));
    // Who marks text does not mean the place.
    if (!page || !getSelection().isCollapsed) return;
    const seen = page.element.getBoundingClientRect();
    const points = page.width / seen.width;
    this.#place({
      page: page.number,
      x: (event.clientX - seen.left) * points,
      y: (event.clientY - seen.top) * points,
      isCentre: true,
    });
  }

  /**
   * Show the document's own fields. Who uses the keyboard chooses from the list.
   * @param {Array<{name: string, page: number|null, box: object|null, obstacle: string|null}>} all
   * @param {(index: number) => void} [pick]
   */
  fields(all, pick) {
    this.#fields.forEach((shown) => shown.remove());
    this.#fields = [];
    for (const [index, { name, page, box, obstacle }] of all.entries()) {
      if (!box || obstacle !== null || !this.#pages[page - 1]) continue;
      const shown = h("div", { class: "own-field", "aria-hidden": "true", title: name, onclick: () => pick(index) });
      lay(shown, box, this.#pages[page - 1]);
      this.#fields.push(shown);
    }
  }

  /**
   * Show where the signature's mark will be.
   * @param {{page: number, box: object, lines: string[], png: string|null}|null} stamp
   */
  mark(stamp) {
    this.#mark.show(stamp, stamp && this.#pages[stamp.page - 1]);
    this.bring();
  }

  /**
   * Bring the mark into view, unless it is: scroll the document's own area, never
   * the form away from who fills it in. As much of the mark's page as may be is seen
   * with it.
   * @param {{anew?: boolean}} [how] anew: as at first, also when it is in view.
   */
  bring({ anew = false } = {}) {
    const bounds = this.#mark.bounds;
    if (!bounds) return;
    const area = this.#root.parentElement;
    const seen = area.getBoundingClientRect();
    const top = Math.max(seen.top, area.firstElementChild.getBoundingClientRect().bottom);
    const height = seen.bottom - top;
    const page = this.#mark.pageBounds;
    if (anew || bounds.top < top || bounds.bottom > seen.bottom) {
      const middle = bounds.top + bounds.height / 2 - height / 2;
      const first = page.height > height ? page.top : page.top - (height - page.height) / 2;
      const last = Math.max(page.bottom - height, first);
      area.scrollTop += Math.min(Math.max(middle, first), last) - top;
    }
    this.#look();
    const across = this.#root.getBoundingClientRect();
    if (bounds.left >= across.left && bounds.right <= across.right) return;
    this.#root.scrollLeft += bounds.left - across.left - (across.width - bounds.width) / 2;
  }

  /** Have the browser keep pdf.js before there is a document: it is needed soon. */
  warm() {
    for (const name of ["pdf.min.mjs", "pdf.worker.min.mjs"]) {
      const kept = async () => (await fetch(`${this.#base}/${name}`, { priority: "low" })).arrayBuffer();
      kept().catch(() => {});
    }
  }

  /**
   * Where pdf.js has a document's bytes from.
   * @param {Uint8Array|DocumentSource} file
   * @param {{askAgain?: () => void}} loaded gets the way to ask for parts that failed.
   */
  async #inputOf(file, loaded) {
    if (!(file instanceof DocumentSource)) return { data: file };
    // The end, which says where everything is, comes beside the beginning.
    file.read(Math.max(file.size - BLOCK, 0), file.size).catch(() => {});
    const begin = await file.read(0, Math.min(BLOCK, file.size));
    const range = new this.#pdfjs.PDFDataRangeTransport(file.size, begin);
    // pdf.js asks once for each part, and waits for it: a failed one is kept for later.
    const failed = [];
    const ask = (start, end) =>
      file.read(start, end).then(
        (bytes) => range.onDataRange(start, bytes),
        () => failed.push([start, end]),
      );
    range.requestDataRange = ask;
    loaded.askAgain = () => {
      for (const [start, end] of failed.splice(0)) ask(start, end);
    };
    // What is not asked for comes by the source itself, where nothing is in its way.
    return { range, rangeChunkSize: BLOCK, disableAutoFetch: true, disableStream: true };
  }

  /** @returns {Promise<{worker?: object, task?: object, pdf: object|null}>} null: pdf.js cannot. */
  async #load(file) {
    const loaded = { pdf: null, source: file instanceof DocumentSource ? file : null };
    try {
      this.#pdfjs ??= await import(`${this.#base}/pdf.min.mjs`);
      this.#pdfjs.GlobalWorkerOptions.workerSrc = `${this.#base}/pdf.worker.min.mjs`;
      loaded.worker = new this.#pdfjs.PDFWorker();
      await loaded.worker.promise;
      loaded.worker.port.addEventListener("message", ({ data }) => this.#hear(data));
      loaded.task = this.#pdfjs.getDocument({
        worker: loaded.worker,
        ...(await this.#inputOf(file, loaded)),
        cMapUrl: `${this.#base}/cmaps/`,
        standardFontDataUrl: `${this.#base}/standard_fonts/`,
        iccUrl: `${this.#base}/iccs/`,
        wasmUrl: `${this.#base}/wasm/`,
        // The policy of this page allows no WebAssembly: the script forms do.
        useWasm: false,
        enableXfa: false,
        // What it would leave out, the server's picture shows (#hear, lacksSomething).
        stopAtErrors: true,
        maxImageSize: MOST_IMAGE_PIXELS,
      });
      // What comes no more is not waited for.
      const goesOn = loaded.source?.whole.then(() => loaded.task.promise);
      loaded.pdf = await Promise.race([loaded.task.promise, goesOn].filter(Boolean));
    } catch (error) {
      if (loaded.source?.error) {
        end(loaded);
        throw loaded.source.error;
      }
      // The server's pictures are shown.
    }
    return loaded;
  }

  /**
   * Note that pdf.js stopped at an error: it ends the page's stream of operators by the
   * reason, and who draws is not told.
   */
  #hear(message) {
    if (message?.stream && message.stream !== CANCELLED && message.reason) this.#leftOut += 1;
  }

  #layout() {
    const room = this.#root.clientWidth;
    const before = this.#room;
    this.#room = room;
    if (!room) return;
    // As it was seen before the frame got another size, which may have moved it.
    if (before && room !== before) this.#held ??= this.#spot;
    this.#size(this.#pages);
    for (const page of this.#pages) {
      if (page.drawn && page.drawn !== page.scale) this.#draw(page);
    }
    // Shown only now, or turned on its side: what is being placed stays in view.
    if (room !== before && this.#place) this.bring({ anew: true });
    else if (before && this.#held) this.#return(this.#held);
    this.#look();
  }

  /** Give pages the sizes for the width there is. */
  #size(pages) {
    const room = this.#root.clientWidth;
    if (!room) return;
    const widest = Math.max(...pages.map((page) => page.width), 1);
    const scale = (Math.min(room, 1000) * this.#zoom) / widest;
    for (const page of pages) {
      page.scale = scale;
      page.element.style.width = `${page.width * scale}px`;
      page.element.style.height = `${page.height * scale}px`;
      page.element.style.setProperty("--total-scale-factor", String(scale));
    }
  }

  #come(seen) {
    for (const { target, isIntersecting } of seen) {
      const page = this.#pages.find(({ element }) => element === target);
      if (!page) continue;
      if (isIntersecting) this.#draw(page);
      else this.#drop(page);
      // Who comes back to a page that did not come has it tried again.
      if (isIntersecting) this.#loaded?.askAgain?.();
    }
  }

  #drop(page) {
    page.work?.cancel();
    page.work = null;
    page.drawn = 0;
    page.element.querySelectorAll(".paper, .textLayer").forEach((part) => part.remove());
  }

  async #draw(page) {
    const scale = page.scale || 1;
    if (page.drawn === scale) return;
    page.drawn = scale;
    page.work?.cancel();
    const source = await page.pdf?.getPage(page.number).catch(() => null);
    try {
      if (source && !page.lacks) await this.#drawPage(page, source, scale);
      else await this.#drawPicture(page);
    } catch (error) {
      if (error?.name === "RenderingCancelledException") return;
      await this.#drawPicture(page).catch(() => {
        page.element.append(h("p", { class: "paper" }, t("This page cannot be shown.")));
      });
    }
    // A page whose text cannot be read is seen all the same.
    if (source && page.drawn === scale) await this.#layText(page, source, scale).catch(() => {});
  }

  async #drawPage(page, source, scale) {
    const dense = Math.min(
      window.devicePixelRatio || 1,
      Math.sqrt(MOST_PIXELS / (page.width * page.height * scale * scale)),
    );
    const viewport = source.getViewport({ scale: scale * dense });
    const canvas = h("canvas", { class: "paper", role: "presentation" });
    canvas.width = Math.max(Math.floor(viewport.width), 1);
    canvas.height = Math.max(Math.floor(viewport.height), 1);
    const before = this.#leftOut;
    page.work = source.render({ canvas, viewport });
    await page.work.promise;
    if (this.#leftOut !== before || lacksSomething(source)) {
      // Not tried again at another size.
      page.lacks = true;
      throw new Error("something on the page is not drawn");
    }
    if (page.drawn !== scale) return;
    page.element.querySelectorAll(".paper, .textLayer").forEach((part) => part.remove());
    page.element.prepend(canvas);
  }

  /** Lay a page's text over it, for selection and screen readers. */
  async #layText(page, source, scale) {
    const text = h("div", { class: "textLayer" });
    page.element.querySelector(".paper")?.after(text);
    await new this.#pdfjs.TextLayer({
      textContentSource: source.streamTextContent(),
      container: text,
      viewport: source.getViewport({ scale }),
    }).render();
  }

  async #drawPicture(page) {
    const png = await this.#picture(page.number);
    const url = URL.createObjectURL(new Blob([png], { type: "image/png" }));
    const image = h("img", { class: "paper", alt: "" });
    image.src = url;
    await image.decode();
    URL.revokeObjectURL(url);
    page.element.querySelectorAll(".paper, .textLayer").forEach((part) => part.remove());
    page.element.prepend(image);
  }
}

/** Give back what pdf.js keeps for a document. */
function end({ task, worker, source }) {
  source?.close();
  Promise.resolve(task?.destroy()).finally(() => worker?.destroy()).catch(() => {});
}

/**
 * Whether pdf.js has drawn a page without something that stands on it: a picture that it
 * could not decode is nothing to it, and a font that it could not load is a message.
 */
function lacksSomething({ objs, commonObjs }) {
  return [...objs, ...commonObjs].some(([, data]) => data === null || typeof data === "string");
}

/**
 * The bar over the document.
 * @param {Viewer} viewer
 * @param {{pages: unknown[], size: number}} shown
 * @param {() => void} save
 * @param {number} came how many of its bytes are here.
 */
export function toolbar(viewer, { pages, size: bytes }, save, came) {
  const shown = h("output", { id: "zoom" }, "100 %");
  const change = (steps) => () => {
    shown.textContent = `${Math.round(viewer.zoom(steps) * 100)} %`;
  };
  return h(
    "div",
    { class: "tools", role: "toolbar", "aria-label": t("Document view") },
    pages.length > 1 ? turner(viewer, pages.length) : h("span", { class: "counter" }, pageCount(1)),
    h("span", { class: "counter size", id: "came" }, cameSoFar(came, bytes)),
    h(
      "span",
      { class: "zoom" },
      h("button", { type: "button", onclick: change(-1), "aria-label": t("Smaller") }, "−"),
      shown,
      h("button", { type: "button", onclick: change(1), "aria-label": t("Bigger") }, "+"),
    ),
    h("button", { type: "button", class: "plain save", onclick: save }, h("span", {}, t("Download"))),
    h("progress", { id: "came-bar", value: came, max: bytes, hidden: came >= bytes, "aria-label": t("Document received") }),
  );
}

/** Show how much of the document has come. */
export function showCame(came, bytes) {
  const bar = document.getElementById("came-bar");
  if (!bar) return;
  bar.value = came;
  bar.hidden = came >= bytes;
  document.getElementById("came").textContent = cameSoFar(came, bytes);
}

function cameSoFar(came, bytes) {
  return came < bytes ? bytesOf(came, bytes) : size(bytes);
}

/** The page that is read, and the ways to others. */
function turner(viewer, pages) {
  const at = h("input", {
    id: "at",
    inputmode: "numeric",
    autocomplete: "off",
    maxlength: String(pages).length,
    value: viewer.current,
    "aria-label": t("Page you are reading, of {pages}", { pages }),
    onchange: () => go(),
    onkeydown: (event) => event.key === "Enter" && go(),
  });
  const go = () => {
    viewer.go(Number(at.value));
    at.value = String(viewer.current);
  };
  viewer.turned = (page) => {
    // Who types a number is not talked over.
    if (at !== document.activeElement) at.value = String(page);
  };
  const turn = (steps) => () => viewer.go(viewer.current + steps);
  return h(
    "span",
    { class: "turner" },
    h("button", { type: "button", onclick: turn(-1), "aria-label": t("Previous page") }, "‹"),
    at,
    h("span", { class: "counter" }, t("of {pages}", { pages })),
    h("button", { type: "button", onclick: turn(1), "aria-label": t("Next page") }, "›"),
  );
}
