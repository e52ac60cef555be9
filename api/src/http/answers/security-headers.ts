// The headers that every answer has, whatever it is: nothing of the API is a page, is to be framed,
// stored or read by another site. Pages for people put their own policy over it. There are no
// Access-Control headers: other origins get nothing (CORS is closed).

/** Headers of every answer of a service that is reached by this origin. */
export function securityHeaders(publicUrl: string): Readonly<Record<string, string>> {
  return {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    // Said only where it is true: a browser that heard it would not find a service without https
    // any more.
    ...(publicUrl.startsWith('https://') ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  };
}
