// A moment as a person reads it: below a day how long ago it was, else the date; the exact time is under the pointer.
import { html } from "./html.js";
import { clock, duration } from "./words.js";

const DAY = 86_400;

/** @param {number | null | undefined} unix seconds @param {number} now unix seconds */
export function moment(unix, now) {
  if (!unix) return "–";
  const exact = clock(unix);
  const away = Math.round(now - unix);
  const told = Math.abs(away) >= DAY ? exact : Math.abs(away) < 1 ? "now" : away > 0 ? `${duration(away)} ago` : `in ${duration(-away)}`;
  return html`<time datetime=${new Date(unix * 1000).toISOString()} title=${exact}>${told}</time>`;
}
