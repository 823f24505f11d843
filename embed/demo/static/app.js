/** The integrator's page: form, frame, log, result. The protocol is in protocol.js. */

import { asked, askedQuery, readAsked } from "./asked.js";
import { documentObject, receiveDocument } from "./bytes.js";
import { element } from "./dom.js";
import { log } from "./log.js";
import { showResult } from "./result.js";
import { hasElement, openElement } from "./element.js";
import { openSigning } from "./protocol.js";
import { forgetUnderWay, keepUnderWay, keptUnderWay } from "./under_way.js";
import { choosePerson, showVisit } from "./visit.js";
import { english, translatePage, words } from "./words.js";

const USER_FIELDS = ["cuil", "dni", "email", "name", "gender", "phone", "address"];
const digits = (cuil) => cuil.replaceAll("-", "");
const byId = (id) => document.getElementById(id);
const form = byId("form");
const config = await (await fetch("/config.json")).json();

let signing = null;
let order = null;

translatePage();
const placeholder = byId("container").firstElementChild;
byId("host-origin").textContent = location.origin;
byId("frame-origin").textContent = config.iframeUrl;
for (const [name, value] of Object.entries(config.user)) form.elements[name].value = value;
if (config.sample) {
  byId("sample-choice").hidden = false;
  byId("sample-choice").querySelector("span").textContent = words.sampleNamed(config.sample);
  form.elements.source.value = "sample";
}
byId("way-field").hidden = !hasElement();
followSource();
form.addEventListener("change", followSource);
byId("again").addEventListener("click", again);
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const made = await readOrder();
  if (!made) return;
  order = made;
  await openNew();
});
form.inert = false;
byId("open-now").disabled = false;
if (config.hasMails) {
  const mails = byId("visit-mails");
  mails.hidden = false;
  if (english) mails.search = "?lang=en";
}

/** Continue what a reload broke off, or open the request that a mail led to. */
async function goOn() {
  const kept = keptUnderWay(asked);
  const isAsked = asked && (await showAsked());
  // Whoever was quicker has begun already.
  if (order) return;
  if (kept) {
    order = { ...kept.order, byElement: kept.order.byElement && hasElement() };
    fillUser(order.userData);
    await (Date.parse(kept.session.validUntil) > Date.now() ? open(kept.session) : openNew());
  } else if (isAsked) {
    order = await readOrder();
    if (order) await openNew();
  }
}

/** Say who signs what, and fill the form with the signer; false: it is not known. */
async function showAsked() {
  byId("document-fields").hidden = true;
  byId("asked").hidden = false;
  try {
    const told = await readAsked();
    byId("asked-what").textContent = asked.lote ? words.askedBatch(told.name) : words.asked(told.name, told.document);
    // Of a signer whom the integrator did not name by CUIL, nothing is told: the form's
    // person stays, and the frame lets nobody else sign.
    if (!told.cuil) return true;
    const isProposed = digits(told.cuil) === digits(config.user.cuil ?? "");
    if (!choosePerson(told.cuil)) fillUser(isProposed ? config.user : { cuil: told.cuil, name: told.name });
    return true;
  } catch (error) {
    byId("asked-what").textContent = words.askedHelp[error.message] ?? words.askedFailed(error.message);
    return false;
  }
}

/** Put a signer's data into the form; what is not given is emptied. */
function fillUser(userData) {
  for (const name of USER_FIELDS) form.elements[name].value = userData[name] ?? "";
  choosePerson(form.elements.cuil.value);
}

/** A field of the form stands only where its choice does. */
function followSource() {
  byId("file-field").hidden = form.elements.source.value !== "own";
  // The element always sends it with ready.
  byId("start-field").hidden = hasElement() && byId("way").value === "element";
}

/** Everything that one signature needs, or nothing when the form is not filled. */
async function readOrder() {
  const file = await readFile();
  const userData = readUser();
  if (file === null || userData === null) {
    form.querySelector("[aria-invalid=true]").focus();
    return null;
  }
  return {
    userData,
    file,
    // One key for one wish to sign, kept when the session has to be asked again:
    // it is what keeps a repeat from signing twice.
    idemKey: crypto.randomUUID(),
    handover: byId("handover").value,
    startOn: byId("start").value,
    byElement: hasElement() && byId("way").value === "element",
  };
}

/** The document object, undefined when there is none, null when it is wrong. */
async function readFile() {
  const source = form.elements.source.value;
  mark("file", "");
  mark("sample", "");
  // The request that a mail led to has its document already.
  if (asked || source === "none") return undefined;
  if (source === "sample") {
    const answer = await fetch("/ejemplo.pdf").catch(() => null);
    if (!answer?.ok) return mark("sample", words.sampleMissing(config.sample));
    return documentObject(await answer.blob(), config.sample);
  }
  const file = byId("file").files[0];
  if (!file) return mark("file", words.fileMissing);
  const head = await file.slice(0, 1024).text();
  if (!head.includes("%PDF-")) return mark("file", words.fileNotPdf);
  return documentObject(file, file.name);
}

function readUser() {
  const { cuil, dni, email } = form.elements;
  let fault = "";
  if (!cuil.value && !dni.value) fault = words.cuilOrDni;
  else if (!cuil.checkValidity()) fault = words.cuilWrong;
  mark("cuil", fault);
  const emailFault = email.checkValidity() ? "" : words.emailWrong;
  mark("email", emailFault);
  if (fault || emailFault) return null;
  const filled = USER_FIELDS.map((name) => [name, form.elements[name].value.trim()]);
  return Object.fromEntries(filled.filter(([, value]) => value));
}

/** Show or clear what is wrong with a field. */
function mark(id, fault) {
  byId(id).setAttribute("aria-invalid", String(Boolean(fault)));
  byId(`${id}-error`).textContent = fault;
  byId(`${id}-error`).hidden = !fault;
  return null;
}

/** A session from our own backend, then the frame. */
async function openNew() {
  close();
  document.body.classList.add("open");
  say(words.asking);
  let session;
  try {
    session = await newSession();
  } catch (error) {
    const help = words.sessionHelp[error.message] ?? words.sessionHelpElse;
    complain(words.sessionFailed(error.message), help, true);
    return;
  }
  await open(session);
}

/** The frame, with a session that is new or was kept over a reload. */
async function open(session) {
  close();
  document.body.classList.add("open");
  keepUnderWay({ session, order, asked });
  step("session");
  if (config.isShared && !(await isReachable())) return;
  say(words.waiting);
  const { userData, idemKey, file, handover } = order;
  const init = { nonce: crypto.randomUUID(), idemKey, userData };
  if (file && handover === "init") init.autoLoadFile = file;
  const openFrame = order.byElement ? openElement : openSigning;
  signing = openFrame({
    container: byId("container"),
    iframeUrl: config.iframeUrl,
    prefix: config.eventPrefix,
    title: words.frameTitle,
    token: session.tokenSession,
    init,
    laterFile: handover === "load" ? file : undefined,
    startOn: order.startOn,
    onMessage: receive,
    onSent: (type, message) => log("toFrame", message),
    onIgnored: (origin) => log("ignored", { type: words.ignoredWhy(origin) }),
    onTrouble: (kind) => complain(words[kind], words[`${kind}-help`], true),
  });
  byId("stage-title").scrollIntoView({ block: "start" });
}

/**
 * Behind a certificate of its own, some browsers ask about each port: the frame would
 * stay empty until its person has answered for the frame's address too.
 */
async function isReachable() {
  try {
    await fetch(`${config.iframeUrl}/embed/`, { mode: "no-cors" });
    return true;
  } catch {
    complain(words.frameUntrusted, words.frameUntrustedHelp, true);
    const link = { href: `${config.iframeUrl}/embed/`, target: "_blank", rel: "noopener" };
    byId("alert").children[1].append(" ", element("a", link, config.iframeUrl));
    return false;
  }
}

async function newSession() {
  const answer = await fetch(`/sesion${askedQuery}`, { method: "POST" });
  const told = await answer.json();
  log("backend", { type: "POST /sesion", payload: told });
  if (!answer.ok) throw new Error(told.code);
  return told;
}

const MEANINGS = {
  ready: () => {
    step("ready");
    say(order.byElement || order.startOn === "ready" ? words.ready : words.readyOnly);
  },
  "handshake.ack": () => {
    step("ack");
    complain("");
    say(words.ack);
  },
  "signature.completed": completed,
  cancelled: () => over(words.cancelled),
  rejected: () => over(words.rejected),
  "signer.unknown": () => say(words.unknown),
  error: ({ payload = {} }) => {
    const renew = payload.category === "new_session" || payload.code === "SESSION_TOKEN_EXPIRED";
    complain(words.errorFrom(payload.code), payload.message ?? "", renew);
  },
};

/** Act on a message of the frame; types that nobody here knows are let be. */
function receive(type, message) {
  log("fromFrame", message);
  MEANINGS[type]?.(message);
}

async function completed({ payload }) {
  step("completed");
  complain("");
  say(words.checking);
  let received = null;
  try {
    received = await receiveDocument(payload);
  } catch {
    // Told below: the document stays at its address.
  }
  await showResult(byId("result"), payload, received, order.idemKey);
  say(words.completed);
}

/** Nothing is under way any more: a reload begins anew. */
function over(text) {
  forgetUnderWay();
  say(text);
}

/** Back to the form, with what was typed. */
function again() {
  close();
  forgetUnderWay();
  document.body.classList.remove("open");
  byId("open").focus();
}

function close() {
  signing?.close();
  signing = null;
  byId("container").replaceChildren(placeholder);
  byId("result").hidden = true;
  complain("");
  say("");
  for (const item of byId("steps").children) item.removeAttribute("data-done");
}

function say(text) {
  byId("status").textContent = text;
}

function step(name) {
  byId("steps").querySelector(`[data-step=${name}]`).dataset.done = "";
}

/** Show what went wrong, in words, and the way on; no title takes it away. */
function complain(title, help = "", renewable = false) {
  const alert = byId("alert");
  alert.hidden = !title;
  alert.replaceChildren();
  if (!title) return;
  say("");
  alert.append(element("strong", {}, title), element("p", {}, help));
  if (!renewable) return;
  const button = element("button", { type: "button" }, words.newSession);
  button.addEventListener("click", openNew);
  alert.append(button);
}

// Last: what is opened here acts on everything above.
if (config.hasCodes) {
  for (const told of document.querySelectorAll(".guide-keys")) told.hidden = false;
  await showVisit();
}
await goOn();
