// WEB_URL=… API_KEY=… CUIL=… node request.mjs contrato.pdf
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";

const { WEB_URL, API_KEY, CUIL } = process.env;
const pdf = await readFile(process.argv[2]);
const sha256 = createHash("sha256").update(pdf).digest("hex");

async function call(path, options = {}) {
  const answer = await fetch(`${WEB_URL}/api/integration${path}`, {
    ...options,
    headers: { "X-Api-Key": API_KEY, ...options.headers },
  });
  const body = await answer.json();
  if (!answer.ok) throw new Error(`${body.code}: ${body.detail} (${body.requestId})`);
  return body;
}

// 1. Upload the document. Repeated with the same key, it is the same document.
const { documentoId } = await call("/documents?nombre=contrato.pdf", {
  method: "POST",
  headers: { "Content-Type": "application/pdf", "Idempotency-Key": `doc-${sha256}` },
  body: pdf,
});

// 2. Ask for the signature.
const { procesoId } = await call("/requests", {
  method: "POST",
  headers: {
    "Content-Type": "application/json",
    "Idempotency-Key": `req-${sha256}-${CUIL}`,
  },
  body: JSON.stringify({ documento: { documentoId }, firmantes: [{ cuil: CUIL }] }),
});

// 3. See how it stands.
const { estado } = await call(`/requests/${procesoId}`);
console.log(procesoId, estado);
