// Preview hosts: each port of each sandbox has its own origin below the preview URL's host, so that
// browsers isolate apps from each other and from the service. Pure: maps an origin to sandbox and
// port and back, and validates a preview URL against the public URL.
//
//   https://previews.example.com  ->  https://3000-<sandbox id without sbx_>.previews.example.com

const SANDBOX_PREFIX = 'sbx_';
/** Port without leading zeros, sandbox id without its prefix. */
const LABEL = /^([1-9]\d{0,4})-([a-z2-7]{24})$/;
const MAX_PORT = 65_535;
/** The only name under which service and previews may both live: browsers reject cookies for it. */
const LOCALHOST = 'localhost';
/** The preview label and the preview host together must fit into a DNS name. */
const LONGEST_HOST = 253 - '65535-'.length - 24 - '.'.length;

export interface PreviewPlace {
  sandboxId: string;
  port: number;
}

/** Parses sandbox id and port; null if invalid. */
export function readPreviewPlace(sandboxId: string, port: string): PreviewPlace | null {
  const isPlace =
    sandboxId.startsWith(SANDBOX_PREFIX) &&
    LABEL.test(`${port}-${sandboxId.slice(SANDBOX_PREFIX.length)}`) &&
    isPort(port);
  return isPlace ? { sandboxId, port: Number(port) } : null;
}

/** The origin of a port of a sandbox. */
export function previewOrigin(previewUrl: string, { sandboxId, port }: PreviewPlace): string {
  const { protocol, host } = new URL(previewUrl);
  return `${protocol}//${port}-${sandboxId.slice(SANDBOX_PREFIX.length)}.${host}`;
}

/**
 * Parses a `Host` header. `malformed`: the preview host itself or a name below it that is not a
 * preview; the service must not respond there. `not_a_preview`: any other host. The header's port
 * is ignored: names isolate apps, and a port forwarder uses another port.
 */
export function parsePreviewHost(previewUrl: string, hostHeader: string): PreviewPlace | 'not_a_preview' | 'malformed' {
  const previewHost = new URL(previewUrl).hostname;
  const given = hostHeader.toLowerCase();
  // The name ends at the first character that no name contains: a port, a path or a second host.
  const at = /^(?:.*@)?/.exec(given)?.[0].length ?? 0;
  const name = /^[^\s:/\\?#,]*/.exec(given.slice(at))?.[0] ?? '';
  const bare = name.replace(/\.+$/, '');
  if (bare === previewHost) return previewHost === LOCALHOST ? 'not_a_preview' : 'malformed';
  if (!bare.endsWith(`.${previewHost}`)) return 'not_a_preview';

  const port = given.slice(at + name.length);
  if (at !== 0 || name !== bare || !(port === '' || isPort(/^:([1-9]\d{0,4})$/.exec(port)?.[1]))) return 'malformed';
  const [, sandboxPort, sandbox] = LABEL.exec(name.slice(0, -previewHost.length - 1)) ?? [];
  if (!isPort(sandboxPort)) return 'malformed';
  return { sandboxId: `${SANDBOX_PREFIX}${sandbox}`, port: Number(sandboxPort) };
}

function isPort(digits: string | undefined): digits is string {
  return digits !== undefined && Number(digits) <= MAX_PORT;
}

/**
 * The reason why a preview URL cannot be combined with a public URL; null if it can. Apps can set
 * cookies for every parent domain except the public suffix. The service must therefore not be at or
 * below a parent domain of previews.
 */
export function previewUrlFault(previewUrl: string, publicUrl: string): string | null {
  const [preview, own] = [new URL(previewUrl).hostname, new URL(publicUrl).hostname];
  if (preview.startsWith('[') || /^[\d.]+$/.test(preview))
    return 'must have a host name, not an address: previews are on its subdomains';
  if (preview.endsWith('.')) return 'must have a host name without a dot at its end';
  if (preview.length > LONGEST_HOST)
    return `must have a host name of at most ${LONGEST_HOST} characters: previews are on its subdomains`;
  if (preview === own) {
    return preview === LOCALHOST
      ? null
      : `must have another host than the public URL (${publicUrl}): apps in sandboxes could set cookies for it`;
  }
  if (own.endsWith(`.${preview}`))
    return `must not have a parent domain of the public URL's host (${publicUrl}): previews are on its subdomains`;
  if (preview.endsWith(`.${own}`) && own !== LOCALHOST) {
    return (
      `must not have a subdomain of the public URL's host (${publicUrl}): ` +
      'apps in sandboxes could set cookies for it'
    );
  }

  return null;
}
