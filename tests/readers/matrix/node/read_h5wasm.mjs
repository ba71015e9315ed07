// h5wasm: HDF5 itself, compiled for browsers and Node.

import fs from "fs";
import { pathToFileURL } from "url";

import { attributesOf, checksum, readFiles } from "./dataset_lines.mjs";

const folder = `${process.env.READER_MATRIX_NODE}/node_modules/h5wasm`;
const h5wasm = await import(pathToFileURL(`${folder}/dist/node/hdf5_hl.js`));
const { version } = JSON.parse(fs.readFileSync(`${folder}/package.json`));
await h5wasm.ready;

function* inside(group, prefix) {
  for (const name of group.keys()) {
    const item = group.get(name);
    if (item instanceof h5wasm.Group) {
      yield* inside(item, `${prefix}${name}/`);
    } else if (item instanceof h5wasm.Dataset) {
      yield [prefix + name, () => ({
        ...checksum(Array.from(item.shape ?? [], Number), item.value),
        attributes: attributesOf(Object.keys(item.attrs), (each) => item.attrs[each].value),
      })];
    }
  }
}

function* walk(path) {
  const file = new h5wasm.File(path, "r");
  yield ["/", () => ({
    attributes: attributesOf(Object.keys(file.attrs), (each) => file.attrs[each].value),
  })];
  yield* inside(file, "");
  file.close();
}

await readFiles(version, walk);
