// Pages of lists: each an array, with the way to the next.

export interface Pagination {
  readonly total: number;
  readonly limit: number;
  readonly offset: number;
  readonly hasMore: boolean;
}

export interface ListParams {
  /** 1 to 100; 20. */
  limit?: number | undefined;
  offset?: number | undefined;
  order?: "asc" | "desc" | undefined;
}

/** The response to most lists. */
export interface Listed<T> {
  readonly data: readonly T[];
  readonly pagination: Pagination;
}

/** An array of this page's items. `for await` goes on through all pages after it, one at a time. */
export class Page<T> extends Array<T> {
  /** Null if the server sends none (sessions and their messages): then a full page may have a next one. */
  readonly pagination: Pagination | null;
  readonly #next: (() => Promise<Page<T>>) | null;

  private constructor(
    items: readonly T[],
    pagination: Pagination | null,
    next: (() => Promise<Page<T>>) | null,
  ) {
    super();
    for (const item of items) this.push(item);
    this.pagination = pagination;
    this.#next = next;
  }

  // What map and filter make is a plain array.
  static override get [Symbol.species](): ArrayConstructor {
    return Array;
  }

  /** The page at that offset, by what asks for one. */
  static async at<T>(
    ask: (offset: number | undefined) => Promise<Listed<T>>,
    offset: number | undefined,
  ): Promise<Page<T>> {
    const { data, pagination } = await ask(offset);
    const next = pagination.offset + data.length;
    // (An empty page leads nowhere, whatever it says.)
    const hasMore = pagination.hasMore && data.length > 0;
    return new Page(data, pagination, hasMore ? () => Page.at(ask, next) : null);
  }

  /** The same of a list that does not say where it ends. */
  static async ofRows<T>(
    ask: (offset: number) => Promise<readonly T[]>,
    offset: number,
    limit: number,
  ): Promise<Page<T>> {
    const rows = await ask(offset);
    const isFull = rows.length > 0 && rows.length >= limit;
    return new Page(rows, null, isFull ? () => Page.ofRows(ask, offset + rows.length, limit) : null);
  }

  /** Null after the last one. */
  async nextPage(): Promise<Page<T> | null> {
    return this.#next === null ? null : this.#next();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (let page: Page<T> | null = this; page !== null; page = await page.nextPage()) yield* page.values();
  }
}
