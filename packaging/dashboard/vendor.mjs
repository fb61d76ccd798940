// Copies what the dashboard is made of beside it, with its licences, from what `npm ci` has brought.
// `node vendor.mjs --check` only says whether that has been done. Used to raise a version.
import { readFileSync, writeFileSync } from "node:fs";

const FILES = {
  "uplot/dist/uPlot.iife.min.js": "uplot.js",
  "uplot/dist/uPlot.min.css": "uplot.css",
  "preact/dist/preact.mjs": "preact.js",
  "htm/dist/htm.mjs": "htm.js",
};
const from = (path) => readFileSync(new URL(`node_modules/${path}`, import.meta.url), "utf8");
const target = (name) => new URL(`../../framework/dcos_tensorflow/api/dashboard/vendored/${name}`, import.meta.url);

const wanted = Object.fromEntries(Object.entries(FILES).map(([path, name]) => [name, from(path)]));
wanted["licences.txt"] = ["uplot", "preact", "htm"]
  .map((name) => `== ${name} ${JSON.parse(from(`${name}/package.json`)).version}\n\n${from(`${name}/LICENSE`).trimEnd()}\n`)
  .join("\n");
const stale = Object.keys(wanted).filter((name) => {
  try {
    return readFileSync(target(name), "utf8") !== wanted[name];
  } catch {
    return true;
  }
});
if (process.argv.includes("--check")) {
  if (stale.length) console.error(`not what npm has: ${stale.join(", ")}; run node packaging/dashboard/vendor.mjs`);
  process.exit(stale.length ? 1 : 0);
}
for (const name of stale) writeFileSync(target(name), wanted[name]);
