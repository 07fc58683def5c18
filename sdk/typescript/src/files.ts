// Files as callers have them, each as what a form takes. Recognised by shape: a browser has no fs.

import { MnemosyneError, PayloadTooLargeError } from "./errors.js";
import { typeOf } from "./types.js";

export type FileContent =
  | Blob
  | ArrayBuffer
  | Uint8Array
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array | string>;

/** A file, bytes, or a stream such as fs.createReadStream gives; or one of them, or a text, with a name. */
export type FileInput = FileContent | { name: string; content: FileContent | string };

interface NamedBlob {
  readonly content: Blob;
  readonly name: string;
}

// Far more than the API takes in a request; a stream without an end must not fill the memory.
const MOST_OF_A_STREAM = 64 * 1024 * 1024;

/** The content, and its name: the given one, or else its own. Throws MnemosyneError for other values than files. */
export async function fileOf(input: FileInput, filename?: string, type?: string): Promise<NamedBlob> {
  const [given, own] = isNamed(input) ? [input.content, input.name] : [input, nameOf(input)];
  const name = filename ?? own ?? "unnamed";
  const said = type || (given instanceof Blob ? given.type : "") || typeOf(name);
  return { content: await blobOf(given, said), name };
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
    if (size > MOST_OF_A_STREAM) {
      throw new PayloadTooLargeError("The file is too large for a request. Upload it with POST /documents/upload.");
    }
    parts.push(part as BlobPart);
  }
  return new Blob(parts, { type });
}

function piecesOf(content: unknown): AsyncIterable<Uint8Array | string> {
  if (typeof content === "object" && content !== null) {
    if (Symbol.asyncIterator in content) return content as AsyncIterable<Uint8Array | string>;
    if ("getReader" in content) return read(content as ReadableStream<Uint8Array>);
  }
  throw new MnemosyneError("file must be a File, a Blob, bytes, a stream, or {name, content}.");
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

/** Of a File its name, of a stream of fs the last step of its path. */
function nameOf(input: FileContent): string | undefined {
  const { name, path } = input as { name?: unknown; path?: unknown };
  if (typeof name === "string" && name !== "") return name;
  return typeof path === "string" ? path.split(/[\\/]/).pop() || undefined : undefined;
}
