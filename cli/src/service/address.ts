// Normalizes URLs of services, and detects unencrypted ones.

const LOOPBACK = /^(?:127(?:\.\d+){3}|\[::1\]|(?:.+\.)?localhost)$/;

/** Strips a trailing slash and `/v1`. */
export function serviceAddress(url: string): string {
  return url.replace(/\/+$/, '').replace(/\/v1$/, '');
}

/** Remedy for a URL at which no service responds. @param isDown no connection was made */
export function addressRemedy(url: string | undefined, isDown: boolean): string {
  const check = 'check the URL of the API: --url, BERTH_URL or the profile';
  const isLocal = url !== undefined && URL.canParse(url) && LOOPBACK.test(new URL(url).hostname);
  return isDown && isLocal ? `${check}; if the service is not running, start it with ./berth up` : check;
}

/** Reports whether others can read the traffic: plain http to another host. */
export function isPlaintextRemote(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !LOOPBACK.test(hostname);
}
