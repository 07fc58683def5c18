// The workspace of one signed-in user: library, sessions, conversation, evidence.

import { looking } from "./controls.js";
import { Conversation } from "./conversation.js";
import { byId } from "./dom.js";
import { Evidence } from "./evidence.js";
import { Library } from "./library.js";
import { busy, notice, view } from "./page.js";
import { introduce } from "./samples.js";
import { Sessions } from "./sessions.js";

// Between checks whether a server that is gone answers again, in milliseconds.
const PAUSES = [1000, 2000, 4000, 8000];

export class Desk {
  #api;
  #questions;
  #expired;
  #evidence;
  #conversation;
  #sessions;
  #library;
  #collection = null;
  #isWaiting = false;
  #isEnded = false;
  who;

  /** `questions`: sample questions. `orgs`: those of the user, as far as they are known. `expired` is
   * called when the token is no longer accepted. */
  constructor(api, { who, questions, orgs, expired }) {
    this.#api = api;
    this.who = who;
    this.#questions = questions;
    this.#expired = expired;
    const problem = (what) => this.#handle(what);
    this.#evidence = new Evidence(api, problem, (id) => this.#library.nameOf(id));
    this.#conversation = new Conversation(api, this.#evidence, { problem, kept: (session) => this.#sessions.load(session) });
    this.#sessions = new Sessions(api, {
      problem,
      opened: (session, messages) => this.#open(session, messages),
      deleted: (session) => session === this.#conversation.session && this.begin(),
    });
    this.#library = new Library(api, { who, orgs }, {
      problem,
      opened: (document) => this.#evidence.open(document),
      deleted: (document) => this.#evidence.close(document),
      listed: () => this.#introduce(),
      chosen: (collection, isOther) => this.#choose(collection, isOther),
    });
    this.#evidence.clear();
    this.#conversation.clear();
  }

  load() {
    void this.#library.load();
    void this.#sessions.load();
  }

  /** Go on with the same user's newer token. */
  renew(token) {
    this.#api.renew(token);
  }

  /** The user leaves: no response arrives any more. */
  end() {
    this.#isEnded = true;
    this.stop();
    this.#api.end();
  }

  stop() {
    this.#conversation.stop();
  }

  /** A new session begins with the next question. */
  begin() {
    this.#conversation.clear();
    this.#evidence.clear();
    void this.#sessions.load(null);
  }

  /** Ask the question of the form. */
  async ask() {
    const question = byId("question").value.trim();
    if (!question || this.#conversation.isBusy) return;
    notice("");
    try {
      const settings = looking(this.#collection);
      byId("question").value = "";
      busy(true);
      const wasAnswered = await this.#conversation.ask(question, settings);
      // The user may ask it again.
      if (!wasAnswered && !byId("question").value) byId("question").value = question;
    } catch (problem) {
      notice(problem.message);
    } finally {
      busy(false);
      if (byId("signin").hidden) byId("question").focus({ preventScroll: true });
    }
  }

  #open(session, messages) {
    this.#library.choose(session.collection_id);
    this.#evidence.clear();
    this.#conversation.open(session.id, messages);
    view("ask");
  }

  #choose(collection, isOther) {
    this.#collection = collection;
    // A session is about one collection, or about all.
    if (isOther) this.begin();
  }

  /** Show sample questions on a page without answers. */
  #introduce() {
    const { isEmpty, titles } = this.#library;
    const about = { isEmpty, name: this.#collection?.name, questions: this.#questions, titles };
    introduce(byId("empty"), about);
  }

  #handle(problem) {
    if (this.#isEnded) return;
    if (problem.isExpired) this.#expired();
    else if (problem.isUnreachable) void this.#wait();
    else notice(problem.message);
  }

  /** Wait until the server answers again. */
  async #wait() {
    notice("The server does not answer. Trying again …");
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    for (let attempt = 0; !this.#isEnded; attempt++) {
      await new Promise((resolve) => setTimeout(resolve, PAUSES[Math.min(attempt, PAUSES.length - 1)]));
      if (await this.#api.isThere()) break;
    }
    this.#isWaiting = false;
    if (this.#isEnded) return;
    notice("The server is back.");
    this.load();
  }
}
