// The tags and the note of a run, to read and to change.
import { escaped } from "../address.js";
import { Component, html } from "../html.js";

export class Notes extends Component {
  state = { problem: "", is_kept: false };

  async #keep(event) {
    event.preventDefault();
    const { run, act } = this.props;
    const given = new FormData(event.target);
    const tags = given.get("tags").split(",").map((tag) => tag.trim()).filter(Boolean);
    try {
      await act.keep(`v1/runs/${escaped(run.id)}/notes`, { tags, note: given.get("note") });
      this.setState({ problem: "", is_kept: true });
    } catch (error) {
      this.setState({ problem: error.message, is_kept: false });
    }
  }

  shouldComponentUpdate(next, state) {
    return next.run !== this.props.run || state !== this.state;
  }

  render({ run }, { problem, is_kept }) {
    return html`<form class="choice" onSubmit=${(event) => this.#keep(event)}>
      <label>Tags <input name="tags" defaultValue=${(run.tags ?? []).join(", ")} placeholder="baseline, paper" /></label>
      <label>Note <input name="note" class="long" defaultValue=${run.note ?? ""} /></label>
      <button>Keep</button>
      <span role="status" class=${problem ? "bad" : "muted"}>${problem || (is_kept ? "kept" : "")}</span></form>`;
  }
}
