// Security headers of every response: no response of the API may be framed, stored or read by
// another site. HTML pages override the policy. CORS is closed: only file links
// (../file-links.ts) have Access-Control headers, and policies of their own.

/** Security headers for a service at this origin. */
export function securityHeaders(publicUrl: string): Readonly<Record<string, string>> {
  return {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    // Only with https: a browser that saw it would no longer reach the service without https.
    ...(publicUrl.startsWith('https://') ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  };
}
