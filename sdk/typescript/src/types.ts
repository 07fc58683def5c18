// Content types by the ends of names, for files that bring none: what the server reads, and what it keeps.

const OFFICE = "application/vnd.openxmlformats-officedocument.";
const BY_SUFFIX: Readonly<Record<string, string>> = {
  txt: "text/plain",
  text: "text/plain",
  log: "text/plain",
  md: "text/markdown",
  markdown: "text/markdown",
  csv: "text/csv",
  tsv: "text/tab-separated-values",
  html: "text/html",
  htm: "text/html",
  xhtml: "application/xhtml+xml",
  json: "application/json",
  ipynb: "application/json",
  xml: "application/xml",
  svg: "image/svg+xml",
  pdf: "application/pdf",
  docx: `${OFFICE}wordprocessingml.document`,
  pptx: `${OFFICE}presentationml.presentation`,
  xlsx: `${OFFICE}spreadsheetml.sheet`,
  epub: "application/epub+zip",
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  mp3: "audio/mpeg",
  wav: "audio/wav",
  mp4: "video/mp4",
};

/** "" for an unknown ending. */
export function typeOf(name: string): string {
  const suffix = /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(BY_SUFFIX, suffix) ? (BY_SUFFIX[suffix] ?? "") : "";
}
