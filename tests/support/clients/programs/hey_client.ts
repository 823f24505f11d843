// Calls the API by what @hey-api/openapi-ts made.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { client } from "./made/client.gen.js";
import { createRequest, getSignedDocument, listRequests } from "./made/index.js";
import type { RequestSignedMessage } from "./made/index.js";

const given = JSON.parse(new TextDecoder().decode(readFileSync(0)));
client.setConfig({ baseUrl: given.url, auth: given.key });

// A receiver of webhooks has their types too.
const told: RequestSignedMessage["type"] = "solicitud.firmada";

async function create() {
  const contenido: string = given.base64;
  const made = await createRequest({
    body: {
      documento: { contenido, nombre: "contrato.pdf" },
      firmantes: [{ cuil: given.cuil }],
      referencia: given.referencia,
    },
  });
  const wrong = await createRequest({ body: { firmantes: [] } });
  const listed = await listRequests({ query: { referencia: given.referencia } });
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
  const found = await getSignedDocument({ path: { procesoId: given.proceso } });
  const bytes = new Uint8Array(await (found.data as Blob).arrayBuffer());
  return { sha256: createHash("sha256").update(bytes).digest("hex") };
}

const run = process.argv[2] === "create" ? create : download;
void run().then((made) => console.log(JSON.stringify(made)));
