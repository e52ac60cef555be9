// Names the failed part of a change.

/** Runs one part; rejects with a message that begins with its name. */
export async function part<T>(name: string, apply: () => T | Promise<T>): Promise<T> {
  try {
    return await apply();
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
