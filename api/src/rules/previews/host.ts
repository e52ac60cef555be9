// Hosts of previews: every port of every sandbox is an origin of its own below the preview URL's
// host, so that browsers keep apps from one another and from the service. Pure: from an origin to
// its sandbox and port and back, and which preview URLs go with a public one.
//
//   https://previews.example.com  ->  https://3000-<sandbox id without sbx_>.previews.example.com

const SANDBOX_PREFIX = 'sbx_';
/** Port without leading zeros, sandbox id without its prefix. */
const LABEL = /^([1-9]\d{0,4})-([a-z2-7]{24})$/;
const MAX_PORT = 65_535;
/** Where the service and previews may be below one name: browsers take no cookies for all of it. */
const LOCALHOST = 'localhost';
/** What stands before the preview host must fit into a name of DNS with it. */
const LONGEST_HOST = 253 - '65535-'.length - 24 - '.'.length;

export interface PreviewPlace {
  sandboxId: string;
  port: number;
}

/** A place from two texts; null where they are none. */
export function readPreviewPlace(sandboxId: string, port: string): PreviewPlace | null {
  const isPlace =
    sandboxId.startsWith(SANDBOX_PREFIX) &&
    LABEL.test(`${port}-${sandboxId.slice(SANDBOX_PREFIX.length)}`) &&
    isPort(port);
  return isPlace ? { sandboxId, port: Number(port) } : null;
}

/** The origin at which a port of a sandbox is seen. */
export function previewOrigin(previewUrl: string, { sandboxId, port }: PreviewPlace): string {
  const { protocol, host } = new URL(previewUrl);
  return `${protocol}//${port}-${sandboxId.slice(SANDBOX_PREFIX.length)}.${host}`;
}

/**
 * What a `Host` header names. `malformed`: below the preview host, or that itself, but no preview:
 * nothing of the service is to answer there. `not_a_preview`: every other host, by whichever of
 * them people reach the service. The header's port is not compared: an app is kept apart by its
 * name, and who forwards a port has another one.
 */
export function parsePreviewHost(previewUrl: string, hostHeader: string): PreviewPlace | 'not_a_preview' | 'malformed' {
  const previewHost = new URL(previewUrl).hostname;
  const given = hostHeader.toLowerCase();
  // The name ends where something comes that no name has in it, whatever that means: a port, a
  // path, a second host.
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
 * Why a preview URL cannot be used beside a public one; null when it can. What runs in a sandbox
 * can set cookies for every name above its own but the public suffix: the service may be none of
 * them, and not below one.
 */
export function previewUrlFault(previewUrl: string, publicUrl: string): string | null {
  const [preview, own] = [new URL(previewUrl).hostname, new URL(publicUrl).hostname];
  if (preview.startsWith('[') || /^[\d.]+$/.test(preview))
    return 'must have a host name, not an address: previews have names below it';
  if (preview.endsWith('.')) return 'must have a host name without a dot at its end';
  if (preview.length > LONGEST_HOST)
    return `must have a host name of at most ${LONGEST_HOST} characters: previews have names below it`;
  if (preview === own) {
    return preview === LOCALHOST
      ? null
      : `must have another host than the public URL (${publicUrl}): what runs in sandboxes could set cookies for it`;
  }
  if (own.endsWith(`.${preview}`))
    return `must not have a host that the public URL's (${publicUrl}) is below: that is where previews are`;
  if (preview.endsWith(`.${own}`) && own !== LOCALHOST)
    return `must not have a host below the public URL's (${publicUrl}): what runs in sandboxes could set cookies for it`;

  return null;
}
