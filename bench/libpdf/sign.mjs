// Signs with @libpdf/core and a key in memory, as told line by line on standard input.
//
//   node sign.mjs KEY.pk8 CERTIFICATE.der CA.der
//
// A line is {"pdf": path, "times": n, "out": path or null}; the answer, as JSON, is for
// each signature its milliseconds by the clock and its microseconds of the CPU. The
// file is read once, outside the time.

import { readFile, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { CryptoKeySigner, PDF } from "@libpdf/core";

const [key, certificate, ca] = await Promise.all(
  process.argv.slice(2).map((path) => readFile(path)),
);
const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
const signer = new CryptoKeySigner(
  await crypto.subtle.importKey("pkcs8", key, algorithm, false, ["sign"]),
  new Uint8Array(certificate),
  "RSA",
  "RSASSA-PKCS1-v1_5",
  [new Uint8Array(ca)],
);

for await (const line of createInterface({ input: process.stdin })) {
  const { pdf: path, times, out } = JSON.parse(line);
  const original = new Uint8Array(await readFile(path));
  const took = [];
  let signed;
  for (let time = 0; time < times; time += 1) {
    const cpu = process.cpuUsage();
    const begun = performance.now();
    const pdf = await PDF.load(original);
    signed = await pdf.sign({ signer, level: "B-B" });
    const wall = performance.now() - begun;
    const { user, system } = process.cpuUsage(cpu);
    took.push([wall, user + system]);
  }
  if (out) {
    await writeFile(out, signed.bytes);
  }
  console.log(JSON.stringify(took));
}
