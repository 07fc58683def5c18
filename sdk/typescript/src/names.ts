// Names of collections and orgs in place of their ids.

import type { PostOptions } from "./calls.js";
import { ConflictError, NotFoundError } from "./errors.js";
import { ITEMS } from "./forms.js";
import type { Pagination } from "./pages.js";
import type { Transport } from "./transport.js";

// A UUID, with or without the prefix of the search contract and others.
const ID = /^([a-z]+_)?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

interface Item {
  readonly id: string;
  readonly name?: string | null;
}

interface Items {
  readonly data: readonly Item[];
  readonly pagination?: Pagination;
}

/**
 * The id, or the id of the one item of that name. A name costs a request for each 100 items, and each call makes it
 * again, since items can be renamed. Throws NotFoundError and ConflictError.
 */
export async function idOf(
  transport: Transport,
  noun: "collection" | "org",
  text: string,
  options: PostOptions = {},
): Promise<string> {
  if (typeof text !== "string" || text === "" || ID.test(text)) return text;
  const { idempotencyKey, ...more } = options;
  const items: Item[] = [];
  for (let hasMore = true; hasMore; ) {
    const query = { limit: 100, offset: items.length };
    const call = { method: "GET", path: `/${noun}s`, query, answer: ITEMS } as const;
    const { data, pagination } = await transport.request<Items>(call, more);
    items.push(...data);
    hasMore = data.length > 0 && pagination?.hasMore === true;
  }
  return idByName(noun, text, items);
}

function idByName(noun: string, name: string, items: readonly Item[]): string {
  const [id, ...others] = items.filter((item) => item.name === name).map((item) => item.id);
  if (id !== undefined && others.length === 0) return id;
  if (id !== undefined) {
    const message = `${others.length + 1} ${noun}s have the name "${name}". Pass an id: ${[id, ...others].join(", ")}.`;
    throw new ConflictError(message, { status: 409, code: "ambiguous_name" });
  }
  // The message may reach a user who must not see the other names.
  const names = items.flatMap((item) => item.name ?? []).sort();
  const message = `No ${noun} has the name "${name}". Check the name; details.names lists those that exist.`;
  throw new NotFoundError(message, { status: 404, code: `${noun}_not_found`, details: { names } });
}
