/**
 * True for an address or name that never leaves this machine. Takes a bare address or a URL's
 * `hostname`.
 */
export function isLoopback(host: string): boolean {
  return /^(127(\.\d{1,3}){3}|::1|\[::1\]|(.+\.)?localhost)$/.test(host);
}
