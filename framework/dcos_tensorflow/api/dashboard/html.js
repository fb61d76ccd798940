// Makes elements of templates: Preact by htm. Imported by every view, so that none names a library.
import htm from "./htm.js";
import { Component, h, render } from "./preact.js";

export const html = htm.bind(h);
export { Component, render };
