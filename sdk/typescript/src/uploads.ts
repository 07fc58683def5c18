// The upload of a file to an address, with progress: a browser's fetch reports none, its XMLHttpRequest does.

/** `progress` gets the number of bytes sent. Rejects as fetch does. */
export function put(
  url: string,
  content: Blob,
  fetch: typeof globalThis.fetch,
  signal: AbortSignal,
  progress: (sent: number) => void,
): Promise<Response> {
  if (typeof XMLHttpRequest === "function") return byXmlHttpRequest(url, content, signal, progress);
  let sent = 0;
  const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(piece, to) {
      to.enqueue(piece);
      progress((sent += piece.length));
    },
  });
  const headers = { "Content-Length": String(content.size), "Content-Type": content.type || "application/octet-stream" };
  const body = content.stream().pipeThrough(counted);
  // (Node's name for a body that is a stream, which the types of a browser lack.)
  const duplex = { duplex: "half" };
  return fetch(url, { method: "PUT", headers, body, signal, redirect: "manual", credentials: "omit", ...duplex });
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
    request.upload.onprogress = ({ loaded }) => progress(loaded);
    request.onload = () => resolve(new Response(request.responseText || null, { status: request.status }));
    request.onerror = request.onabort = () => reject(new TypeError("The upload broke off."));
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(content);
    if (signal.aborted) request.abort();
  });
}
