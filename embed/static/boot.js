history.replaceState(null, "", `/embed/?s=${document.documentElement.dataset.session}`);
// The token is out of the address. Hosts may send their first message on `onload`,
// before the modules have come: what arrives until then is kept, judged later.
window.rubricaEarly = [];
window.rubricaKeep = (event) => {
  if (window.rubricaEarly.length < 32) window.rubricaEarly.push(event);
};
addEventListener("message", window.rubricaKeep);
