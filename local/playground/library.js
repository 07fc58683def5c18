// Orgs and collections: chosen, created, deleted; and the documents of the choice.

import { byId, count, el, list, show } from "./dom.js";
import { Documents } from "./documents.js";

export class Library {
  #api;
  #on;
  #documents;
  #orgs = [];
  #org = null;
  // Of all orgs.
  #collections = [];
  #chosen = null;
  // Whether the collections are known; until then no file is uploaded, since it might go elsewhere.
  #loaded = null;

  /** `who`: the user; `orgs`: those of the user, as far as they are known. `on` has: chosen(collection or null, whether it is
   * another), listed(), opened(document id), deleted(document id), problem(problem). */
  constructor(api, { who, orgs }, on) {
    this.#api = api;
    this.#orgs = orgs;
    this.#on = on;
    this.#documents = new Documents(api, who.sub, { ...on, changed: () => this.load(), target: () => this.#target() });
    byId("new-collection").onsubmit = (event) => this.#create(event);
    byId("org").onchange = ({ target }) => {
      this.#org = this.#orgs.find((org) => org.id === target.value);
      void this.#choose(this.#first);
    };
  }

  /** Load the collections, then the documents of the chosen one. */
  load() {
    this.#loaded = this.#load();
    return this.#loaded;
  }

  async #load() {
    try {
      if (!this.#orgs.length) this.#orgs = (await this.#api.get("/api/v1/orgs")).data;
      const rows = [];
      let page;
      do {
        page = await this.#api.get(`/api/v1/collections?limit=100&offset=${rows.length}&sort_by=name&order=asc`);
        rows.push(...page.data);
      } while (page.pagination.has_more && page.data.length);
      this.#collections = rows;
      this.#org ??= this.#orgs.find((org) => rows.some((row) => row.org_id === org.id)) ?? this.#orgs[0] ?? null;
      await this.#choose(rows.find((row) => row.id === this.#chosen?.id) ?? this.#first);
      return true;
    } catch (problem) {
      this.#on.problem(problem);
      return false;
    }
  }

  /** Choose the collection of a session, which is open by then. */
  choose(collectionId) {
    void this.#choose(this.#collections.find((row) => row.id === collectionId) ?? null, false);
  }

  get isEmpty() {
    return this.#inOrg.every((row) => row.document_count === 0);
  }

  /** The name of a collection; none for one that was created elsewhere since. */
  nameOf(collectionId) {
    return this.#collections.find((row) => row.id === collectionId)?.name;
  }

  get titles() {
    return this.#documents.titles;
  }

  /** The collections of the chosen org. */
  get #inOrg() {
    return this.#collections.filter((row) => row.org_id === this.#org?.id);
  }

  /** A question is about one org: a user of several chooses a collection. */
  get #hasSeveralOrgs() {
    return this.#orgs.length > 1;
  }

  get #first() {
    return this.#hasSeveralOrgs ? (this.#inOrg[0] ?? null) : null;
  }

  async #choose(collection, isOther = collection?.id !== this.#chosen?.id) {
    this.#chosen = collection;
    if (collection) this.#org = this.#orgs.find((org) => org.id === collection.org_id) ?? this.#org;
    this.#showOrgs();
    this.#showCollections();
    this.#on.chosen(collection, isOther);
    await this.#documents.show(collection ? [collection] : this.#inOrg);
  }

  #showOrgs() {
    byId("org-field").hidden = !this.#hasSeveralOrgs;
    show(byId("org"), ...this.#orgs.map((org) => el("option", { value: org.id, selected: org.id === this.#org?.id, text: this.#nameOf(org) })));
  }

  /** Two orgs may have the same name, and one that the deployment keeps elsewhere has none here. */
  #nameOf(org) {
    const isUnique = org.name && this.#orgs.filter((other) => other.name === org.name).length === 1;
    return isUnique ? org.name : `${org.name ?? "Org"} (${org.id.slice(0, 8)})`;
  }

  #showCollections() {
    const rows = this.#inOrg;
    const all = { id: null, name: "All collections", document_count: rows.reduce((sum, row) => sum + row.document_count, 0) };
    list(byId("collections"), ...(this.#hasSeveralOrgs ? rows : [all, ...rows]).map((row) => this.#choice(row)));
    // Where files go is a question only where no collection is chosen and there are several.
    const into = byId("into");
    const before = into.value;
    byId("into-field").hidden = this.#chosen !== null || rows.length < 2;
    show(into, ...rows.map((row) => el("option", { value: row.id, selected: row.id === before, text: row.name })));
  }

  #choice(row) {
    return el(
      "li",
      {},
      el(
        "button",
        {
          type: "button",
          class: "choice",
          "data-id": row.id ?? "all",
          "aria-current": row.id === (this.#chosen?.id ?? null) && "true",
          onclick: () => this.#choose(row.id ? row : null),
        },
        el("span", { text: row.name }),
        el("span", { class: "quiet", text: row.document_count.toLocaleString("en") }),
      ),
      row.id && el("button", { type: "button", class: "plain", "aria-label": `Delete collection: ${row.name}`, title: "Delete", text: "✕", onclick: () => this.#delete(row) }),
    );
  }

  async #create(event) {
    event.preventDefault();
    try {
      const created = await this.#api.post("/api/v1/collections", { name: byId("collection-name").value, org_id: this.#org?.id });
      event.target.reset();
      this.#collections.push(created);
      await this.#choose(created);
      await this.load();
    } catch (problem) {
      this.#on.problem(problem);
    }
  }

  async #delete(row) {
    if (!confirm(`Delete the collection “${row.name}” with ${count(row.document_count, "document")}? This cannot be undone.`)) return;
    try {
      await this.#api.delete(`/api/v1/collections/${row.id}?cascade=true`);
      await this.load();
    } catch (problem) {
      this.#on.problem(problem);
    }
  }

  /** The id of the collection that files go to: the chosen one, or that of the list, or a new one. Null where none is known. */
  async #target() {
    if (!(await this.#loaded)) return null;
    if (this.#chosen) return this.#chosen.id;
    if (this.#inOrg.length) return byId("into").value;
    return (await this.#api.post("/api/v1/collections", { name: "documents", org_id: this.#org?.id })).id;
  }
}
