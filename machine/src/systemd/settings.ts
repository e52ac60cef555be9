// The service's settings: an environment file of systemd, kept by later installs.
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readIfPresent, writeDurably } from '@berth/os/durable-file.ts';
import { OperatorFailure } from '../output/failure.ts';

type Settings = Readonly<Record<string, string>>;

/** Variables of the service without the prefix. */
const OTHERS = new Set(['DATABASE_URL', 'NODE_EXTRA_CA_CERTS', 'http_proxy', 'https_proxy', 'no_proxy']);
/** Variables of clients of the API: not the service's, and some are credentials. */
const CLIENTS = new Set(['BERTH_API_KEY', 'BERTH_ORG_ID', 'BERTH_PROFILE', 'BERTH_PROJECT_ID', 'BERTH_URL']);

/** The variables of the service; an empty one counts as unset. */
export function serviceSettings(environment: Readonly<NodeJS.ProcessEnv>): Settings {
  return Object.fromEntries(
    Object.entries(environment).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined &&
        entry[1] !== '' &&
        (OTHERS.has(entry[0]) || (entry[0].startsWith('BERTH_') && !CLIENTS.has(entry[0]))),
    ),
  );
}

/** Empty for a missing file. */
export async function readSettings(path: string): Promise<Settings> {
  const lines = ((await readIfPresent(path)) ?? '').split('\n');
  return Object.fromEntries(
    lines.flatMap((line) => {
      const [, name, value] = /^\s*([A-Za-z_]\w*)=(.*?)\s*$/.exec(line) ?? [];
      return name === undefined || value === undefined ? [] : [[name, unquote(value)]];
    }),
  );
}

/** Readable by root only: a database's URL has its password. */
export async function writeSettings(path: string, settings: Settings): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  const lines = Object.entries(settings)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${quote(name, value)}\n`);
  await writeDurably(path, lines.join(''), 0o600);
}

function quote(name: string, value: string): string {
  if (/\p{Cc}/u.test(value)) throw new OperatorFailure(`cannot store ${name}: it has a control character`);
  return `"${value.replaceAll(/["\\`$]/g, String.raw`\$&`)}"`;
}

function unquote(value: string): string {
  if (/^'.*'$/.test(value)) return value.slice(1, -1);
  const inner = /^".*"$/.test(value) ? value.slice(1, -1) : value;
  return inner.replaceAll(/\\(.)/g, '$1');
}
