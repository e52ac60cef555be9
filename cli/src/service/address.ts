// Normalizes URLs of services, and detects unencrypted ones.
import { LOOPBACK } from '../output/address-remedy.ts';

/** Strips a trailing slash and `/v1`. */
export function serviceAddress(url: string): string {
  return url.replace(/\/+$/, '').replace(/\/v1$/, '');
}

/** Reports whether others can read the traffic: plain http to another host. */
export function isPlaintextRemote(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !LOOPBACK.test(hostname);
}
