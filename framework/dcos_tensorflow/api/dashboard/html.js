// Makes elements of templates: Preact by htm. Imported by every view, so that none names a library.
// What comes into an element as text is made safe to show here, once for all views.
import htm from "./vendored/htm.js";
import { Component, h, render } from "./vendored/preact.js";
import { plain } from "./words.js";

/** Attributes that a person reads. */
const READ = ["title", "aria-label", "alt", "placeholder", "label"];

/** @param {any} child */
function shown(child) {
  if (typeof child === "string") return plain(child);
  return Array.isArray(child) ? child.map(shown) : child;
}

/** @param {any} type @param {any} props @param {any[]} children */
function element(type, props, ...children) {
  // A component hands on what it is given, and needs it as it is.
  if (typeof type !== "string") return h(type, props, ...children);
  const read = READ.filter((name) => typeof props?.[name] === "string");
  const safe = read.length ? { ...props, ...Object.fromEntries(read.map((name) => [name, plain(props[name])])) } : props;
  return h(type, safe, ...children.map(shown));
}

export const html = htm.bind(element);
export { Component, render };
