// Parses JSON from untrusted sources.

/** Returns undefined for invalid JSON; object schemas reject it. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
