// Text that should be JSON, from a peer or a file that is not trusted to hold any.

/** Undefined for what is not JSON; no schema that asks for something accepts that. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
