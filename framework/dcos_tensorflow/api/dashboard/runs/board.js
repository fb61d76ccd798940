// Starts the TensorBoard of the service's runs, by the window, and leads to it.
import { Component, html } from "../html.js";

export class Board extends Component {
  state = { address: "", told: "" };

  async #start() {
    this.setState({ told: "TensorBoard starts …", address: "" });
    try {
      const { address } = await this.props.act.ask("tensorboard", { method: "POST" });
      this.setState({ told: "", address });
    } catch (error) {
      this.setState({ told: error.message });
    }
  }

  shouldComponentUpdate(_, state) {
    return state !== this.state;
  }

  render(_, { address, told }) {
    return html`<p role="status">${address
      ? html`<a href=${address} target="_blank" rel="noreferrer">Open TensorBoard</a>`
      : html`<button type="button" onClick=${() => this.#start()}>Start TensorBoard</button>`} <span class="muted">${told}</span></p>`;
  }
}
