// jsfive, a reader in pure JavaScript.

import fs from "fs";
import { pathToFileURL } from "url";

import { attributesOf, checksum, readFiles } from "./dataset_lines.mjs";

const folder = `${process.env.READER_MATRIX_NODE}/node_modules/jsfive`;
const hdf5 = await import(pathToFileURL(`${folder}/dist/esm/index.mjs`));
const { version } = JSON.parse(fs.readFileSync(`${folder}/package.json`));

function* inside(group, prefix) {
  for (const name of group.keys) {
    let item;
    try {
      item = group.get(name);
    } catch (error) {
      yield [prefix + name, () => { throw error; }];
      continue;
    }
    if (item.shape === undefined && item.keys !== undefined) {
      yield* inside(item, `${prefix}${name}/`);
    } else {
      yield [prefix + name, () => ({
        ...checksum(Array.from(item.shape, Number), item.value),
        attributes: attributesOf(Object.keys(item.attrs), (each) => item.attrs[each]),
      })];
    }
  }
}

function* walk(path) {
  const bytes = fs.readFileSync(path);
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const file = new hdf5.File(buffer, path);
  yield ["/", () => ({ attributes: attributesOf(Object.keys(file.attrs), (n) => file.attrs[n]) })];
  yield* inside(file, "");
}

await readFiles(version, walk);
