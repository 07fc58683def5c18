// What is sent and received, as types.

export type * from "./administration.js";
export type * from "./chat.js";
export type * from "./chunk.js";
export type * from "./collection.js";
export type * from "./document.js";
