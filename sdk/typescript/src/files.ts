// Files as callers have them, each as what a form takes. Recognised by shape: a browser has no fs.

import { MnemosyneError, PayloadTooLargeError, unreadable } from "./errors.js";
import { typeOf } from "./types.js";
import { hex } from "./utils.js";

export type FileContent =
  | Blob
  | ArrayBuffer
  | Uint8Array
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array | string>;

/** A path (in Node), a File, bytes, or a stream such as fs.createReadStream gives; or content with a name. */
export type FileInput = string | FileContent | { name: string; content: FileContent | string };

interface NamedBlob {
  readonly content: Blob;
  readonly name: string;
}

// A larger file does not fit into one request.
export const MAX_REQUEST_BYTES = 6 * 1024 * 1024;
// The API takes no larger file; a stream without an end must not fill the memory.
const MAX_STREAM_BYTES = 100 * 1024 * 1024;

/** The content, and its name: the given one, or else its own. Throws MnemosyneError for other values than files. */
export async function fileOf(input: FileInput, filename?: string, type?: string): Promise<NamedBlob> {
  const [given, own] = isNamed(input) ? [input.content, input.name] : [await opened(input), nameOf(input)];
  const name = filename ?? own ?? "unnamed";
  const said = type || (given instanceof Blob ? given.type : "") || typeOf(name);
  return { content: await blobOf(given, said), name };
}

/** A path as a Blob, which is read when it is sent. (An import of Node's fs would break the bundles of browsers.) */
async function opened(file: string | FileContent): Promise<FileContent> {
  if (typeof file !== "string") return file;
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => FileSystem } };
  if (!process?.getBuiltinModule) throw new MnemosyneError("A browser opens no paths: pass a File or a Blob as file.");
  const fs = process.getBuiltinModule("node:fs");
  try {
    // (A pipe would be an empty Blob.)
    if ((await fs.promises.stat(file)).isFile()) return await fs.openAsBlob(file);
  } catch (cause) {
    throw new MnemosyneError(`The file ${file} cannot be opened. Check the path.`, { cause });
  }
  throw new MnemosyneError(`${file} is not a regular file. Pass a file's path, or the stream of a pipe.`);
}

interface FileSystem {
  openAsBlob: (path: string) => Promise<Blob>;
  promises: { stat: (path: string) => Promise<{ isFile: () => boolean }> };
}

/** `sha256:` and 64 hexadecimal digits. (A page without TLS has no SHA-256: undefined.) */
export async function hashOf(content: Blob): Promise<string | undefined> {
  const subtle = crypto.subtle as SubtleCrypto | undefined;
  if (!subtle) return undefined;
  const bytes = await content.arrayBuffer().catch((cause: unknown) => {
    throw unreadable(cause);
  });
  return `sha256:${hex(await subtle.digest("SHA-256", bytes))}`;
}

async function blobOf(content: FileContent | string, type: string): Promise<Blob> {
  if (content instanceof Blob) return type ? content.slice(0, content.size, type) : content;
  if (typeof content === "string" || content instanceof ArrayBuffer || ArrayBuffer.isView(content)) {
    return new Blob([content as BlobPart], { type });
  }
  const parts: BlobPart[] = [];
  let size = 0;
  for await (const part of piecesOf(content)) {
    size += part.length;
    if (size > MAX_STREAM_BYTES) throw new PayloadTooLargeError("The file is larger than 100 MB. Split it.");
    parts.push(part as BlobPart);
  }
  return new Blob(parts, { type });
}

function piecesOf(content: unknown): AsyncIterable<Uint8Array | string> {
  if (typeof content === "object" && content !== null) {
    if (Symbol.asyncIterator in content) return content as AsyncIterable<Uint8Array | string>;
    if ("getReader" in content) return read(content as ReadableStream<Uint8Array>);
  }
  throw new MnemosyneError("file must be a path, a File, a Blob, bytes, a stream, or {name, content}.");
}

/** Not every browser's streams can be iterated. */
async function* read(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // (Of one that has ended this does nothing.)
    await reader.cancel();
  }
}

function isNamed(input: FileInput): input is { name: string; content: FileContent | string } {
  return typeof input === "object" && input !== null && "content" in input && "name" in input;
}

/** Of a File its name; of a path, or of a stream's, the last step. */
function nameOf(input: string | FileContent): string | undefined {
  const { name, path } = (typeof input === "string" ? { path: input } : input) as { name?: unknown; path?: unknown };
  if (typeof name === "string" && name !== "") return name;
  return typeof path === "string" ? path.split(/[\\/]/).pop() || undefined : undefined;
}
