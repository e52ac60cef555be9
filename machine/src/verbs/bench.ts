// `berth bench NAME`: runs bench/NAME.ts on a prepared host.
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { OperatorFailure } from '../output/failure.ts';
import { CHECKOUT } from '../config/folders.ts';
import { withRunFolder } from './run-folder.ts';
import { setUp } from '../setup/setup.ts';
import type { Ready } from '../setup/setup.ts';
import type { VerbContext } from './context.ts';

/** Passes the remaining arguments on and returns the benchmark's exit code. */
export async function bench(context: VerbContext, name: string, args: readonly string[]): Promise<number> {
  const known = readdirSync(join(CHECKOUT, 'bench'))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.slice(0, -'.ts'.length));
  if (!known.includes(name))
    throw new OperatorFailure(`there is no benchmark '${name}'`, { remedy: `known: ${known.join(', ') || '(none)'}` });

  const ready = await setUp(context);
  return runNode([join(CHECKOUT, 'bench', `${name}.ts`), ...args], context, ready);
}

/**
 * Runs a program of the checkout in the foreground, and removes what it leaves: processes, VMs,
 * network slots and temporary files. Returns its exit code. Throws the signal's reason after an
 * abort.
 */
export async function runNode(
  args: readonly string[],
  { config, environment, signal }: VerbContext,
  ready: Ready,
): Promise<number> {
  const folders = { BERTH_DATA_DIR: config.dataFolder, BERTH_CACHE_DIR: config.cacheFolder };
  const exitCode = await withRunFolder(async (run) => {
    const child = spawn(process.execPath, args, {
      stdio: 'inherit',
      cwd: CHECKOUT,
      env: { ...environment, ...ready, ...folders, ...run },
    });
    // Ctrl-C reaches the whole foreground group; forward a SIGTERM to this process alone.
    const forward = (): void => void child.kill('SIGTERM');
    signal.addEventListener('abort', forward, { once: true });
    // Aborted while the run's folder was made or the program was spawned.
    if (signal.aborted) forward();
    try {
      return await new Promise<number>((resolve, reject) => {
        child.once('error', reject);
        child.once('exit', (code, killedBy) => resolve(code ?? 128 + constants.signals[killedBy ?? 'SIGKILL']));
      });
    } finally {
      signal.removeEventListener('abort', forward);
    }
  });
  signal.throwIfAborted();
  return exitCode;
}
