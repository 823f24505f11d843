// What the programs use of Node.
declare module "node:fs" {
  export function readFileSync(path: string | number): Uint8Array<ArrayBuffer>;
}
declare module "node:crypto" {
  export function createHash(name: string): {
    update(bytes: Uint8Array): { digest(coding: "hex"): string };
  };
}
declare const process: { argv: string[] };
