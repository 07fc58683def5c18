// Changes of documents that Supabase Realtime reports on a client of the caller.

import type { Document } from "./models/document.js";

/** A client of supabase-js, or its `realtime`. */
export interface RealtimeClient {
  getChannels(): readonly { readonly topic: string }[];
  channel(name: string, options: { config: { private: boolean } }): RealtimeChannel;
  removeChannel(channel: unknown): Promise<unknown>;
}

export interface RealtimeChannel {
  on(
    type: "broadcast",
    filter: { event: string },
    callback: (message: { payload?: { id?: string } }) => void,
  ): RealtimeChannel;
  subscribe(callback: (status: string) => void): unknown;
}

interface Subscription {
  isJoined: boolean;
  readonly waits: Set<Changes>;
  /** Resolves when the client has removed the channel. */
  removal?: Promise<unknown>;
  leave(): void;
}

// A client has one channel of a name: all waits for its documents share it.
const subscriptions = new WeakMap<RealtimeClient, Map<string, Subscription>>();

/** The changes of one document, until `end` is called. Without Realtime, and after its failure, there are none. */
export class Changes {
  readonly #client: RealtimeClient | undefined;
  #id: string | undefined;
  #subscription: Subscription | undefined;
  #resolve = (): void => undefined;

  constructor(client: RealtimeClient | undefined) {
    this.#client = client;
  }

  /** Subscribe to the channel of the document, once, and after earlier waits have left it. */
  async follow({ id, orgId, ownerId }: Document): Promise<void> {
    if (!this.#client || this.#id || !orgId) return;
    this.#id = id;
    const topic = ownerId ? `rag:${orgId}:${ownerId}` : `rag:${orgId}`;
    const removal = subscriptions.get(this.#client)?.get(topic)?.removal;
    if (removal) await removal;
    // The wait may have ended.
    if (!this.#id) return;
    this.#subscription = subscriptionOf(this.#client, topic);
    this.#subscription.waits.add(this);
    // A change before now was reported to the other waits alone.
    if (this.isLive) this.report();
  }

  /** Whether changes are reported now. */
  get isLive(): boolean {
    return this.#subscription?.isJoined ?? false;
  }

  /** Resolves at the next change of the document or of the channel. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** A document of the channel has changed, or the channel. */
  report(id = this.#id): void {
    if (id === this.#id) this.#resolve();
  }

  end(): void {
    this.#id = undefined;
    this.#subscription?.waits.delete(this);
    if (this.#subscription?.waits.size === 0) this.#subscription.leave();
  }
}

function subscriptionOf(client: RealtimeClient, topic: string): Subscription {
  const channels = subscriptions.get(client) ?? new Map<string, Subscription>();
  subscriptions.set(client, channels);
  const known = channels.get(topic);
  if (known) return known;
  const waits = new Set<Changes>();
  const made: Subscription = { isJoined: false, waits, leave: () => undefined };
  try {
    // A channel that the caller has opened stays the caller's own.
    if (client.getChannels().some((channel) => channel.topic === `realtime:${topic}`)) return made;
    const channel = client.channel(topic, { config: { private: true } });
    channels.set(topic, made);
    made.leave = () => {
      made.isJoined = false;
      made.removal ??= Promise.resolve()
        .then(() => client.removeChannel(channel))
        .catch(() => undefined)
        .then(() => channels.delete(topic));
    };
    channel
      .on("broadcast", { event: "document" }, ({ payload }) => {
        for (const wait of waits) wait.report(payload?.id ?? "");
      })
      .subscribe((status) => {
        if (made.removal) return;
        made.isJoined = status === "SUBSCRIBED";
        // The client would try to join again and again. The next wait tries once.
        if (!made.isJoined) made.leave();
        for (const wait of waits) wait.report();
      });
  } catch {
    // Such as a client without a WebSocket.
    made.leave();
  }
  return made;
}
