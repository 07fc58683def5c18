// What the client's parts are called.

export { ChatCompletionsResource, ChatResource, ChatSessionsResource } from "./chat.js";
export { CollectionsResource } from "./collections.js";
export { DocumentsResource } from "./documents.js";
export { RetrievalsResource } from "./retrievals.js";
