// One folder or file of a task's sandbox, by Mesos' file API: to browse, to read, to download.
// Used by embedded.js, which makes a new one for each path.
import { escaped } from "./address.js";
import { Component, html } from "./html.js";
import { clock, number } from "./words.js";

/** What of a file is shown, in bytes: its end. */
const PART = 65536;
/** A path of a folder ends with one. A link is one where it leads to a folder: Mesos does not say. */
const slash = (file) => (/^[dl]/.test(file.mode) ? "/" : "");
/** So many files of a folder are listed. */
const MOST_ROWS = 500;

export class Sandbox extends Component {
  constructor() {
    super();
    this.state = { problem: "", files: null, text: "", size: 0 };
  }

  componentDidMount() {
    this.#look().catch((error) => this.setState({ problem: error.message || "There is no such file." }));
  }

  #address(verb, more = "") {
    const { link, folder, path } = this.props;
    return `overview/agents/${link}/files/${verb}?path=${escaped(`${folder}/${path}`.replace(/\/$/, ""))}${more}`;
  }

  async #look() {
    const { act, path } = this.props;
    const files = path !== "" && !path.endsWith("/") ? null
      : await act.ask(this.#address("browse")).catch((error) => {
        // A link that leads to a file.
        if (error.status === 404 && path) return null;
        throw error;
      });
    if (files) {
      // A volume lies elsewhere on the agent: only the names are those of the sandbox.
      this.setState({ files: files.map((file) => ({ ...file, name: file.path.split("/").at(-1) })) });
      return;
    }
    // Without an offset the answer is the size.
    const { offset: size } = await act.ask(this.#address("read"));
    const { data } = await act.ask(this.#address("read", `&offset=${Math.max(0, size - PART)}&length=${PART}`));
    this.setState({ size, text: data });
  }

  async #download() {
    try {
      const address = URL.createObjectURL(await this.props.act.download(this.#address("download")));
      const link = document.createElement("a");
      link.href = address;
      link.download = this.props.path.split("/").at(-1);
      link.click();
      URL.revokeObjectURL(address);
    } catch (error) {
      this.setState({ problem: error.message });
    }
  }

  #way() {
    const { path, here } = this.props;
    const parts = path.split("/").filter(Boolean);
    return html`<nav aria-label="Folders"><ul class="way"><li><a href=${here}>sandbox</a></li>${parts.map((part, i) => html`<li key=${i}>
      <a href=${here + parts.slice(0, i + 1).map(escaped).join("/") + (i < parts.length - 1 || path.endsWith("/") ? "/" : "")} aria-current=${i === parts.length - 1 ? "page" : null}>${part}</a></li>`)}</ul></nav>`;
  }

  render({ here, path }, { problem, files, text, size }) {
    return html`${this.#way()}${problem ? html`<p class="bad" role="alert">${problem}</p>` : files ? html`
      <div class="wide" tabindex="0" role="region" aria-label="Files"><table>
        <thead><tr>${["Name", "Size", "Changed", "Mode"].map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
        <tbody>${files.slice(0, MOST_ROWS).map((file) => html`<tr key=${file.name}>
          <th scope="row"><a href=${here + [...path.split("/"), file.name].filter(Boolean).map(escaped).join("/") + slash(file)}>${file.name}${slash(file)}</a></th>
          <td>${number(file.size)}</td><td>${clock(file.mtime)}</td><td><code>${file.mode}</code></td></tr>`)}</tbody></table></div>
      ${files.length > MOST_ROWS && html`<p class="muted">The first ${MOST_ROWS} of ${number(files.length)} are listed.</p>`}` : html`
      <p><button type="button" onClick=${() => this.#download()}>Download</button> ${number(size)} bytes${size > PART ? `; the last ${number(PART)} are shown` : ""}</p>
      <pre class="log" tabindex="0" role="region" aria-label="The file">${text}</pre>`}`;
  }
}
