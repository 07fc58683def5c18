// The platform API over fetch: JSON, events as they come, and what went wrong in one form.

/** An API's refusal. `status` is 0 without an answer. */
export class Problem extends Error {
  constructor(message, status = 0, code = "unreachable") {
    super(message);
    this.status = status;
    this.code = code;
  }

  get isExpired() {
    return this.status === 401;
  }

  /** Whether the same may go well later. */
  get isPassing() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  get isUnreachable() {
    return this.status === 0;
  }
}

const LOST = "The connection was lost in the middle of the answer. Ask again.";
// In milliseconds: of an answer, of a file's way there, of a check whether the server answers; and of a stream's
// silence, in which the server says something every quarter of a minute.
const PATIENCE = 60_000;
const PATIENCE_WITH_FILES = 600_000;
const PATIENCE_WITH_HEALTH = 5_000;
const SILENCE = 45_000;
// After a sign-out nothing is shown, and no failure is reported.
const never = () => new Promise(() => {});

/** The API as one user. */
export class Api {
  #base;
  #token;
  #left = new AbortController();

  constructor(base, token) {
    this.#base = base.replace(/\/+$/, "");
    this.#token = token;
  }

  get token() {
    return this.#token;
  }

  /** Aborted when the user has signed out. */
  get signal() {
    return this.#left.signal;
  }

  /** Go on with the same user's newer token. */
  renew(token) {
    this.#token = token;
  }

  /** The user has signed out: running requests never resolve. */
  end() {
    this.#left.abort();
  }

  get(path) {
    return this.#json("GET", path);
  }

  /** `body` is JSON, or a form. */
  post(path, body, headers = {}) {
    return this.#json("POST", path, body, headers);
  }

  patch(path, body) {
    return this.#json("PATCH", path, body);
  }

  delete(path) {
    return this.#json("DELETE", path);
  }

  /** Whether the server answers. */
  async isThere() {
    try {
      await fetch(`${this.#base}/health`, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_WITH_HEALTH) });
      return true;
    } catch {
      return false;
    }
  }

  /** The messages of a stream as they come. Throws a Problem where it fails, before the first or after it. */
  async *stream(path, body, signal) {
    const answer = await this.#send("POST", path, body, {}, signal);
    let ended = false;
    try {
      for await (const message of messages(answer.body)) {
        if (message.type === "error") {
          const { type, code } = message.error_detail ?? {};
          throw new Problem(message.error, STATUS[type] ?? 500, code);
        }
        ended ||= message.type === "done";
        yield message;
      }
    } catch (failed) {
      if (this.#left.signal.aborted) await never();
      if (failed instanceof Problem || signal.aborted) throw failed;
      throw new Problem(LOST);
    }
    if (!ended) throw new Problem(LOST);
  }

  async #json(method, path, body, headers = {}) {
    const patience = AbortSignal.timeout(body instanceof FormData ? PATIENCE_WITH_FILES : PATIENCE);
    const answer = await this.#send(method, path, body, headers, patience);
    try {
      // Some answers have no body.
      const text = await answer.text();
      return text ? JSON.parse(text) : null;
    } catch {
      if (this.#left.signal.aborted) await never();
      throw new Problem("The address does not answer like this API. Check the address in index.html.", answer.status, "no_json");
    }
  }

  async #send(method, path, body, headers, signal) {
    const isForm = body instanceof FormData;
    const sent = { Authorization: `Bearer ${this.#token}`, ...headers };
    if (body && !isForm) sent["Content-Type"] = "application/json";
    let answer;
    try {
      answer = await fetch(this.#base + path, {
        method,
        headers: sent,
        body: body && !isForm ? JSON.stringify(body) : body,
        signal: AbortSignal.any([this.#left.signal, signal]),
        // The token goes to the address that was configured, and nowhere else.
        redirect: "error",
        credentials: "omit",
        cache: "no-store",
      });
    } catch (failed) {
      if (this.#left.signal.aborted) await never();
      if (signal.aborted && signal.reason?.name !== "TimeoutError") throw failed;
      throw new Problem("The server does not answer. Check the network, or try again later.");
    }
    if (this.#left.signal.aborted) await never();
    if (!answer.ok) throw await refused(answer);
    return answer;
  }
}

// What the type of an error within a stream would have been as a status.
const STATUS = { authentication_error: 401, permission_error: 403, not_found_error: 404, rate_limit_error: 429 };

async function refused(answer) {
  let said = null;
  try {
    said = (await answer.json()).error;
  } catch {
    // A proxy's page, say.
  }
  const wait = answer.headers.get("Retry-After");
  const message = said?.message ?? `The server answered with status ${answer.status}.`;
  return new Problem(wait ? `${message} (Again in ${wait} s.)` : message, answer.status, said?.code);
}

function within(milliseconds, promise) {
  let timer;
  const over = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Problem(LOST)), milliseconds);
  });
  return Promise.race([promise, over]).finally(() => clearTimeout(timer));
}

async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await within(SILENCE, reader.read());
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) {
        const data = block.split(/\r?\n/).filter((line) => line.startsWith("data:"));
        // (A comment keeps the connection alive.)
        if (data.length) yield JSON.parse(data.map((line) => line.slice(5)).join("\n"));
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
