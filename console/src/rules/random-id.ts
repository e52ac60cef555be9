const BYTES = 16;

/** 32 random characters. `crypto.randomUUID` exists on secure connections only. */
export function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(BYTES))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
