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

/** What the server answers to a list. */
export interface Listed<T> {
  readonly data: readonly T[];
  readonly pagination: Pagination;
}

/** An array of this page's items. `for await` goes on through all pages after it, one at a time. */
export class Page<T> extends Array<T> {
  readonly pagination: Pagination;
  readonly #at: (offset: number) => Promise<Page<T>>;

  private constructor(listed: Listed<T>, at: (offset: number) => Promise<Page<T>>) {
    super();
    for (const item of listed.data) this.push(item);
    this.pagination = listed.pagination;
    this.#at = at;
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
    return new Page(await ask(offset), (next) => Page.at(ask, next));
  }

  /** Null after the last one. */
  async nextPage(): Promise<Page<T> | null> {
    const { hasMore, offset } = this.pagination;
    // (An empty page leads nowhere, whatever it says.)
    return hasMore && this.length > 0 ? this.#at(offset + this.length) : null;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (let page: Page<T> | null = this; page !== null; page = await page.nextPage()) yield* page.values();
  }
}
