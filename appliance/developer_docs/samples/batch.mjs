// WEB_URL=… API_KEY=… CUIL=… node batch.mjs enero.pdf febrero.pdf
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";

const { WEB_URL, API_KEY, CUIL } = process.env;
const paths = process.argv.slice(2);
const pdfs = await Promise.all(paths.map((path) => readFile(path)));
const sha256 = createHash("sha256").update(Buffer.concat(pdfs)).digest("hex");

async function call(path, headers, body) {
  const answer = await fetch(`${WEB_URL}/api/integration${path}`, {
    method: body ? "POST" : "GET",
    headers: { "X-Api-Key": API_KEY, ...headers },
    body,
  });
  const told = await answer.json();
  if (!answer.ok) throw new Error(`${told.code}: ${told.detail} (${told.requestId})`);
  return told;
}

// 1. Ask for all of them at once: a part for each PDF, in the order to be signed in.
const options = { firmante: { cuil: CUIL }, documentos: pdfs.map(() => ({})) };
const form = new FormData();
form.append("options", new Blob([JSON.stringify(options)], { type: "application/json" }));
for (const [number, pdf] of pdfs.entries()) {
  const part = new Blob([pdf], { type: "application/pdf" });
  form.append(`pdf${number}`, part, basename(paths[number]));
}
const key = { "Idempotency-Key": `lote-${sha256}-${CUIL}` };
let batch = await call("/batches", key, form);

// 2. Wait until its documents are examined. A webhook tells it too: lote.listo.
while (batch.estado === "en_preparacion") {
  await new Promise((resolve) => setTimeout(resolve, 1000));
  batch = await call(`/batches/${batch.loteId}`);
}
if (batch.estado !== "listo") throw new Error(JSON.stringify(batch.errors, null, 2));

// 3. Open a session for it, whose token your page gets.
const json = { "Content-Type": "application/json" };
const { loteId } = batch;
const { tokenSession } = await call("/sessions", json, JSON.stringify({ loteId }));
console.log(loteId, tokenSession);
