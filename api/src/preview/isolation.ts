// Response headers that isolate an app from pages of other origins. Each adds to the app's own
// headers, and none replaces one. A link's `embeddable` removes those against frames.
import type { IncomingHttpHeaders } from 'node:http';

const POLICY = 'content-security-policy';
const RESOURCES = 'cross-origin-resource-policy';
const OPENER = 'cross-origin-opener-policy';
const CLUSTER = 'origin-agent-cluster';

export interface IsolationOptions {
  embeddable: boolean;
  /** https or localhost: elsewhere browsers ignore some of these headers, with an error. */
  isTrustworthy: boolean;
}

/** Adds the headers to those of an app's response. */
export function isolate(headers: IncomingHttpHeaders, { embeddable, isTrustworthy }: IsolationOptions): void {
  headers[RESOURCES] ??= 'same-origin';
  // A process of its own, where browsers support it.
  if (isTrustworthy) headers[CLUSTER] ??= '?1';
  if (embeddable) return;
  // Popups of the app, such as sign-in pages, keep their opener.
  if (isTrustworthy) headers[OPENER] ??= 'same-origin-allow-popups';
  const own = headers[POLICY];
  // Several policies apply together.
  headers[POLICY] = `${own === undefined ? '' : `${String(own)}, `}frame-ancestors ${ancestorsOf(headers)}`;
}

/** Browsers ignore `X-Frame-Options` beside `frame-ancestors`, so the policy repeats it. */
function ancestorsOf(headers: IncomingHttpHeaders): string {
  const hasPolicy = /frame-ancestors/i.test(String(headers[POLICY] ?? ''));
  const denies = /(^|,)\s*deny\s*(,|$)/i.test(String(headers['x-frame-options'] ?? ''));
  return denies && !hasPolicy ? "'none'" : "'self'";
}

/** True if browsers trust the preview hosts' scheme and name: https, or localhost. */
export function isTrustworthy(previewUrl: string): boolean {
  const { protocol, hostname } = new URL(previewUrl);
  return protocol === 'https:' || hostname === 'localhost' || hostname.endsWith('.localhost');
}
