// Remedy for a URL of the API at which no service responds.

/** Host names of this machine, as in a parsed URL. */
export const LOOPBACK = /^(?:127(?:\.\d+){3}|\[::1\]|(?:.+\.)?localhost)$/;

/** @param isDown no connection was made */
export function addressRemedy(url: string | undefined, isDown: boolean): string {
  const check = 'check the URL of the API: --url, BERTH_URL or the profile';
  const isLocal = url !== undefined && URL.canParse(url) && LOOPBACK.test(new URL(url).hostname);
  return isDown && isLocal ? `${check}; if the service is not running, start it with ./berth up` : check;
}
