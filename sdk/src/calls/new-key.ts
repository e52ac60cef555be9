// Keys that make repeated requests the same request.

const KEY_BYTES = 16;

/** Not `crypto.randomUUID`, which browsers lack on plain HTTP. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
