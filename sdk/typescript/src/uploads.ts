// The upload of a file to an address, with progress: a browser's fetch reports none, its XMLHttpRequest does.

/** `progress` gets the number of bytes sent. Rejects as fetch does. A redirect is no success. */
export async function put(
  url: string,
  content: Blob,
  fetch: typeof globalThis.fetch,
  signal: AbortSignal,
  progress: (sent: number) => void,
): Promise<Response> {
  if (typeof XMLHttpRequest === "function") return byXmlHttpRequest(url, content, signal, progress);
  const headers = { "Content-Type": typeOf(content) };
  const request = { method: "PUT", headers, signal, redirect: "manual", credentials: "omit" } as const;
  if (!isNode()) {
    // A service worker: its fetch takes no stream, and so tells only the end.
    const response = await fetch(url, { ...request, body: content });
    progress(content.size);
    return response;
  }
  let sent = 0;
  const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(piece, to) {
      to.enqueue(piece);
      progress((sent += piece.length));
    },
  });
  // (Node's name for a body that is a stream, which the types of a browser lack.)
  const duplex = { duplex: "half" };
  const sized = { ...headers, "Content-Length": String(content.size) };
  return fetch(url, { ...request, headers: sized, body: content.stream().pipeThrough(counted), ...duplex });
}

function isNode(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  return process?.versions?.node !== undefined;
}

function typeOf(content: Blob): string {
  return content.type || "application/octet-stream";
}

function byXmlHttpRequest(
  url: string,
  content: Blob,
  signal: AbortSignal,
  progress: (sent: number) => void,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", url);
    request.setRequestHeader("Content-Type", typeOf(content));
    request.upload.onprogress = ({ loaded }) => progress(loaded);
    request.onload = () => {
      // It follows redirects. The response of another address is not Storage's.
      const isRedirected = request.responseURL !== new URL(url).href;
      if (isRedirected) resolve(Response.error());
      else resolve(new Response(request.responseText || null, { status: request.status }));
    };
    request.onerror = request.onabort = () => reject(new TypeError("The upload broke off."));
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(content);
    if (signal.aborted) request.abort();
  });
}
