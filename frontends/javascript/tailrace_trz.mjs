// Teaches h5wasm to read datasets that the codec trz has compressed.
//
//   import h5wasm from "h5wasm";              // under node: "h5wasm/node"
//   import * as trz from "tailrace-trz";
//   await trz.install(h5wasm);
//   const field = new h5wasm.File("run.h5", "r").get("rho");
//   const values = field.value;               // decoded; also field.slice([[0, 1], []])
//
// The decoder is libh5trz.so, a WebAssembly side module of HDF5's plug-in interface. HDF5 itself
// loads it, finds the chunks, and puts their values together.

/** The number of trz in HDF5's list of filters. */
export const FILTER_ID = 481;

/** Filters that h5wasm has without a plug-in: deflate, shuffle, fletcher32, szip, nbit, scaleoffset. */
const BUILT_IN = [1, 2, 3, 4, 5, 6];
const BROWSER_FOLDER = "/tailrace-plugins";
const FILE = "libh5trz.so";

let installed = null;

/**
 * Register the decoder, and make failed reads throw.
 *
 * Call it once, before the first dataset is read: HDF5 remembers the filters that it did not find.
 * h5wasm by itself returns zeros where HDF5 fails, and prints the reason to the console. After this
 * call a read that fails, because of damaged bytes or of another filter that is missing, throws an
 * Error whose message is HDF5's error stack. That holds for every file that h5wasm reads.
 *
 * @param {object} h5wasm  the default export of "h5wasm" or "h5wasm/node", version 0.10.
 * @param {string|URL|Uint8Array} [plugin]  address or bytes of libh5trz.so; default: the file beside
 *   this one. Under node: a file URL whose folder holds libh5trz.so, never bytes.
 * @returns {Promise<void>}
 * @throws {Error} libh5trz.so cannot be fetched, or HDF5 refuses its folder.
 */
export async function install(h5wasm, plugin = new URL(FILE, import.meta.url)) {
  const module = await h5wasm.ready;
  if (installed === module) return;
  const folder = globalThis.process?.versions?.node
    ? await folderOf(plugin) : await copyIn(module, plugin);
  if (module.insert_plugin_search_path(folder, 0) < 0) {
    throw new Error(`HDF5 refuses ${folder} as a folder of plug-ins`);
  }
  module.activate_throwing_error_handler();
  installed = module;
}

/** Under node h5wasm's file system is the real one, so the plug-in stays where it is. */
async function folderOf(plugin) {
  const { access } = await import("node:fs/promises");
  const { dirname } = await import("node:path");
  const { fileURLToPath } = await import("node:url");
  const path = fileURLToPath(plugin);
  await access(path);
  return dirname(path);
}

/** A browser has no files: HDF5 finds the plug-in in a folder of h5wasm's memory. */
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
 * The filters of a dataset that neither h5wasm nor this module has. Plug-ins that others have
 * installed are not counted: say so in `known`.
 *
 * @param {object} dataset  h5wasm's Dataset.
 * @param {number[]} [known]  numbers of further filters that are installed.
 * @returns {{id: number, name: string}[]}  in the order in which they were applied; empty: readable.
 */
export function missingFilters(dataset, known = []) {
  const have = [...BUILT_IN, ...(installed ? [FILTER_ID] : []), ...known];
  return dataset.filters.filter(({ id }) => !have.includes(id)).map(({ id, name }) => ({ id, name }));
}
