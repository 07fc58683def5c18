// Resources of the client.

export { ChatCompletionsResource, ChatResource, ChatSessionsResource } from "./chat.js";
export { CollectionsResource } from "./collections.js";
export { DocumentsResource } from "./documents.js";
export { RagResource } from "./rag.js";
export { RecordsResource } from "./records.js";
export { RetrievalsResource } from "./retrievals.js";
export { SearchResource } from "./search.js";
