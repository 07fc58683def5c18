// Changes of documents from Supabase Realtime, where index.html has its address. Without it, and after its failure, the
// page polls alone.

// In milliseconds. Realtime closes a connection without messages after a minute.
const HEARTBEAT = 25_000;
// Between two polls of a document while changes are reported: a message may be lost.
const SLOW = 10_000;

export class Changes {
  #api;
  #url;
  #socket = null;
  #heartbeat;
  #reference = 0;
  // The topics of the connection, each with whether it is joined.
  #topics = new Map();
  // By the document's id: its topic, whether it has changed since the latest poll, and the end of the pause.
  #watches = new Map();

  /** `isUser`: Realtime takes tokens of users, and no API keys. */
  constructor(api, isUser) {
    this.#api = api;
    this.#url = isUser && document.querySelector('meta[name="realtime"]').content;
    api.signal.addEventListener("abort", () => this.#close());
  }

  watch({ id, org_id: org, owner_id: owner }) {
    const topic = `realtime:rag:${org}${owner ? `:${owner}` : ""}`;
    this.#watches.set(id, { topic, hasChanged: false, wake: () => {} });
    if (!this.#url) return;
    if (!this.#socket) this.#connect();
    else if (this.#socket.readyState === WebSocket.OPEN) this.#join(topic);
  }

  /** The last one closes the connection. */
  unwatch(id) {
    this.#watches.delete(id);
    if (!this.#watches.size) this.#close();
  }

  /** So long, or until the document or its channel changes; longer while changes are reported. */
  pause(id, milliseconds) {
    const watch = this.#watches.get(id);
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#topics.get(watch.topic) ? SLOW : milliseconds);
      watch.wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (watch.hasChanged) watch.wake();
    }).finally(() => (watch.hasChanged = false));
  }

  #connect() {
    let socket;
    try {
      socket = new WebSocket(this.#url);
    } catch {
      // Not an address of a WebSocket, or one without TLS.
      this.#url = "";
      return;
    }
    this.#socket = socket;
    let wasOpen = false;
    socket.onopen = () => {
      wasOpen = true;
      this.#heartbeat = setInterval(() => this.#send("phoenix", "heartbeat", {}), HEARTBEAT);
      for (const { topic } of this.#watches.values()) this.#join(topic);
    };
    socket.onmessage = ({ data }) => this.#receive(JSON.parse(data));
    socket.onclose = () => {
      if (socket !== this.#socket) return;
      // An address that refuses the first connection is not tried again.
      if (!wasOpen) this.#url = "";
      this.#close();
    };
  }

  #close() {
    clearInterval(this.#heartbeat);
    this.#topics.clear();
    this.#socket?.close();
    this.#socket = null;
    this.#report(() => true);
  }

  #join(topic) {
    if (this.#topics.has(topic)) return;
    this.#topics.set(topic, false);
    this.#send(topic, "phx_join", { config: { private: true }, access_token: this.#api.token });
  }

  #send(topic, event, payload) {
    const ref = String(++this.#reference);
    this.#socket.send(JSON.stringify({ topic, event, payload, ref, join_ref: ref }));
  }

  #receive({ topic, event, payload }) {
    if (event === "broadcast") {
      const id = payload.payload?.document_id ?? payload.payload?.id;
      this.#report((watch, watched) => watched === id);
    } else if (this.#topics.has(topic) && ["phx_reply", "phx_error", "phx_close"].includes(event)) {
      this.#topics.set(topic, payload.status === "ok");
      this.#report((watch) => watch.topic === topic);
    }
  }

  #report(concerns) {
    for (const [id, watch] of this.#watches) {
      if (!concerns(watch, id)) continue;
      watch.hasChanged = true;
      watch.wake();
    }
  }
}
