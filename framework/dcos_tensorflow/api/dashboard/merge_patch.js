// JSON merge patches (RFC 7396), which the stream of events consists of. Pure.

/**
 * Returns what a patch makes of a value; what has not changed stays the same object.
 * @param {any} target
 * @param {any} patch
 * @returns {any}
 */
export function mergePatch(target, patch) {
  if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
  const is_object = target !== null && typeof target === "object" && !Array.isArray(target);
  const found = is_object ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete found[name];
    else found[name] = mergePatch(found[name], value);
  }
  return found;
}
