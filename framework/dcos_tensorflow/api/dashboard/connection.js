// Asks the service's API: single questions, verbs, and the stream of what changes. Used by main.js,
// and by cluster.js for the master of an embedded cluster.
// The token is held here, in memory, and goes nowhere but into the requests to this very service.

/** The API does not let us in: no token, or a wrong one. */
export class Unauthorized extends Error {}

/** Any other answer than was asked for; the text is the API's. */
export class Refused extends Error {
  /** @param {string} message @param {number} status */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** How long to wait before the next try, in milliseconds: twice as long each time. */
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
/** A stream that says nothing for so long is dead; the service gives signs of life more often. */
const SILENCE = 40_000;

export class Connection {
  /** Ends the stream that is read. */
  #stopping = new AbortController();
  /** Fulfilled when the stream is wanted again; null while it is wanted. @type {Promise<void> | null} */
  #rest = null;
  #wake = () => {};

  /**
   * A proxy in front of a service knows its users by cookies, so these are sent by default.
   * @param {(token: string) => string} authorization how a token is said
   * @param {RequestCredentials} credentials whether the browser adds what it knows itself
   */
  constructor(authorization = (token) => `Bearer ${token}`, credentials = "same-origin") {
    this.authorization = authorization;
    this.credentials = credentials;
    /** @type {string} */
    this.token = "";
  }

  /**
   * Returns the JSON of a path of the API. Throws Unauthorized, Refused, or a TypeError when
   * the scheduler does not answer.
   * @param {string} path relative to the page, such as `v1/job`
   * @param {RequestInit} [more]
   */
  async ask(path, more = {}) {
    const answer = await this.#fetch(path, more);
    return answer.json();
  }

  /** Returns the bytes of a path. Throws as `ask` does. @param {string} path */
  async download(path) {
    return (await this.#fetch(path)).blob();
  }

  /** Gives an order whose answer says nothing. Throws as `ask` does. @param {string} path @param {any} [body] */
  async order(path, body) {
    await this.#fetch(path, { method: "POST", body: body && JSON.stringify(body) });
  }

  /**
   * Calls `on` for each event, and asks again when the stream breaks off. `lost` is told why that
   * was; what it throws ends it.
   * @param {string} path
   * @param {(kind: string, body: any) => void} on
   * @param {(error: Error) => void} lost
   */
  async follow(path, on, lost) {
    let wait = FIRST_WAIT;
    for (;;) {
      await this.#rest;
      try {
        await this.#read(path, (kind, body) => {
          wait = FIRST_WAIT;
          on(kind, body);
        });
        lost(new Error("the service ended the stream"));
      } catch (error) {
        if (this.#rest) continue;
        lost(/** @type {Error} */ (error));
      }
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(wait * 2, LONGEST_WAIT);
    }
  }

  /** Ends the stream until `resume`: a browser has few connections for all pages of a service. */
  pause() {
    this.#rest ??= new Promise((done) => {
      this.#wake = done;
    });
    this.#stopping.abort();
  }

  /** Follows the stream again. */
  resume() {
    this.#rest = null;
    this.#wake();
  }

  /** @param {string} path @param {RequestInit} [more] */
  async #fetch(path, more = {}) {
    const headers = this.token ? { authorization: this.authorization(this.token) } : {};
    // The page's own address says what prefix it is served under.
    const address = new URL(path, document.baseURI.split("#")[0]);
    const answer = await fetch(address, { cache: "no-store", credentials: this.credentials, ...more, headers });
    if (answer.status === 401) throw new Unauthorized("the API asks for a token");
    // 417 is a plan with errors, which is shown like any other.
    if (!answer.ok && answer.status !== 417) {
      throw new Refused(await messageOf(answer), answer.status);
    }
    return answer;
  }

  /** @param {string} path @param {(kind: string, body: any) => void} on */
  async #read(path, on) {
    const stopping = new AbortController();
    this.#stopping = stopping;
    const answer = await this.#fetch(path, { signal: stopping.signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const alarm = setTimeout(() => stopping.abort(), SILENCE);
      const { done, value } = await reader.read().finally(() => clearTimeout(alarm));
      if (done) return;
      const parts = (text + value).split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        const found = /^event: (\w+)\ndata: (.*)$/.exec(part);
        if (found) on(found[1], JSON.parse(found[2]));
      }
    }
  }
}

/** @param {Response} answer */
async function messageOf(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).message ?? text;
  } catch {
    return text || `HTTP status ${answer.status}`;
  }
}
