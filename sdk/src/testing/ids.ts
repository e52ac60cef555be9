// Ids of the test server.

const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567';

/** Random id with a prefix. */
export function newId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(24));
  return `${prefix}_${Array.from(bytes, (byte) => LETTERS[byte % LETTERS.length]).join('')}`;
}
