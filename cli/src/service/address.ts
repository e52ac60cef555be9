// Addresses of services: how one is written, so that two of the same service are equal, and whether
// what goes there can be read on the way.

/** Without a slash at its end and without `/v1`, which some put there. */
export function serviceAddress(url: string): string {
  return url.replace(/\/+$/, '').replace(/\/v1$/, '');
}

/** Whether others on the way can read what is sent there: http to another machine than this one. */
export function isReadableOnTheWay(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !/^(?:127(?:\.\d+){3}|\[::1\]|(?:.+\.)?localhost)$/.test(hostname);
}
