// Text that should be JSON, from a file or a server that is not trusted to hold any.

/** Undefined for anything else; no schema of an object accepts that. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
