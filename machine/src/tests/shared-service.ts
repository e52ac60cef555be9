// A program shared by all test files of a run: started before the first, stopped after the last.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import type { CpuAccounts } from './cpu-accounts.ts';
import type { Cost } from './costs.ts';

const environment = z.record(z.string(), z.string());

interface SharedService {
  /** Variables by which test files find it. */
  environment: NodeJS.ProcessEnv;
  stop(): Promise<Cost>;
}

/**
 * Starts the program. When ready the program prints its environment as a line of JSON; it exits
 * when its stdin closes.
 */
export async function startShared(file: string, accounts: CpuAccounts | undefined): Promise<SharedService> {
  const startedAt = performance.now();
  const account = await accounts?.openFor(file);
  const child = spawn(process.execPath, [...(account?.execArgv ?? []), file], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...account?.environment },
    // Ctrl-C signals the foreground group; finishing files still need the program.
    detached: true,
  });
  const exited = once(child, 'exit');
  const line: unknown = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line').then(([text]) => JSON.parse(String(text)) as unknown),
    exited.then(([code]) => {
      throw new Error(`${file} exited with ${String(code)} before it served`);
    }),
  ]);
  return {
    environment: environment.parse(line),
    stop: async () => {
      child.stdin.end();
      await exited;
      return { seconds: (performance.now() - startedAt) / 1000, cpuSeconds: (await account?.close()) ?? null };
    },
  };
}
