// Overhead of `berth` over the start of Node itself: `--help` and a refused command compared with
// `node -e 0`, for the checkout and the package, in alternating pairs. Both runs of a pair share
// the host's load, so the median of their differences holds on a busy host too. Usage: npm run
// bench:cli -- [--pairs N] [--json]
import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { build } from '../cli/build/build.ts';
import { hardware } from './world/hardware.ts';
import { readOptions } from './world/options.ts';
import { figuresByKey, measured, renderTable, type Measured } from './world/statistics.ts';

const CHECKOUT = join(import.meta.dirname, '..');
const ALLOWED_HELP_MS = 150;

const options = readOptions({ pairs: { type: 'string', default: '40' }, json: { type: 'boolean', default: false } });
const pairs = options.whole('pairs', 1, 10_000);

const execute = promisify(execFile);
const interrupted = new AbortController();
const { signal } = interrupted;
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    process.exitCode = 128 + constants.signals[name];
    interrupted.abort();
  });
}
const folder = mkdtempSync(join(tmpdir(), 'berth-bench-cli-'));
/** Independent of the user: no profile, and an empty compile cache at first. */
const environment = { PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter), HOME: folder };

interface Timing {
  wallMs: number;
  /** User and system time, including child processes. */
  cpuMs: number;
}

/** Runs the words through bash, which measures child processes. */
async function run(...words: readonly string[]): Promise<Timing> {
  const script = 'TIMEFORMAT="%3R %3U %3S"; time "$@" >/dev/null 2>/dev/null';
  // The refused command fails: its time alone counts.
  const ended = execute('bash', ['-c', script, 'bash', ...words], { env: environment, signal });
  const { stderr } = await ended.catch((error: unknown) => error as { stderr: string });
  signal.throwIfAborted();
  const [wall, user, system] = stderr.trim().split(' ').map(Number);
  if (wall === undefined || user === undefined || system === undefined) throw new Error(`bash said ${stderr}`);
  return { wallMs: wall * 1_000, cpuMs: (user + system) * 1_000 };
}

async function installPackage(): Promise<string> {
  await build();
  const npm = (args: readonly string[], cwd: string): Promise<unknown> =>
    execute('npm', args, { cwd, env: { ...process.env, NO_UPDATE_NOTIFIER: '1' }, signal });
  await npm(['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], join(CHECKOUT, 'cli'));
  await npm(
    ['install', '--global', '--prefix', folder, '--offline', '--no-audit', '--no-fund', './berth-cli-0.1.0.tgz'],
    folder,
  );
  return join(folder, 'bin/berth');
}

const rows: Measured[] = [];
const add = (key: string, label: string, numbers: readonly number[]): void =>
  void rows.push(measured(key, label, 'ms', numbers));

try {
  const programs = [
    { name: 'checkout', program: join(CHECKOUT, 'berth') },
    { name: 'package', program: await installPackage() },
  ];
  for (const { name, program } of programs) {
    for (const [what, words] of [
      ['help', ['--help']],
      ['refusal', ['whoami']],
    ] as const) {
      const first = await run(program, ...words);
      add(`${name}.${what}FirstMs`, `${name}, berth ${words.join(' ')}, first time`, [first.wallMs]);
      const added: Timing[] = [];
      for (let pair = 0; pair < pairs; pair += 1) {
        const measureBare = (): Promise<Timing> => run(process.execPath, '-e', '0');
        const early = pair % 2 === 0 ? await measureBare() : undefined;
        const ours = await run(program, ...words);
        const bare = early ?? (await measureBare());
        added.push({ wallMs: ours.wallMs - bare.wallMs, cpuMs: ours.cpuMs - bare.cpuMs });
      }
      add(
        `${name}.${what}AddedMs`,
        `${name}, berth ${words.join(' ')}, more than node -e 0`,
        added.map(({ wallMs }) => wallMs),
      );
      add(
        `${name}.${what}AddedCpuMs`,
        `${name}, berth ${words.join(' ')}, more CPU time`,
        added.map(({ cpuMs }) => cpuMs),
      );
    }
  }
} catch (error) {
  if (!signal.aborted) throw error;
} finally {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}
if (signal.aborted) process.exit();

const machine = hardware();
console.log(`\n${machine}; Node ${process.versions.node}; at most ${ALLOWED_HELP_MS} ms more for help are allowed\n`);
console.log(renderTable(rows));
if (options.values.json) {
  const ofHelp = rows.filter(({ key }) => key.endsWith('.helpAddedMs'));
  const helpAddedMs = Math.max(...ofHelp.map(({ figure }) => figure.median));
  console.log(JSON.stringify({ helpAddedMs, ...figuresByKey(rows), pairs, machine }));
}
