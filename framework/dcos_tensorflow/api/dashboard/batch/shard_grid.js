// Every shard of a batch as a square, by its state: a canvas, since ten thousand elements are too many.
// The counts above it say the same in words; what is under the pointer stands below it.
import { Component, html } from "../html.js";

/** More are not drawn. */
const MOST_CELLS = 20_000;
/** A square's side in pixels, of many shards and of few. */
const CELL = 10;
const LARGE_CELL = 24;
const FEW = 400;
/** The states in the order of the key, and the colours of the style sheet. */
const COLOURS = { waiting: "line", running: "accent", succeeded: "good", failed: "bad" };

export class ShardGrid extends Component {
  componentDidMount() {
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.redo = () => this.#draw();
    this.scheme.addEventListener("change", this.redo);
    this.sizes = new ResizeObserver(this.redo);
    this.sizes.observe(this.canvas.parentElement);
  }

  /** Drawn anew when a shard has changed, and not each second. @param {any} next */
  shouldComponentUpdate(next) {
    return next.shards !== this.props.shards;
  }

  componentDidUpdate() {
    this.#draw();
  }

  componentWillUnmount() {
    this.scheme.removeEventListener("change", this.redo);
    this.sizes.disconnect();
  }

  #draw() {
    const { shards } = this.props;
    const width = this.canvas.parentElement.clientWidth;
    const cell = (this.cell = shards.length > FEW ? CELL : LARGE_CELL);
    this.per_row = Math.max(1, Math.floor(width / cell));
    const height = Math.max(1, Math.ceil(Math.min(shards.length, MOST_CELLS) / this.per_row)) * cell;
    const ratio = devicePixelRatio;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.height = `${height}px`;
    const style = getComputedStyle(document.documentElement);
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    for (const [state, colour] of Object.entries(COLOURS)) {
      context.fillStyle = style.getPropertyValue(`--${colour}`).trim();
      for (let i = 0; i < Math.min(shards.length, MOST_CELLS); i += 1) {
        if (shards[i].state !== state) continue;
        context.fillRect((i % this.per_row) * cell, Math.floor(i / this.per_row) * cell, cell - 1, cell - 1);
      }
    }
  }

  /** @param {PointerEvent} event */
  #tell(event) {
    const place = Math.floor(event.offsetY / this.cell) * this.per_row + Math.floor(event.offsetX / this.cell);
    const shard = event.offsetX < this.per_row * this.cell && this.props.shards[place];
    this.said.textContent = shard ? `Shard ${shard.number}: ${shard.state}` : "";
  }

  render({ shards }) {
    return html`<figure class="shards">
      <div><canvas ref=${(e) => (this.canvas = e)} role="img" aria-label="Every shard as a square, by its state; the counts above say the same"
        onPointerMove=${(event) => this.#tell(event)} /></div>
      <figcaption class="key">${Object.keys(COLOURS).map((state) => html`<span key=${state}><svg width="10" height="10" aria-hidden="true"><rect class=${`cell ${state}`} width="10" height="10" /></svg> ${state}</span>`)}
        <span class="muted" ref=${(e) => (this.said = e)}></span></figcaption>
      ${shards.length > MOST_CELLS && html`<p class="muted">The first ${MOST_CELLS.toLocaleString("en")} are drawn.</p>`}
    </figure>`;
  }
}
