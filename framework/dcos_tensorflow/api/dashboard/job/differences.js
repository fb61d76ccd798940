// In what documents of options differ: by dotted paths, and nothing of what is the same. Pure.

/** Returns every value by its dotted path, as JSON. A role is called by its name. @param {any} value */
export function flat(value, path = "") {
  if (value === null || typeof value !== "object" || (Array.isArray(value) && value.every((one) => typeof one !== "object"))) {
    return { [path]: JSON.stringify(value) };
  }
  return Object.assign({}, ...Object.entries(value).map(([name, below]) =>
    flat(below, path ? `${path}.${below?.role ?? name}` : name)));
}

/**
 * Returns the paths at which documents differ, each with the value of every one of them.
 * @param {any[]} documents @returns {[string, (string | undefined)[]][]}
 */
export function differing(documents) {
  const all = documents.map((one) => flat(one ?? {}));
  return [...new Set(all.flatMap(Object.keys))].sort()
    .map((name) => [name, all.map((one) => one[name])])
    .filter(([, values]) => values.some((value) => value !== values[0]));
}
