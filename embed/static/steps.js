// What each step shows. Steps hold no state: they are drawn from the session and
// call what the flow gives them.

import { h } from "./dom.js";
import { instant, pageCount, size, t } from "./i18n.js";
import { placeWords } from "./place.js";
import { bytesMeter, facts, input, out } from "./screen.js";

/** Waiting for the host. */
export function waiting({ cancel }) {
  return {
    name: "waiting",
    title: t("One moment"),
    body: [h("p", {}, t("Waiting for the page that opened this one."))],
    secondary: out({ cancel }),
  };
}

/**
 * The host has said nothing for a while.
 * @param {boolean} isReloaded the frame was loaded again, and its host may not know.
 */
export function unheard({ integrator, isReloaded, cancel }) {
  if (isReloaded) return reloaded({ integrator, cancel });
  return {
    name: "waiting",
    title: t("The signature has not started yet"),
    body: [
      h("p", {}, t("The page of {integrator} has not asked for it. It begins here by itself if it still does.", { integrator })),
      h("p", {}, t("If nothing happens, reload that page, or tell {integrator}.", { integrator })),
    ],
    secondary: out({ cancel }),
  };
}

function reloaded({ integrator, cancel }) {
  return {
    name: "waiting",
    title: t("Reload the whole page"),
    body: [
      h("p", {}, t("This part of the page was loaded again by itself, and the page of {integrator} around it does not know.", { integrator })),
      h("p", {}, t("Reload the whole page to go on where you were. What you signed stays signed.")),
    ],
    secondary: out({ cancel }),
  };
}

/** The page was opened by itself. */
export function alone({ boot: { integrator, origins, home, kind } }) {
  const site = origins.length === 1 ? origins[0] : null;
  const expired = kind === "expired";
  return {
    name: "alone",
    title: expired ? t("The session is over") : t("This page does not open by itself"),
    body: [
      h("p", {}, expired
        ? t("The time to sign that {integrator} gave you ran out, or the session was closed.", { integrator })
        : t("It is part of the site of {integrator}, where you are asked to sign a document.", { integrator })),
      h("p", {}, expired
        ? t("Go back to {integrator} and start again; what you signed stays signed.", { integrator })
        : t("Go to that site and open the document there. If you were sent this address alone, tell {integrator}.", { integrator })),
      site ? h("p", {}, h("a", { href: site }, t("Go to {site}", { site: new URL(site).host }))) : null,
      h("p", {}, h("a", { href: home }, t("Verify a signature, or revoke your certificate"))),
    ],
  };
}

/** No document yet. */
export function pick({ integrator, choose, pending, cancel }) {
  const file = h("input", {
    type: "file",
    id: "file",
    name: "file",
    accept: "application/pdf,.pdf",
    class: "visually-hidden",
    onchange: (event) => choose(event.target.files[0]),
  });
  return {
    name: "pick",
    title: t("Choose the document"),
    body: [
      h("p", {}, t("{integrator} has not sent a document yet. It will show here when it comes, or you can choose one.", { integrator })),
      h("p", {}, h("label", { for: "file", class: "button" }, t("Choose a PDF from this device")), file),
      pending ? h("p", {}, h("button", { type: "button", onclick: pending }, t("Sign one that I was sent"))) : null,
    ],
    secondary: out({ cancel }),
  };
}

/** What the host sent cannot be used; it may send something else. */
export function refused({ failure, integrator, again, cancel }) {
  return {
    name: "refused",
    title: t("It cannot go on yet"),
    body: [
      failure ? h("p", {}, failure.toSigner(integrator)) : null,
      h("p", {}, again
        ? t("Try again in a moment.")
        : t("You can continue here as soon as {integrator} has fixed it.", { integrator })),
      failure ? h("p", { class: "hint" }, t("Reference: {id}", { id: failure.requestId })) : null,
    ],
    primary: again ? { label: t("Try again"), act: again } : null,
    secondary: out({ cancel }),
  };
}

/** What is waited for after a button, where that takes a while. */
export const lookingUp = () => t("Looking you up…");
export const checkingCode = () => t("Checking your code…");

const MOVING = {
  opening: () => [t("Opening the document"), t("It will show here in a moment.")],
  sending: () => [t("Sending the document"), t("It goes from this device to the signing service.")],
  checking: () => [t("Checking the document"), t("It has arrived. We check it before showing it; a large one takes a while.")],
  fetching: () => [t("Opening the document"), t("Its first page shows as soon as it has come.")],
};

/**
 * A document is on its way.
 * @param {{doing?: "opening"|"sending"|"checking"|"fetching", done?: number, total?: number,
 *   back?: object, cancel: () => unknown}} how done, total: bytes; total is 0 where none
 *   are counted.
 */
export function loading({ doing = "opening", done = 0, total = 0, back, cancel }) {
  const [title, words] = MOVING[doing]();
  return {
    name: "loading",
    title,
    body: [
      spinner(),
      h("p", {}, words),
      total > 0 && doing !== "checking" ? h("p", {}, bytesMeter("moved", done, total)) : null,
    ],
    back,
    secondary: out({ cancel }),
  };
}

/** Something is under way. */
export function spinner() {
  return h("div", { class: "spinner", "aria-hidden": "true" });
}

/** The same of any document, as sentences. */
export function warningsOf({ findings, signatures }) {
  if (signatures === 0) return findings;
  return [...findings, t("It already has signatures: {count}. Yours does not alter them.", { count: signatures })];
}

/** What is to be known of the document before it is signed. */
export function warnings(session) {
  const told = warningsOf(session.document);
  if (told.length === 0) return null;
  return h(
    "div",
    { class: "warning" },
    h("h2", {}, t("Before you sign")),
    h("ul", {}, ...told.map((text) => h("li", {}, text))),
  );
}

const AFTERWARDS = {
  NO_CHANGES_ALLOWED: () => t("nothing in the document may be changed, and nobody else may sign it"),
  FORM_FILLING: () => t("only its forms may be filled in, and others may sign it"),
  FORM_FILLING_AND_ANNOTATIONS: () => t("only its forms may be filled in and notes added, and others may sign it"),
};

/**
 * What a signature says and permits besides the document, as names and values; none for
 * a plain one that is seen on its page.
 * @returns {Array<[string, string]>}
 */
export function termsOf({ reason, place, afterwards, visible, field, locks }) {
  const rows = [
    [t("Reason for signing"), reason],
    [t("Place of signing"), place],
    [t("After your signature"), AFTERWARDS[afterwards]?.()],
    [t("Your mark"), visible ? null : t("will not be seen on any page")],
    [t("Field of the document"), field],
    [t("By signing that field"), locks ? t("fields of the form are locked, and nobody can fill them in any more") : null],
  ];
  return rows.filter(([, value]) => value);
}

/** The same to be read, before it is signed. */
export function terms(of) {
  const rows = termsOf(of);
  if (rows.length === 0) return null;
  // The words of others must not turn ours around.
  const shown = rows.map(([name, value]) => [name, h("bdi", {}, value)]);
  return h("section", { class: "terms", "aria-label": t("What your signature says and permits") }, facts(shown));
}

/** What whoever asks for the signature wrote to the signer. */
export function messageFrom(integrator, text) {
  if (!text) return null;
  return h(
    "div",
    { class: "message" },
    h("h2", {}, t("Message from {integrator}", { integrator })),
    h("p", {}, text),
  );
}

/** The signer reads; `list` leads back to what else waits for them. */
export function read({ session, go, change, list, reject, cancel }) {
  return {
    name: "read",
    title: session.document.name,
    body: [
      messageFrom(session.integrator, session.document.message),
      terms(session.document.terms),
      warnings(session),
    ],
    primary: { label: t("Continue"), act: go },
    back: change ? { label: t("Change document"), act: change } : list && { label: t("Back to the list"), act: list },
    secondary: out({ cancel, reject }),
  };
}

/** Nobody is known by the data at hand. */
export function unknownSigner(integrator) {
  return t("We did not find you among the people who may sign here. Check your CUIL and e-mail; if they are right, ask {integrator} to have you enrolled.", { integrator });
}

/** Who signs, when the host's data do not tell. */
export function identify({ claim, unknown, rejecting, integrator, go, back, cancel }) {
  return {
    name: "identify",
    title: t("Who are you?"),
    body: [
      toReject(rejecting),
      h("p", {}, unknown ? unknownSigner(integrator) : t("We will look you up among the people who can sign here.")),
      input("cuil", t("CUIL"), {
        inputmode: "numeric",
        autocomplete: "off",
        value: claim.cuil ?? "",
        maxlength: 24,
      }, t("11 digits, with or without dashes")),
      input("email", t("E-mail"), {
        type: "email",
        autocomplete: "email",
        value: claim.email ?? "",
        maxlength: 254,
      }, t("The one you enrolled with")),
    ],
    primary: { label: t("Continue"), act: go, waits: lookingUp },
    back: { label: t("Back"), act: back },
    secondary: out({ cancel }),
  };
}

/** What a step is for that says nothing of refusing by itself. */
function toReject(rejecting) {
  if (!rejecting) return null;
  return h("p", {}, t("To reject the document, first confirm that it is you. Nothing is rejected yet."));
}

/** A way to more help, beside what is typed. */
function wayToHelp(label, act) {
  return h("p", { class: "help" }, h("button", { type: "button", class: "plain", onclick: act }, label));
}

/**
 * What an authenticator app is, and what to do when its code is not accepted.
 * @param {string} installation under whose name the app shows the codes.
 */
function aboutCodes(installation) {
  return h("details", {},
    h("summary", {}, t("What is this code?")),
    h("p", {}, t("It is on your phone, in the authenticator app that you chose when you enrolled: Google Authenticator, Microsoft Authenticator or another one. It changes every 30 seconds, and each code works once.")),
    h("p", {}, t("In the app the account is called {installation}.", { installation })),
    h("p", {}, t("If it is not accepted, the clock of your phone may be wrong: in its settings have date and time set automatically, and type the next code.")));
}

/**
 * The second factor.
 * @param {string} installation under whose name the app shows the codes.
 * @param {() => unknown} help for a signer without their phone.
 */
export function code({ claim, rejecting, installation, go, back, cancel, help }) {
  return {
    name: "code",
    focus: "code",
    title: t("Your code"),
    body: [
      toReject(rejecting),
      // Not by the name: it is the host's word, and nobody has proved anything yet.
      claim.email ? h("p", {}, t("For {who}.", { who: claim.email })) : null,
      input("code", t("Code"), {
        inputmode: "numeric",
        autocomplete: "one-time-code",
        maxlength: 9,
        class: "code",
      }, t("The 6 digits that your authenticator app shows now")),
      h("p", { id: "next-code", class: "hint", role: "timer", hidden: true }),
      aboutCodes(installation),
      wayToHelp(t("I do not have my phone"), help),
    ],
    primary: { label: t("Continue"), act: go, waits: checkingCode },
    back: { label: t("Back"), act: back },
    secondary: out({ cancel }),
  };
}

/** A document that waits for the signer. */
export function requests({ list, choose, back, cancel }) {
  return {
    name: "requests",
    title: t("Documents for you to sign"),
    body: [
      list.length === 0
        ? h("p", {}, t("Nothing is waiting for your signature here."))
        : h("ul", { class: "choices" }, ...list.map((item) =>
          h("li", {}, h("button", { type: "button", onclick: () => choose(item.id) },
            h("span", { class: "name" }, item.name),
            h("span", { class: "hint" }, ...details(item)))))),
    ],
    back: { label: t("Back"), act: back },
    secondary: out({ cancel }),
  };
}

/** What tells one document that waits from another. */
function details({ integrator, pages, created, expires }) {
  const since = created && t("sent {time}", { time: instant(created) });
  const until = expires && t("until {time}", { time: instant(expires) });
  return [integrator, pageCount(pages), since, until].filter(Boolean).map((text, index) =>
    h("span", { class: "nowrap" }, index ? ` · ${text}` : text));
}

export const LEGAL = {
  demo: () => t("This is a trial: the signature has no legal validity."),
  electronic: () => t("By signing you make an electronic signature (Law 25,506, article 5)."),
};

/**
 * The signing password.
 * @param {object} told the terms of the signature, as it is placed.
 * @param {() => unknown} help for a signer who forgot it.
 */
export function password({ session, chosen, told, go, back, reject, cancel, help }) {
  const { signer, document } = session;
  return {
    name: "password",
    focus: "password",
    title: t("Sign"),
    body: [
      h("p", { class: "lead" }, h("strong", {}, document.name), ` · ${pageCount(document.pages.length)}`),
      terms(told),
      document.isCopy ? h("p", { class: "hint", id: "copy" }, t("You sign the repaired copy that you read, not the file as it came.")) : null,
      passwordField(signer),
      forgotten(help),
      h("p", { class: "legal" }, LEGAL[signer.legal]()),
      h("details", {},
        h("summary", {}, t("What you are signing, and with what")),
        facts([
          [t("You"), `${signer.name}, CUIL ${signer.cuil}`],
          [t("Your mark"), placeWords(chosen, session.integrator)],
          [t("Certificate issued by"), signer.issuer],
          [t("Fingerprint (SHA-256)"), h("code", {}, document.sha256)],
        ])),
    ],
    primary: { label: t("Sign"), act: go },
    back: { label: t("Back"), act: back },
    secondary: out({ cancel, reject }),
  };
}

/** The way on for a signer who forgot the signing password. */
export function forgotten(help) {
  return wayToHelp(t("I forgot my signing password"), help);
}

/** Where the signing password is typed. */
export function passwordField({ cuil }) {
  const field = input("password", t("Signing password"), {
    type: "password",
    autocomplete: "current-password",
    maxlength: 1024,
  }, t("The one you chose for signing, not the one you sign in with"));
  const box = field.querySelector("input");
  const toggle = h("button", {
    type: "button",
    "aria-pressed": "false",
    "aria-label": t("Show password"),
    onclick: () => {
      const shown = box.type === "password";
      box.type = shown ? "text" : "password";
      toggle.setAttribute("aria-pressed", String(shown));
    },
  }, t("Show"));
  box.after(toggle);
  // A password manager looks for whose password it is.
  const whose = h("input", {
    type: "text",
    name: "username",
    autocomplete: "username",
    value: cuil,
    readonly: true,
    tabindex: "-1",
    "aria-label": t("CUIL"),
    class: "visually-hidden",
  });
  return h("div", {}, whose, field);
}

/** The appliance works. */
export function signing({ checking }) {
  return {
    name: "signing",
    title: checking ? t("Checking the result") : t("Signing"),
    body: [
      spinner(),
      h("p", {}, checking
        ? t("The connection was lost, or this is taking longer than usual. We are checking what happened to your signature; the document is never signed twice.")
        : t("Your key signs the document and the result is checked. If you close this page, signing continues.")),
    ],
  };
}

/** What became of the document: the host has it once it was told, and not before. */
export function outcome({ integrator }, handedOver) {
  return handedOver
    ? t("Your signature is on the document. {integrator} has it.", { integrator })
    : t("Your signature is on the document. It is being handed over to {integrator}: do not close this page yet.", { integrator });
}

/** It is signed. */
export function done({ session, handedOver, save }) {
  const { completed, signed } = session;
  return {
    name: "done",
    title: t("Signed"),
    body: [
      h("p", { class: "success", id: "outcome" }, outcome(session, handedOver)),
      facts([
        [t("Document"), completed.document.fileName],
        [t("Date"), signed.at && instant(signed.at)],
        [t("Check it"), signed.verifyUrl && verification(signed.verifyUrl)],
      ]),
      h("details", {},
        h("summary", {}, t("Technical details")),
        facts([
          [t("Size"), size(completed.document.size)],
          [t("Fingerprint (SHA-256)"), h("code", {}, completed.document.sha256)],
        ])),
    ],
    primary: { label: t("Download the signed document"), act: save },
  };
}

/**
 * The public page of the signature: what it says, anybody may see.
 * @param {string} url
 * @param {string} [name] of the document, where there are several.
 */
export function verification(url, name) {
  const label = name ? t("Verification page of {name}", { name }) : null;
  return h("a", { href: url, target: "_blank", rel: "noopener noreferrer", "aria-label": label },
    t("Verification page"));
}

/** Somebody left without a signature, or what was to be signed is withdrawn. */
export function cancelled({ integrator, withdrawn }) {
  return {
    name: "cancelled",
    title: t("You did not sign"),
    body: [h("p", {}, withdrawn
      ? t("This document can no longer be signed: it was withdrawn, or its time ran out. Ask {integrator} about it.", { integrator })
      : t("Nothing was signed, and nothing was rejected. You can close this page."))],
  };
}

/** Whether to refuse for good: beside that *Cancelar* would read as a no, and it leaves. */
export function reject({ integrator, name, reason, keep, go, back }) {
  return {
    name: "reject",
    title: t("Reject the document"),
    body: [
      h("p", {}, t("You are about to reject {name}. It is for good: you will not be able to sign it, and {integrator} will be told.", { name, integrator })),
      h(
        "div",
        { class: "field" },
        h("label", { for: "reason" }, t("Reason (optional)")),
        h("p", { class: "hint", id: "reason-hint" }, t("{integrator} will read it.", { integrator })),
        h("textarea", { id: "reason", name: "reason", rows: 3, maxlength: 500, "aria-describedby": "reason-hint", oninput: (event) => keep(event.target.value) }, reason),
      ),
    ],
    primary: { label: t("Reject for good"), act: go, kind: "danger" },
    back: { label: t("Back"), act: back },
  };
}

/**
 * It was refused.
 * @param {number} [count] of documents, of a batch.
 */
export function rejected({ integrator, count = 1 }) {
  return {
    name: "rejected",
    title: count === 1 ? t("You rejected the document") : t("You rejected {count} documents", { count }),
    body: [h("p", {}, t("Nothing was signed, and {integrator} has been told. You can close this page.", { integrator }))],
  };
}

const HELP = {
  password: () => ({
    title: t("You forgot your signing password"),
    lost: t("Your key. Only that password opens it, and nobody can recover or change it. You enrol again: new passwords, a new key and a new certificate."),
    stays: t("All you signed before stays valid, and documents that wait for you go on waiting."),
  }),
  phone: () => ({
    title: t("You do not have your phone"),
    lost: t("The codes of that phone: you get new ones for another phone."),
    stays: t("Your key, your certificate, your passwords, and all you signed."),
  }),
};

/** Whom the signer asks who gets no further. */
function whom({ installation, contact, contactHref }) {
  const named = contactHref
    ? h("a", { href: contactHref, target: "_blank", rel: "noopener noreferrer" }, contact)
    : contact;
  return h("p", { class: "hint" },
    t("Whoever runs {installation} can help you.", { installation }),
    contact ? ` ${t("Contact:")} ` : null, contact ? named : null);
}

/**
 * What is lost and what stays; then help is asked for.
 * @param {{topic: string, desk: object, ask: () => unknown, back: () => unknown}} of
 *   topic: `password` or `phone`; desk: whom the signer asks.
 */
export function help({ topic, desk, ask, back }) {
  const { title, lost, stays } = HELP[topic]();
  return {
    name: "help",
    title,
    body: [
      topic === "phone" && h("p", { class: "warning" },
        t("If someone has your phone and may know your passwords, do not wait:"), " ",
        h("a", { href: desk.revocation, target: "_blank", rel: "noopener noreferrer" }, t("revoke your certificate with your PIN"))),
      facts([[t("Lost"), lost], [t("Stays"), stays]]),
      h("p", {}, t("An officer of {installation} gets your request and checks that it is you before anything changes.", desk)),
      h("p", {}, h("a", { href: desk.url, target: "_blank", rel: "noopener noreferrer" }, t("All about help to sign"))),
      whom(desk),
    ],
    primary: { label: t("Ask for help"), act: ask },
    back: { label: t("Back"), act: back },
  };
}

/** The request for help is filed. */
export function helpAsked({ desk, back }) {
  return {
    name: "help",
    title: t("Your request is filed"),
    body: [
      h("p", { class: "success" }, t("An officer of {installation} has it now, and checks that it is you before anything changes.", desk)),
      desk.mailed && h("p", {}, t("A mail goes to the address you enrolled with. Its link withdraws the request.")),
      whom(desk),
    ],
    back: back && { label: t("Back"), act: back },
  };
}

function blockedTitle({ code, problem }) {
  if (problem.obstacle) return t("You cannot sign now");
  return code === "SESSION_TOKEN_EXPIRED" ? t("The session is over") : t("You cannot continue here");
}

/** Why it ends here. The code of a session that is over is one, whatever ended it. */
function blockedWhy({ code }, told) {
  return code === "SESSION_TOKEN_EXPIRED" ? t("Its time ran out, or it was closed.") : told;
}

/** What can be done where a session goes on here no more. */
function blockedWayOn({ code }, integrator) {
  return code === "SESSION_SUPERSEDED"
    ? t("Go on there. If you closed it, start again at {integrator}; what you signed stays signed.", { integrator })
    : t("Go back to {integrator} and start again; what you signed stays signed.", { integrator });
}

/**
 * The session cannot go on. Who cannot sign at all asks those who run the installation:
 * they can change it, and the host's people cannot.
 */
export function blocked({ failure, told, integrator, desk, ask }) {
  const { obstacle } = failure.problem;
  return {
    name: "blocked",
    title: blockedTitle(failure),
    body: [
      h("p", {}, blockedWhy(failure, told)),
      obstacle ? whom(desk) : h("p", {}, blockedWayOn(failure, integrator)),
      h("p", { class: "hint" }, t("Reference: {id}", { id: failure.requestId })),
    ],
    primary: obstacle ? { label: t("Ask for help"), act: ask } : null,
  };
}

/** The document cannot be signed. */
export function failed({ failure, integrator }) {
  return {
    name: "failed",
    title: t("It was not signed"),
    body: [
      h("p", {}, failure.sentence),
      h("p", {}, t("Nothing is lost. Tell {integrator}, with the reference below: they can ask you to sign it again.", { integrator })),
      h("p", { class: "hint" }, t("Reference: {id}", { id: failure.requestId })),
    ],
  };
}

/** @param {number} seconds that the session lasts yet. */
export function expiring(seconds) {
  const minutes = Math.max(Math.ceil(seconds / 60), 1);
  return minutes === 1
    ? t("You have 1 minute left to sign.")
    : t("You have {minutes} minutes left to sign.", { minutes });
}
