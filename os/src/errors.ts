// Text and code of anything thrown.

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether the error has one of these codes, such as `ENOENT`. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException | null)?.code ?? '');
}

/** For `catch`: resolves with null if the error has one of these codes, else rejects with it. */
export function nullIf(...codes: readonly string[]): (error: unknown) => null {
  return (error) => {
    if (hasCode(error, ...codes)) return null;
    throw error;
  };
}

/** The result of a synchronous call; null if it throws an error with one of these codes. */
export function nullOn<T>(codes: readonly string[], call: () => T): T | null {
  try {
    return call();
  } catch (error) {
    return nullIf(...codes)(error);
  }
}
