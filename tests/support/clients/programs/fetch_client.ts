// Calls the API by openapi-fetch with the types of openapi-typescript.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths, webhooks } from "./made/api.js";

const given = JSON.parse(new TextDecoder().decode(readFileSync(0)));
const client = createClient<paths>({
  baseUrl: given.url,
  headers: { "X-Api-Key": given.key },
});

// A receiver of webhooks has their types too.
type Signed =
  webhooks["solicitud.firmada"]["post"]["requestBody"]["content"]["application/json"];
const told: Signed["type"] = "solicitud.firmada";

async function create() {
  const contenido: string = given.base64;
  const body: components["schemas"]["NewRequest"] = {
    documento: { contenido, nombre: "contrato.pdf" },
    firmantes: [{ cuil: given.cuil }],
    referencia: given.referencia,
  };
  const made = await client.POST("/api/integration/requests", { body });
  const wrong = await client.POST("/api/integration/requests", {
    body: { firmantes: [] },
  });
  const listed = await client.GET("/api/integration/requests", {
    params: { query: { referencia: given.referencia } },
  });
  return {
    procesoId: made.data?.procesoId,
    names: [made.data?.documento.nombre],
    solicitudId: made.data?.firmantes[0]?.solicitudId,
    listed: listed.data?.map((each) => each.procesoId),
    refusedAs: wrong.error?.code,
    told,
  };
}

async function download() {
  const found = await client.GET("/api/integration/requests/{procesoId}/document", {
    params: { path: { procesoId: given.proceso } },
    parseAs: "arrayBuffer",
  });
  const bytes = new Uint8Array(found.data as unknown as ArrayBuffer);
  return { sha256: createHash("sha256").update(bytes).digest("hex") };
}

const run = process.argv[2] === "create" ? create : download;
void run().then((made) => console.log(JSON.stringify(made)));
