// The part of a page's address behind "#": which view is shown, and of what. Pure; imported by the
// pages and their views. A user types addresses and tasks name files: neither may break a page.

/**
 * Returns the parts of what stands behind "#/", without their escapes. A part that holds a "%" and
 * is no escape stays as it is.
 * @param {string} hash
 */
export function partsOf(hash) {
  return hash.slice(2).split("/").map(decoded);
}

/**
 * Returns text as one part of an address. Half a character, which the name of a file may hold,
 * becomes the replacement character: no browser sends it.
 * @param {string} text
 */
export function escaped(text) {
  return encodeURIComponent(text.replace(/[\ud800-\udfff]/gu, "\ufffd"));
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
