// Reads {module, secret, body, headers} and verifies by the page's own function.
import { readFileSync } from "node:fs";

const given = JSON.parse(readFileSync(0, "utf8"));
const { readMessage } = await import(given.module);
try {
  process.stdout.write(
    JSON.stringify(readMessage(given.secret, given.body, given.headers)),
  );
} catch (error) {
  process.stdout.write(JSON.stringify({ refused: error.name }));
}
