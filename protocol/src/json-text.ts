// Parses untrusted JSON text.

/** Returns undefined for invalid JSON, which no schema with content accepts. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
