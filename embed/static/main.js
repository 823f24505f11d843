// Puts the parts together, once the page is there.

import { call, whenAnswered } from "./api.js";
import { SessionClock } from "./clock.js";
import { Conversation } from "./conversation.js";
import { byId } from "./dom.js";
import { Stopped, Unreachable, noteOwnFailures, ownFailure } from "./failure.js";
import { Flow } from "./flow.js";
import { Host } from "./host.js";
import { currentLanguage, loadLanguage, t } from "./i18n.js";
import { Machine } from "./machine.js";
import { PROTOCOL_VERSION } from "./protocol.js";
import { alert, announce, followInput, notice } from "./screen.js";
import { connected } from "./stage.js";
import { alone, expiring, unheard, waiting } from "./steps.js";
import { Viewer } from "./viewer.js";

const RESIZE_STEP_PX = 8;
const LEAST_PX = 500; // as docs/embedding.md has it
const READING_PX = 720; // a document, its toolbar and its buttons
const UNHEARD_MS = 10_000;
/** A frame that was loaded again by itself: hosts seldom know of it. */
const RELOADED_MS = 3_000;
const NOTES_MOST = 20; // of errors that the page finds, in its life
const boot = JSON.parse(byId("boot").textContent);
const unheardMs = boot.isReloaded ? RELOADED_MS : UNHEARD_MS;

let conversation;
let heard = false;
const host = new Host(boot, (...message) => {
  heard = true;
  conversation.receive(...message);
});
const machine = new Machine((state) => {
  if (state === "connected") viewer.warm();
  if (host.connected) host.post("state", { state });
});
const viewer = new Viewer(byId("viewer"), boot.pdfjs, (page) => call(`page/${page}`, { raw: true }));
const flow = new Flow(boot, host, machine, viewer);
const clock = new SessionClock(warn, tellTime, over);
conversation = new Conversation(boot, host, machine, flow, clock);

let notes = 0;
noteOwnFailures((code, reference) => {
  notes += 1;
  if (notes > NOTES_MOST) return;
  // Neither what was wrong nor whose it was: a code, and where it is looked up.
  call("note", { body: { session: boot.session, code, reference } }).catch(() => {});
});

function warn(secondsLeft, expiresAt) {
  if (!machine.is("connected", "loading", "reviewing", "authorising")) return;
  tellTime(secondsLeft);
  announce(() => expiring(secondsLeft));
  host.post("session.expiring", { expiresAt, secondsLeft });
}

function tellTime(secondsLeft) {
  if (!machine.is("connected", "loading", "reviewing", "authorising")) return;
  notice(() => expiring(secondsLeft));
}

function over() {
  // What was submitted is finished by the server whatever the time.
  if (machine.is("connected", "loading", "reviewing", "authorising")) {
    flow.block(ownFailure("SESSION_TOKEN_EXPIRED"));
  }
}

async function switchLanguage() {
  try {
    await loadLanguage(currentLanguage() === "es" ? "en" : "es", boot.statics);
  } catch (error) {
    throw new Unreachable(String(error));
  }
  dress();
  flow.redraw();
  await flow.retell();
}

/** What stands on the page whatever the step, in the language in use. */
function dress() {
  const other = byId("language");
  other.textContent = currentLanguage() === "es" ? "English" : "Español";
  other.lang = currentLanguage() === "es" ? "en" : "es";
  document.title = t("Sign a document");
  byId("viewer").setAttribute("aria-label", t("Document"));
  byId("progress").setAttribute("aria-label", t("Steps"));
}

/**
 * The height at which the present step can be used. It depends on what is shown and
 * on the width, never on the height that there is: who follows it comes to an end.
 */
function neededHeight() {
  const [top, messages, main, panel, form, bar] = ["top", "messages", "main", "panel", "form", "bar"].map(byId);
  const px = (element, ...names) =>
    names.reduce((sum, name) => sum + (parseFloat(getComputedStyle(element)[name]) || 0), 0);
  const asked =
    form.getBoundingClientRect().bottom - panel.getBoundingClientRect().top + panel.scrollTop +
    px(panel, "marginTop", "paddingBottom") + px(main, "paddingTop", "paddingBottom");
  const all = [top, messages, bar].reduce((sum, part) => sum + part.offsetHeight, asked);
  const least = document.querySelector(".page") ? READING_PX : LEAST_PX;
  return Math.max(Math.ceil(all), least);
}

/** Tell a host that wants to know how high the frame should be. */
function watchHeight() {
  let told = 0;
  const tell = () => {
    if (!host.connected) return;
    const height = neededHeight();
    if (Math.abs(height - told) < RESIZE_STEP_PX) return;
    told = height;
    host.post("resize", { height });
  };
  const observer = new ResizeObserver(tell);
  for (const id of ["top", "messages", "panel", "form", "bar", "viewer"]) observer.observe(byId(id));
}

/** Nothing that we read came from the page around: said to both who can do something. */
function tellUnheard() {
  if (heard || !machine.is("ready")) return;
  const { integrator, isReloaded } = boot;
  flow.step(() => unheard({ integrator, isReloaded, cancel: () => flow.leave() }));
  console.warn(host.unheard(unheardMs / 1000));
  // A host that missed it the first time begins now.
  sayReady();
}

function sayReady() {
  host.post("ready", {
    protocol: PROTOCOL_VERSION,
    environment: boot.environment,
    maxDocumentBytes: boot.maxDocumentBytes,
  });
}

addEventListener("unhandledrejection", ({ reason }) => {
  if (reason instanceof Stopped) return;
  alert(() => t("Something went wrong. Try again, or start over."));
});
addEventListener("online", connected);
whenAnswered(connected);
followInput();
await loadLanguage(boot.language, boot.statics);
dress();
byId("language").addEventListener("click", () => flow.guarded(switchLanguage, () => t("Loading the other language…")));
if (Host.present) {
  flow.step(() => waiting({ cancel: () => flow.leave() }));
  machine.move("ready");
  sayReady();
  if (boot.kind === "expired") flow.block(ownFailure("SESSION_TOKEN_EXPIRED"));
  host.listen();
  watchHeight();
  setTimeout(tellUnheard, unheardMs);
} else {
  flow.step(() => alone({ boot }));
}
document.documentElement.dataset.ready = "";
