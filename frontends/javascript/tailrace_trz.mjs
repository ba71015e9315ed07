// Enables h5wasm to read datasets compressed by the codec trz.
//
//   import h5wasm from "h5wasm";              // under node: "h5wasm/node"
//   import * as trz from "tailrace-trz";
//   await trz.install(h5wasm);
//   const field = new h5wasm.File("run.h5", "r").get("rho");
//   const values = field.value;               // decoded; also field.slice([[0, 1], []])
//
// The decoder is libh5trz.so, a WebAssembly side module with HDF5's plug-in interface. HDF5 loads
// it, finds the chunks, and assembles their values.

/** Number of trz in HDF5's registry of filters. */
export const FILTER_ID = 481;

/** Filters that h5wasm has without a plug-in: deflate, shuffle, fletcher32, szip, nbit, scaleoffset. */
const BUILT_IN = [1, 2, 3, 4, 5, 6];
const BROWSER_FOLDER = "/tailrace-plugins";
const FILE = "libh5trz.so";

let installed = null;

/**
 * Register the decoder, and make failed reads throw.
 *
 * Call it once, before the first dataset is read: HDF5 caches the filters that it did not find.
 * Without this call, h5wasm returns zeros if HDF5 fails, and prints the reason to the console.
 * After it, a read that fails (damaged bytes, another missing filter) throws an Error with HDF5's
 * error stack. This applies to every file that h5wasm reads.
 *
 * @param {object} h5wasm  the default export of "h5wasm" or "h5wasm/node", version 0.10.
 * @param {string|URL|Uint8Array} [plugin]  address or bytes of libh5trz.so; default: the file next
 *   to this one. Under node: a file URL whose folder contains libh5trz.so, never bytes.
 * @returns {Promise<void>}
 * @throws {Error} libh5trz.so cannot be fetched, or HDF5 refuses its folder.
 */
export async function install(h5wasm, plugin = new URL(FILE, import.meta.url)) {
  const module = await h5wasm.ready;
  if (installed === module) return;
  const folder = globalThis.process?.versions?.node
    ? await folderOf(plugin) : await copyIn(module, plugin);
  if (module.insert_plugin_search_path(folder, 0) < 0) {
    throw new Error(`HDF5 rejects ${folder} as a plug-in folder`);
  }
  module.activate_throwing_error_handler();
  installed = module;
}

/** Find the plug-in's folder under node, where h5wasm uses the real file system. */
async function folderOf(plugin) {
  const { access } = await import("node:fs/promises");
  const { dirname } = await import("node:path");
  const { fileURLToPath } = await import("node:url");
  const path = fileURLToPath(plugin);
  await access(path);
  return dirname(path);
}

/** Copy the plug-in into a folder of h5wasm's memory, because a browser has no files. */
async function copyIn(module, plugin) {
  let bytes = plugin;
  if (!(plugin instanceof Uint8Array)) {
    const response = await fetch(plugin);
    if (!response.ok) throw new Error(`${plugin}: ${response.status} ${response.statusText}`);
    bytes = new Uint8Array(await response.arrayBuffer());
  }
  module.FS.mkdirTree(BROWSER_FOLDER);
  module.FS.writeFile(`${BROWSER_FOLDER}/${FILE}`, bytes);
  return BROWSER_FOLDER;
}

/**
 * List the filters of a dataset that neither h5wasm nor this module provides. Name filters of other
 * installed plug-ins in `known`.
 *
 * @param {object} dataset  h5wasm's Dataset.
 * @param {number[]} [known]  numbers of further filters that are installed.
 * @returns {{id: number, name: string}[]}  in the order of encoding; empty: readable.
 */
export function missingFilters(dataset, known = []) {
  const have = [...BUILT_IN, ...(installed ? [FILTER_ID] : []), ...known];
  return dataset.filters.filter(({ id }) => !have.includes(id)).map(({ id, name }) => ({ id, name }));
}
