// Output of the readers in JavaScript: see dataset_lines.py.

const wanted = /^(title|units|a\d\d)$/;

function flat(values) {
  if (typeof values === "string") return [values];
  if (values === null || values === undefined) return [];
  if (Array.isArray(values)) return values.flatMap(flat);
  return typeof values[Symbol.iterator] === "function" ? Array.from(values) : [values];
}

const textOf = (value) => String(value).replace(/\0+$/, "");

const finite = (value) => (Number.isFinite(value) ? value : String(value));

export function checksum(shape, values) {
  const all = flat(values);
  if (all.length > 0 && typeof all[0] === "string") {
    return { shape, text: all.map(textOf).join("|") };
  }
  if (all.some((value) => typeof value === "object")) throw new Error("values are no numbers");
  let sum = 0, weighted = 0;
  all.forEach((value, i) => { sum += Number(value); weighted += Number(value) * (i + 1); });
  return { shape, sum: finite(sum), weighted: finite(weighted) };
}

export function plain(value) {
  const all = flat(value);
  return all.length > 0 && typeof all[0] === "string" ? all.map(textOf).join("|") : all.map(Number);
}

export function attributesOf(names, read) {
  return Object.fromEntries(names.filter((name) => wanted.test(name))
    .map((name) => [name, plain(read(name))]));
}

// `walk` takes a path and yields [name, a function that returns the line's facts].
export async function readFiles(version, walk) {
  const paths = process.argv.slice(2);
  if (paths[0] === "--version") return console.log(version);
  for (const file of paths) {
    try {
      for (const [name, facts] of walk(file)) {
        let line;
        try {
          line = facts();
        } catch (error) {
          line = { error: String(error) };
        }
        console.log(JSON.stringify({ file, name, ...line }));
      }
    } catch (error) {
      console.log(JSON.stringify({ file, name: "", error: String(error) }));
    }
    console.log(JSON.stringify({ file, end: true }));
  }
}
