// Types of requests and responses.

export type * from "./administration.js";
export type * from "./chat.js";
export type * from "./chunk.js";
export type * from "./collection.js";
export type * from "./document.js";
export type * from "./rag.js";
export type * from "./search.js";
