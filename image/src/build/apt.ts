// The distribution's archive, through the host's apt configuration: its addresses, proxies and
// credentials, with separate apt state. The only caller of apt. Writes nothing outside its folder;
// the host's package lists and caches stay unchanged.
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '@berth/os/command.ts';
import { nullIf } from '@berth/os/errors.ts';

/** Addresses of the two archives, each ending in `/`, and the signature of their indices. */
export interface ArchiveSource {
  debian: string;
  security: string;
  /** Keyring file for both archives, or `trusted` to skip signatures (tests only). */
  keyring: string;
}

const KEYRINGS = ['/usr/share/keyrings/debian-archive-keyring.pgp', '/usr/share/keyrings/debian-archive-keyring.gpg'];

async function firstFile(paths: readonly string[]): Promise<string> {
  for (const path of paths) {
    const found = await stat(path).catch(nullIf('ENOENT'));
    if (found) return path;
  }
  throw new Error(`None of ${paths.join(', ')} exists: install the package debian-archive-keyring`);
}

/**
 * apt's mirror method reads addresses from a file; use the first one, because we request paths by
 * name.
 */
async function plainAddress(address: string): Promise<string> {
  const listed = /^mirror\+file:(.+?)\/?$/.exec(address);
  if (!listed?.[1]) return address.endsWith('/') ? address : `${address}/`;
  const lines = (await readFile(listed[1], 'utf8')).split('\n').map((line) => line.trim().split(/\s+/)[0] ?? '');
  const first = lines.find((line) => line !== '' && !line.startsWith('#'));
  if (first === undefined) throw new Error(`${listed[1]} contains no mirror`);
  return first.endsWith('/') ? first : `${first}/`;
}

/** Reads the host's Debian archive from its apt configuration, whatever its release. */
export async function machineArchive(signal: AbortSignal): Promise<ArchiveSource> {
  const format = '$(ORIGIN)\t$(LABEL)\t$(REPO_URI)';
  const targets = (
    await runCommand('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], { signal })
  )
    .split('\n')
    .map((line) => line.split('\t'));
  const address = (label: string): string | undefined =>
    targets.find((target) => target[0] === 'Debian' && target[1] === label)?.[2];
  const debian = address('Debian');
  if (debian === undefined)
    throw new Error('apt on this host has no Debian archive: run `apt-get update`, and check the sources in /etc/apt');

  const debianAddress = await plainAddress(debian);
  const security = address('Debian-Security');
  // Mirrors keep the security archive beside the main one; its signature is verified.
  const securityAddress =
    security === undefined ? debianAddress.replace(/\/$/, '-security/') : await plainAddress(security);
  return { debian: debianAddress, security: securityAddress, keyring: await firstFile(KEYRINGS) };
}

export interface PrivateApt {
  source: ArchiveSource;
  options: string[];
}

/** Prepares the folder; fetches nothing. */
export async function preparePrivateApt(folder: string, source: ArchiveSource, suite: string): Promise<PrivateApt> {
  for (const name of ['lists/partial', 'cache/archives/partial']) await mkdir(join(folder, name), { recursive: true });
  const signed = source.keyring === 'trusted' ? 'Trusted: yes' : `Signed-By: ${source.keyring}`;
  const stanza = (address: string, suites: string): string =>
    `Types: deb\nURIs: ${address}\nSuites: ${suites}\nComponents: main\nArchitectures: amd64\n${signed}\n`;
  await writeFile(
    join(folder, 'berth.sources'),
    `${stanza(source.debian, `${suite} ${suite}-updates`)}\n${stanza(source.security, `${suite}-security`)}`,
  );
  await writeFile(join(folder, 'status'), '');
  const settings = {
    'Dir::Etc::sourcelist': join(folder, 'berth.sources'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::Etc::preferences': '/dev/null',
    'Dir::Etc::preferencesparts': '/dev/null',
    'Dir::State::lists': join(folder, 'lists'),
    'Dir::State::status': join(folder, 'status'),
    'Dir::State::extended_states': join(folder, 'extended_states'),
    'Dir::Cache': join(folder, 'cache'),
    // Container images disable these caches, and then every call parses all indices again.
    'Dir::Cache::pkgcache': 'pkgcache.bin',
    'Dir::Cache::srcpkgcache': 'srcpkgcache.bin',
    'APT::Architecture': 'amd64',
    'APT::Install-Recommends': 'false',
    'APT::Install-Suggests': 'false',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '2',
    'Acquire::http::Timeout': '30',
  };
  return { source, options: Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]) };
}

/** Fetches the indices; apt verifies their signatures. */
export async function updateIndices(apt: PrivateApt, signal: AbortSignal): Promise<void> {
  await runCommand('apt-get', [...apt.options, 'update', '--error-on=any'], { signal });
}

export interface ChosenPackage {
  name: string;
  version: string;
  architecture: string;
  uri: string;
}

/** The newest versions that installing these packages on an empty system would require. */
export async function chooseClosure(
  apt: PrivateApt,
  wanted: readonly string[],
  signal: AbortSignal,
): Promise<ChosenPackage[]> {
  const output = await runCommand('apt-get', [...apt.options, 'install', '--yes', '--print-uris', ...wanted], {
    signal,
  });
  const chosen: ChosenPackage[] = [];
  for (const line of output.split('\n')) {
    const match = /^'([^']+)' ([^_ ]+)_([^_ ]+)_([^_. ]+)\.deb \d+ /.exec(line);
    if (!match) continue;
    const [, uri, name, version, architecture] = match as unknown as [string, string, string, string, string];
    chosen.push({ name, version: decodeURIComponent(version), architecture, uri: decodeURIComponent(uri) });
  }
  return chosen;
}

export interface ArchiveRecord {
  name: string;
  version: string;
  architecture: string;
  poolPath: string;
  sizeBytes: number;
  sha256: string;
}

/**
 * Package records in the indices: `name` for every version, `name=version` for one. Unknown names
 * are skipped.
 */
export async function archiveRecords(
  apt: PrivateApt,
  wanted: readonly string[],
  signal: AbortSignal,
): Promise<ArchiveRecord[]> {
  const output = await runCommand('apt-cache', [...apt.options, 'show', ...wanted], { signal });
  return output
    .split('\n\n')
    .filter((stanza) => stanza.trim() !== '')
    .map((stanza) => {
      const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(stanza)?.[1] ?? '';
      return {
        name: field('Package'),
        version: field('Version'),
        architecture: field('Architecture'),
        poolPath: field('Filename'),
        sizeBytes: Number(field('Size')),
        sha256: field('SHA256'),
      };
    });
}

/**
 * Downloads files by address. apt verifies the digests; failed downloads are simply absent. Returns
 * apt's output.
 */
export async function fetchFiles(
  apt: PrivateApt,
  files: readonly { uri: string; path: string; sha256: string }[],
  onFetched: () => void,
  signal: AbortSignal,
): Promise<string> {
  const triples = files.flatMap((file) => [file.uri, file.path, `SHA256:${file.sha256}`]);
  const onLine = (line: string): void => {
    if (line.startsWith('Get:')) onFetched();
  };
  try {
    await runCommand('/usr/lib/apt/apt-helper', [...apt.options, 'download-file', ...triples], { signal, onLine });
    return '';
  } catch (error) {
    signal.throwIfAborted();
    return (error as Error).message;
  }
}
