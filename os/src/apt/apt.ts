// Installs Debian packages with apt-get, and reports progress.
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { deriveBackports, hasSuite, parseDeb822Sources, parseOneLineSources } from './apt-sources.ts';
import type { AptSource } from './apt-sources.ts';
import { OutputTail } from '../output-tail.ts';

const run = promisify(execFile);

const APT_FOLDER = '/etc/apt';
/** Unattended upgrades after a boot hold the lock for minutes. */
const LOCK_TIMEOUT_SECONDS = 600;
const STATUS_FD = 3;

/** A failure of apt, with a one-line remedy. */
export class AptError extends Error {
  override readonly name = 'AptError';
  readonly remedy: string;

  constructor(message: string, remedy: string) {
    super(message);
    this.remedy = remedy;
  }
}

type Report = (note: string) => void;

/** The host's package sources, in the formats and order that apt reads. */
export async function readAptSources(aptFolder: string = APT_FOLDER): Promise<AptSource[]> {
  const sources: AptSource[] = [];
  const read = async (path: string): Promise<void> => {
    const text = await readFile(path, 'utf8');
    sources.push(...(path.endsWith('.sources') ? parseDeb822Sources(text) : parseOneLineSources(text)));
  };
  if (existsSync(join(aptFolder, 'sources.list'))) await read(join(aptFolder, 'sources.list'));

  const parts = join(aptFolder, 'sources.list.d');
  const names = existsSync(parts) ? (await readdir(parts)).sort() : [];
  for (const name of names) if (/^[\w.-]+\.(list|sources)$/.test(name)) await read(join(parts, name));

  return sources;
}

/**
 * Adds a release's backports as `sources.list.d/NAME.sources`, from the host's archive of that
 * release, unless present. apt installs from backports only packages requested from them by name:
 * Debian marks them so. Throws {@link AptError}.
 */
export async function ensureBackports(
  codename: string,
  file: { name: string; comment: string },
  aptFolder: string = APT_FOLDER,
): Promise<'added' | 'there'> {
  const sources = await readAptSources(aptFolder);
  if (hasSuite(sources, `${codename}-backports`)) return 'there';

  const text = deriveBackports(sources, codename, file.comment);
  if (text === null) {
    throw new AptError(
      `the apt configuration has no source for ${codename} main, so no mirror for its backports is known`,
      `add ${codename}-backports to ${aptFolder}/sources.list.d yourself, then try again`,
    );
  }
  await mkdir(join(aptFolder, 'sources.list.d'), { recursive: true });
  const path = join(aptFolder, 'sources.list.d', `${file.name}.sources`);
  await writeFile(`${path}.draft`, text, { mode: 0o644 });
  await rename(`${path}.draft`, path);
  return 'added';
}

/** Version that apt would install, from `release` if given. Null if none is known. */
export async function candidateVersion(packageName: string, release?: string): Promise<string | null> {
  const target = release === undefined ? [] : ['--target-release', release];
  const { stdout } = await run('apt-cache', [...target, 'policy', packageName], { env: aptEnvironment() });
  const version = /^ {2}Candidate: (\S+)$/m.exec(stdout)?.[1];
  return version === undefined || version === '(none)' ? null : version;
}

/** Fetches the package lists. Throws {@link AptError}. */
export async function updateLists(report: Report): Promise<void> {
  await aptGet(['update'], report);
}

/** Installs packages, from `release` if given. Throws {@link AptError}. */
export async function installPackages(names: readonly string[], report: Report, release?: string): Promise<void> {
  const target = release === undefined ? [] : ['--target-release', release];
  await aptGet([...target, 'install', '--yes', '--no-install-recommends', ...names], report);
}

async function aptGet(args: readonly string[], report: Report): Promise<void> {
  const options = [
    'Dpkg::Use-Pty=0',
    `DPkg::Lock::Timeout=${LOCK_TIMEOUT_SECONDS}`,
    `APT::Status-Fd=${STATUS_FD}`,
    'Dpkg::Options::=--force-confold',
  ];
  const argv = [...options.flatMap((option) => ['-o', option]), ...args];
  const child = spawn('apt-get', argv, { stdio: ['ignore', 'pipe', 'pipe', 'pipe'], env: aptEnvironment() });
  const tail = new OutputTail();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      tail.add(chunk);
      const waiting = /^Waiting for cache lock.*$/m.exec(chunk.toString())?.[0];
      if (waiting !== undefined) report('waiting for another apt or dpkg');
    });
  }
  const status = child.stdio[STATUS_FD] as Readable;
  status.setEncoding('utf8').on('data', (chunk: string) => {
    const note = describeStatus(chunk.trimEnd().split('\n').at(-1) ?? '');
    if (note !== null) report(note);
  });
  const end = await new Promise<string>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signalName) => resolve(signalName ?? String(code)));
  });
  if (end !== '0') {
    throw new AptError(
      `apt-get ${args.join(' ')} failed (${end}):\n${tail.text()}`,
      'fix the apt-get error above (dpkg --configure -a completes an interrupted installation), then try again',
    );
  }
}

/**
 * Describes a status line of apt: `dlstatus:7:36.5:Retrieving file 7 of 39` or
 * `pmstatus:qemu-utils:52.1:Unpacking qemu-utils (amd64)`.
 */
export function describeStatus(line: string): string | null {
  const match = /^(dlstatus|pmstatus):[^:]*(?::amd64|:arm64|:all)?:([\d.]+):(.*)$/.exec(line);
  return match === null
    ? null
    : `${Math.round(Number(match[2]))} % ${match[1] === 'dlstatus' ? 'download' : 'installation'}: ${match[3]}`;
}

function aptEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' };
}
