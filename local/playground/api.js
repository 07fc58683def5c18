// The platform API over fetch: JSON, events as they come, and what went wrong in one form.

/** What an API would not do. `status` is 0 where nobody answered. */
export class Problem extends Error {
  constructor(message, status = 0, code = "unreachable") {
    super(message);
    this.status = status;
    this.code = code;
  }

  get isExpired() {
    return this.status === 401;
  }

  get isUnreachable() {
    return this.status === 0;
  }
}

const LOST = "The connection was lost in the middle of the answer.";

/** The API as one user. */
export class Api {
  #base;
  #token;

  constructor(base, token) {
    this.#base = base.replace(/\/+$/, "");
    this.#token = token;
  }

  /** Go on with the same user's newer token. */
  renew(token) {
    this.#token = token;
  }

  get(path) {
    return this.#json("GET", path);
  }

  /** `body` is JSON, or a form. */
  post(path, body, headers = {}) {
    return this.#json("POST", path, body, headers);
  }

  delete(path) {
    return this.#json("DELETE", path);
  }

  /** Whether anybody answers. */
  async isThere() {
    try {
      await fetch(`${this.#base}/health`, { cache: "no-store" });
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
        if (message.type === "error") throw new Problem(message.message, STATUS[message.error?.type] ?? 500, message.error?.code);
        ended ||= message.type === "done";
        yield message;
      }
    } catch (failed) {
      if (failed instanceof Problem || signal.aborted) throw failed;
      throw new Problem(LOST);
    }
    if (!ended) throw new Problem(LOST);
  }

  async #json(method, path, body, headers) {
    const answer = await this.#send(method, path, body, headers);
    if (answer.status === 204) return null;
    try {
      return await answer.json();
    } catch {
      throw new Problem("The answer is not what an API of this kind gives.", answer.status, "no_json");
    }
  }

  async #send(method, path, body, headers = {}, signal = undefined) {
    const isForm = body instanceof FormData;
    const sent = { Authorization: `Bearer ${this.#token}`, ...headers };
    if (body && !isForm) sent["Content-Type"] = "application/json";
    let answer;
    try {
      answer = await fetch(this.#base + path, {
        method,
        headers: sent,
        body: body && !isForm ? JSON.stringify(body) : body,
        signal,
        // The token goes to the address that was configured, and nowhere else.
        redirect: "error",
        credentials: "omit",
        cache: "no-store",
      });
    } catch (failed) {
      if (signal?.aborted) throw failed;
      throw new Problem("The server does not answer.");
    }
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
  const message = said?.message ?? `The server answered ${answer.status}.`;
  return new Problem(wait ? `${message} (Again in ${wait} s.)` : message, answer.status, said?.code);
}

async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
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
