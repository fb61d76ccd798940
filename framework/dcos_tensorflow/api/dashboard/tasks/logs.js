// What one task prints, or all of them, live and searchable: the ends of files of their sandboxes, as
// the API gives them. Lines of several tasks stand in the order in which they were read.
import { escaped } from "../address.js";
import { Component, html } from "../html.js";
import { number } from "../words.js";

/** What is read at once of one task, in bytes; of several a part of it each. */
const PART = 65536;
const MOST_LINES = 5000;
const MOST_SHOWN = 1000;
/** Of so many tasks at most all are read, so many at once. */
const MOST_TASKS = 64;
const AT_ONCE = 4;
/** In milliseconds. */
const PERIOD = 1000;
const ALL = "";

/** How far a file of a task was read. */
class Reader {
  /** The file is read on from here; null: from its last part. @type {number | null} */
  offset = null;
  task_id = "";
  /** The beginning of a line that has not ended. */
  rest = "";
}

/** With `only`, a task and a file, it shows these, and lets nothing else be chosen. */
export class Logs extends Component {
  constructor(props) {
    super(props);
    const { job } = props.known.watched;
    const asked = props.known.argument;
    const { only } = props;
    this.state = {
      task: only?.task ?? (job.tasks[asked] ? asked : job.deciding_tasks.find((name) => job.tasks[name]) ?? Object.keys(job.tasks)[0] ?? ALL),
      file: only?.file ?? "stdout", lines: [], search: "", problem: "", follow: true,
    };
    /** @type {Map<string, Reader>} */
    this.readers = new Map();
    /** Counts what was chosen: an answer to what was asked before is dropped. */
    this.choice = 0;
  }

  componentDidMount() {
    this.timer = setInterval(() => document.hidden || this.#read(), PERIOD);
    this.#read();
  }

  componentWillUnmount() {
    clearInterval(this.timer);
    this.choice += 1;
  }

  componentDidUpdate() {
    if (this.state.follow && this.place) this.place.scrollTop = this.place.scrollHeight;
  }

  /** The tasks that are read. */
  #tasks() {
    const { tasks } = this.props.known.watched.job;
    if (this.state.task !== ALL) return [this.state.task];
    return Object.keys(tasks).filter((name) => tasks[name].attempt > 0).slice(0, MOST_TASKS);
  }

  async #read() {
    if (this.reading === this.choice) return;
    const choice = (this.reading = this.choice);
    const tasks = this.#tasks();
    const waiting = [...tasks];
    const lines = [];
    const problems = new Set();
    const work = async () => {
      for (let task = waiting.shift(); task !== undefined && choice === this.choice; task = waiting.shift()) {
        try {
          const found = await this.#readOne(task, Math.max(4096, Math.floor(PART / tasks.length)));
          lines.push(...found.map((line) => ({ task, line })));
        } catch (error) {
          problems.add(`${task}: ${error.message}`);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (choice !== this.choice) return;
    this.reading = -1;
    const problem = tasks.length === 1 || problems.size === tasks.length ? [...problems][0] ?? "" : "";
    if (lines.length || problem !== this.state.problem) {
      this.setState({ problem, lines: [...this.state.lines, ...lines].slice(-MOST_LINES) });
    }
  }

  /** Returns the whole lines that are new. @param {string} task @param {number} most in bytes */
  async #readOne(task, most) {
    const path = `v1/pod/${escaped(task)}/files/${this.state.file}`;
    const { act } = this.props;
    const reader = this.readers.get(task) ?? new Reader();
    this.readers.set(task, reader);
    if (reader.offset === null) {
      const { size } = await act.ask(`${path}?length=1`);
      reader.offset = Math.max(0, size - most);
    }
    const part = await act.ask(`${path}?offset=${reader.offset}`);
    if ((reader.task_id && part.task_id !== reader.task_id) || part.size < reader.offset) {
      // Another attempt, or a file that began anew: it is read from its last part the next time.
      this.readers.set(task, Object.assign(new Reader(), { task_id: part.task_id }));
      return [];
    }
    reader.task_id = part.task_id;
    reader.offset = part.next_offset;
    const lines = (reader.rest + part.data).split("\n");
    reader.rest = lines.pop();
    return lines;
  }

  #choose(changes) {
    this.choice += 1;
    this.readers.clear();
    this.setState({ lines: [], problem: "", ...changes }, () => this.#read());
  }

  render({ known, only }, { task, file, lines, search, problem, follow }) {
    const words = search.toLowerCase();
    const found = words ? lines.filter(({ line }) => line.toLowerCase().includes(words)) : lines;
    const all = task === ALL;
    const names = Object.keys(known.watched.job.tasks);
    return html`
      <form class="choice" onSubmit=${(event) => event.preventDefault()}>
        ${!only && html`<label>Task <select value=${task} onChange=${(e) => this.#choose({ task: e.target.value })}>
          <option value=${ALL}>all tasks</option>
          ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
        <label>File <select value=${file} onChange=${(e) => this.#choose({ file: e.target.value })}>
          ${["stdout", "stderr"].map((name) => html`<option key=${name}>${name}</option>`)}</select></label>`}
        <label>Search <input type="search" value=${search} onInput=${(e) => this.setState({ search: e.target.value })} /></label>
        <label><input type="checkbox" checked=${follow} onChange=${(e) => this.setState({ follow: e.target.checked })} /> follow the end</label>
      </form>
      <p role="status">${problem || (words ? `${number(found.length)} of ${number(lines.length)} lines` : "")}</p>
      <pre class="log" tabindex="0" role="region" aria-label=${`${file} of ${task || "all tasks"}`} ref=${(e) => (this.place = e)}>${found.slice(-MOST_SHOWN).map((one) =>
        [all && html`<b>${one.task}</b> `, words ? marked(one.line, words) : one.line, "\n"])}</pre>
      ${all && names.length > MOST_TASKS && html`<p class="muted">The first ${MOST_TASKS} tasks are read.</p>`}
      ${found.length > MOST_SHOWN && html`<p class="muted">The last ${number(MOST_SHOWN)} are shown.</p>`}`;
  }
}

/** @param {string} line @param {string} words */
function marked(line, words) {
  const at = line.toLowerCase().indexOf(words);
  return [line.slice(0, at), html`<mark>${line.slice(at, at + words.length)}</mark>`, line.slice(at + words.length)];
}
