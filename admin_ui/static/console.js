// What scripts add: copying, and asking before what is shown once is left. All else works
// without this file.
"use strict";

const told = document.getElementById("told");

async function copy(button) {
  const text = document.getElementById(button.dataset.copy).textContent;
  await navigator.clipboard.writeText(text);
  const label = button.querySelector("span");
  const before = label.textContent;
  label.textContent = button.dataset.done;
  told.textContent = button.dataset.done;
  setTimeout(() => {
    label.textContent = before;
    told.textContent = "";
  }, 2000);
}

if (navigator.clipboard) {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
}

// A change of language keeps the name typed to sign in, never what is secret.
const KEPT = "rubrica.name";
const username = document.querySelector("input[autocomplete=username]");
if (username) {
  username.value ||= sessionStorage.getItem(KEPT) ?? "";
  document.querySelector("[data-language]").addEventListener("submit", () => {
    sessionStorage.setItem(KEPT, username.value);
  });
}
sessionStorage.removeItem(KEPT);

// What is shown once is left by the button that says it is kept, or after a question.
const kept = document.querySelector("[data-kept]");
if (kept && document.body.matches("[data-unkept]")) {
  kept.addEventListener("click", () => document.body.removeAttribute("data-unkept"));
  addEventListener("beforeunload", (event) => {
    if (document.body.matches("[data-unkept]")) event.preventDefault();
  });
}

// A form that is being sent is not sent again by a second click.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});
