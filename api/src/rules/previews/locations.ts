// URLs in the head of an app's response. An app behind a proxy may name itself by the address that
// it listens on, which leads a visitor to the visitor's own computer. Pure.
import { withToken } from './credentials.ts';

/** Also without a scheme. The port and the rest follow. */
const LOOPBACK = /^(?:(https?):)?\/\/(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(?::(\d+))?(?=[/?#]|$)/i;
const ASCII = /^[ -~]*$/;
/** `Refresh: 5; url=...` */
const REFRESH = /^([^;,]*[;,]\s*(?:url\s*=\s*)?["']?)(.*)$/is;

export interface OwnPlace {
  /** Origin of the preview, as in the address bar. */
  origin: string;
  /** The app's port. */
  port: number;
}

/** Moves a URL at the app's port of a loopback address to the preview. Others are unchanged. */
export function publicLocation(location: string, { origin, port }: OwnPlace): string {
  const [own, scheme, given] = LOOPBACK.exec(location) ?? [];
  if (own === undefined) return location;
  const named = given === undefined ? (scheme?.toLowerCase() === 'https' ? 443 : 80) : Number(given);
  return named === port ? origin + location.slice(own.length) : location;
}

/** The same for a `Refresh` header. */
export function publicRefresh(refresh: string, place: OwnPlace): string {
  const [, before, location] = REFRESH.exec(refresh) ?? [];
  return before === undefined || location === undefined ? refresh : before + publicLocation(location, place);
}

/**
 * The destination of a redirect with the token of a visitor without cookies, if it is the same
 * preview. Absolute, because clients disagree about unusual relative URLs.
 */
export function locationWithToken(location: string, base: string, token: string): string {
  if (!ASCII.test(location) || !URL.canParse(location, base)) return location;
  const url = new URL(location, base);
  if (url.origin !== new URL(base).origin) return location;
  return url.origin + withToken(url.pathname + url.search, token) + url.hash;
}
