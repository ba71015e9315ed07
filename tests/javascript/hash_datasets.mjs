// The datasets of a file's root group as h5wasm and the package tailrace-trz read them.
//
//   node hash_datasets.mjs PACKAGE FILE
//
// Prints JSON: for each dataset the SHA-256 of its values' bytes, or "error: " and what was thrown.

import { createHash } from "node:crypto";
import { pathToFileURL } from "node:url";

const [packageFolder, path] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${packageFolder}/${name}`));
const h5wasm = await load("node_modules/h5wasm/dist/node/hdf5_hl.js");
const { install } = await load("tailrace_trz.mjs");
await install(h5wasm);

const file = new h5wasm.File(path, "r");
const found = {};
for (const name of file.keys()) {
  try {
    const { buffer, byteOffset, byteLength } = file.get(name).value;
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    found[name] = createHash("sha256").update(bytes).digest("hex");
  } catch (error) {
    found[name] = `error: ${error.name}: ${error.message}`;
  }
}
console.log(JSON.stringify(found));
