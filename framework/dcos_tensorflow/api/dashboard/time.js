// A moment as a person reads it: below a day how long ago it was, else the date; the exact time is under the pointer.
import { html } from "./html.js";
import { clock, duration } from "./words.js";

const DAY = 86_400;

/** @param {number | null | undefined} unix seconds @param {number} now unix seconds */
export function moment(unix, now) {
  if (!unix) return "–";
  const exact = clock(unix);
  const away = Math.round(now - unix);
  // From a minute on its seconds tell nothing.
  const about = (seconds) => duration(seconds < 60 ? seconds : seconds - (seconds % 60));
  const told = Math.abs(away) >= DAY ? exact : Math.abs(away) < 1 ? "now" : away > 0 ? `${about(away)} ago` : `in ${about(-away)}`;
  return html`<time datetime=${new Date(unix * 1000).toISOString()} title=${exact}>${told}</time>`;
}
