// What one task prints, live and searchable: the end of a file of its sandbox, as the API gives it.
import { Component, html } from "./html.js";
import { number } from "./words.js";

/** What is read at once and kept, in bytes and lines. */
const PART = 65536;
const MOST_LINES = 5000;
const MOST_SHOWN = 1000;
const PERIOD = 1000;

export class Logs extends Component {
  constructor() {
    super();
    this.state = { task: "", file: "stdout", lines: [], search: "", problem: "", follow: true };
    /** The file is read on from here; null: from its last part. */
    this.offset = null;
    this.task_id = "";
  }

  componentDidMount() {
    this.timer = setInterval(() => document.hidden || this.#read(), PERIOD);
    this.#read();
  }

  componentWillUnmount() {
    clearInterval(this.timer);
    this.timer = null;
  }

  componentDidUpdate() {
    if (this.state.follow && this.place) this.place.scrollTop = this.place.scrollHeight;
  }

  #task() {
    const { job } = this.props.known.watched;
    const wanted = this.state.task || this.props.known.argument;
    return job.tasks[wanted] ? wanted : job.deciding_tasks.find((name) => job.tasks[name]) ?? Object.keys(job.tasks)[0];
  }

  async #read() {
    if (this.reading) return;
    this.reading = true;
    const task = this.#task();
    const { file } = this.state;
    const path = `v1/pod/${encodeURIComponent(task)}/files/${file}`;
    try {
      if (this.offset === null) {
        const { size } = await this.props.act.ask(`${path}?length=1`);
        this.offset = Math.max(0, size - PART);
      }
      const part = await this.props.act.ask(`${path}?offset=${this.offset}`);
      if (this.timer === null || task !== this.#task() || file !== this.state.file) return;
      if (part.task_id !== this.task_id || part.size < this.offset) {
        // Another attempt, or a file that began anew.
        const is_first = this.task_id === "";
        this.task_id = part.task_id;
        if (!is_first) {
          this.offset = null;
          this.setState({ lines: [] });
          return;
        }
      }
      this.offset = part.next_offset;
      if (part.data) this.#add(part.data);
      if (this.state.problem) this.setState({ problem: "" });
    } catch (error) {
      if (this.timer !== null) this.setState({ problem: error.message });
    } finally {
      this.reading = false;
    }
  }

  /** @param {string} data */
  #add(data) {
    const lines = [...this.state.lines];
    const [first, ...more] = data.split("\n");
    if (lines.length) lines[lines.length - 1] += first;
    else lines.push(first);
    this.setState({ lines: [...lines, ...more].slice(-MOST_LINES) });
  }

  #choose(changes) {
    this.offset = null;
    this.task_id = "";
    this.setState({ lines: [], problem: "", ...changes }, () => this.#read());
  }

  render({ known }, { file, lines, search, problem, follow }) {
    const task = this.#task();
    const words = search.toLowerCase();
    const found = words ? lines.filter((line) => line.toLowerCase().includes(words)) : lines;
    return html`
      <form class="choice" onSubmit=${(event) => event.preventDefault()}>
        <label>Task <select value=${task} onChange=${(e) => this.#choose({ task: e.target.value })}>
          ${Object.keys(known.watched.job.tasks).map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
        <label>File <select value=${file} onChange=${(e) => this.#choose({ file: e.target.value })}>
          ${["stdout", "stderr"].map((name) => html`<option key=${name}>${name}</option>`)}</select></label>
        <label>Search <input type="search" value=${search} onInput=${(e) => this.setState({ search: e.target.value })} /></label>
        <label><input type="checkbox" checked=${follow} onChange=${(e) => this.setState({ follow: e.target.checked })} /> follow the end</label>
      </form>
      <p role="status">${problem || (words ? `${number(found.length)} of ${number(lines.length)} lines` : "")}</p>
      <pre class="log" tabindex="0" role="region" aria-label=${`${file} of ${task}`} ref=${(e) => (this.place = e)}>${found.slice(-MOST_SHOWN).map((line) => [words ? marked(line, words) : line, "\n"])}</pre>
      ${found.length > MOST_SHOWN && html`<p class="muted">The last ${number(MOST_SHOWN)} are shown.</p>`}`;
  }
}

/** @param {string} line @param {string} words */
function marked(line, words) {
  const at = line.toLowerCase().indexOf(words);
  return [line.slice(0, at), html`<mark>${line.slice(at, at + words.length)}</mark>`, line.slice(at + words.length)];
}
