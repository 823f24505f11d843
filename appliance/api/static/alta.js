// The public pages, with a script: faults and another language come without losing
// what was typed, passwords can be looked at, secrets copied, printed and saved.
// Every page works without it. What is typed stays in this page: the server never
// sends a secret back, so nothing of it can be in HTML, a cache or a history.

// A hidden field says which key the page shows: it goes with its page, and is not typed.
const TYPED = 'form[data-keep] input:not([type="hidden"])';
const LOOK_AGAIN_MS = 2000;

/** Shows what only works with a script. */
function enhance() {
  for (const element of document.querySelectorAll("[data-script]")) element.hidden = false;
  // Nothing has to be typed again.
  for (const element of document.querySelectorAll("[data-plain]")) element.hidden = true;
  // All faults at once, from the server, and not the browser's first.
  for (const form of document.querySelectorAll("form[data-keep]")) form.noValidate = true;
  if (document.querySelector("[data-waits]") && !waits) {
    waits = true;
    setTimeout(lookAgain, LOOK_AGAIN_MS);
  }
}

/** Begins in the field that the page is for, where all that stands above it stays in view. */
function begin() {
  const form = document.querySelector("[data-begins]");
  const field = form && document.getElementById(form.dataset.begins);
  if (!field || field.getBoundingClientRect().bottom > innerHeight || scrollY > 0) return;
  // Where somebody has begun elsewhere meanwhile, they go on there.
  if (document.activeElement === document.body) field.focus({ preventScroll: true });
}

let waits = false;

/**
 * What is being made is looked at again until it is done. Only that part of the page,
 * and what comes after it, is replaced: what is shown once stays.
 */
async function lookAgain() {
  waits = false;
  const before = document.querySelector("[data-waits]");
  if (!before) return;
  let now = null;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    now = page.querySelector(".standing");
    if (now && !now.matches("[data-waits]")) {
      document.title = page.title;
      before.replaceWith(now);
      const after = page.querySelector("[data-after]");
      if (after) document.querySelector("[data-after]")?.replaceWith(after);
      focusOn(now.querySelector("h1"));
    }
  } catch {
    // Nothing is known: it is asked again.
  }
  enhance();
}

/** Takes another page's content for ours; with `keep`, what was typed goes with it. */
function take(html, keep) {
  const page = new DOMParser().parseFromString(html, "text/html");
  const main = page.querySelector("main");
  if (!main) return false;
  // In another language it is not there: this browser keeps no cookies, or too long ago.
  if (keep && document.querySelector("[data-unkept]") && !main.querySelector("[data-unkept]")) return false;
  const before = keep ? [...document.querySelectorAll(TYPED)] : [];
  document.title = page.title;
  document.documentElement.lang = page.documentElement.lang;
  document.querySelector("header").replaceWith(page.querySelector("header"));
  document.querySelector("main").replaceWith(main);
  for (const input of document.querySelectorAll(TYPED)) {
    const old = before.find(({ name, value, type }) =>
      name === input.name && (type !== "radio" || value === input.value));
    if (!old) continue;
    if (/^(?:radio|checkbox)$/.test(old.type)) input.checked = old.checked;
    else input.value = old.value;
  }
  enhance();
  return true;
}

function focusOn(element) {
  if (!element) return;
  if (!element.matches("a, button, input")) element.tabIndex = -1;
  element.focus();
}

/** Says on the button that something is being done, and no second time meanwhile. */
function busy(form, is) {
  const button = form.querySelector("button[type=submit]");
  if (is) button.dataset.label = button.textContent;
  button.textContent = is ? form.dataset.busy : button.dataset.label;
  button.setAttribute("aria-disabled", String(is));
  // What was wrong before is being mended now.
  for (const fault of document.querySelectorAll("[role=alert], .error")) fault.hidden = is;
}

async function send(form) {
  busy(form, true);
  let answer;
  let html;
  try {
    answer = await fetch(location.href, {
      method: "POST",
      body: new URLSearchParams(new FormData(form)),
      headers: { Accept: "text/html" },
    });
    html = await answer.text();
  } catch {
    // The browser's own way says what is wrong with the connection.
    form.submit();
    return;
  }
  const faults = answer.status === 422 || answer.status === 403;
  if (!take(html, faults)) {
    busy(form, false);
    form.submit();
    return;
  }
  focusOn(document.querySelector("[role=alert]") ?? document.querySelector("h1"));
}

async function speak(link) {
  let html = "";
  try {
    html = await (await fetch(link.href, { headers: { Accept: "text/html" } })).text();
  } catch {
    // As without a script, below.
  }
  if (!take(html, true)) {
    location.assign(link.href);
    return;
  }
  history.replaceState(null, "", link.href);
  focusOn(document.querySelector("a.language"));
}

async function copy(button) {
  const text = document.getElementById(button.dataset.copies).textContent.trim();
  await navigator.clipboard.writeText(text);
  button.textContent = button.dataset.done;
}

function save(button) {
  const text = document.getElementById(button.dataset.saves).textContent.trim();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: "text/plain" }));
  link.download = button.dataset.name;
  link.click();
  URL.revokeObjectURL(link.href);
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("form[data-kept]")) form.closest("[data-unkept]").removeAttribute("data-unkept");
  if (!form.matches("form[data-keep]")) return;
  event.preventDefault();
  const waiting = form.querySelector("button[type=submit][aria-disabled=true]");
  if (!waiting) void send(form);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a.language");
  if (link && document.querySelector("form[data-keep], [data-unkept]")) {
    event.preventDefault();
    void speak(link);
    return;
  }
  const button = event.target.closest("button[type=button]");
  if (!button) return;
  if ("copies" in button.dataset) void copy(button);
  else if ("prints" in button.dataset) print();
  else if ("saves" in button.dataset) save(button);
});

// Whoever leaves is asked first while something is shown that they have not kept.
addEventListener("beforeunload", (event) => {
  if (document.querySelector("[data-unkept]")) event.preventDefault();
});

document.addEventListener("change", (event) => {
  const names = event.target.dataset?.shows;
  if (!names) return;
  for (const name of names.split(" ")) {
    document.getElementById(name).type = event.target.checked ? "text" : "password";
  }
});

enhance();
begin();
