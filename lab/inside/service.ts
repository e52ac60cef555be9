// The installed service inside the lab machine.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Berth } from '@berth/sdk';

const DROP_IN = '/etc/systemd/system/berth.service.d';
const URL = 'http://127.0.0.1:4800';
const STEP_MS = 1_000;

/** Runs a program; its messages go to the check's output. */
export function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}

/** Shows the service's messages if the check fails. */
export async function withJournal(check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    console.log(run('journalctl', '--unit=berth', '--no-pager', '--lines=100'));
    throw error;
  }
}

/** Installs the service, with deadlines that fit this machine. */
export function install(driver: string): void {
  mkdirSync(DROP_IN, { recursive: true });
  writeFileSync(`${DROP_IN}/lab.conf`, `[Service]\nEnvironment="NODE_OPTIONS=${process.env['NODE_OPTIONS'] ?? ''}"\n`);
  console.log(run('./berth', 'install', '--systemd', '--driver', driver));
}

export function createKey(): string {
  return run('./berth', 'keys', 'create');
}

/** A client, once the service responds. */
export async function clientOf(apiKey: string): Promise<Berth> {
  const isUp = (): Promise<boolean> =>
    fetch(`${URL}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isUp())) await delay(STEP_MS);
  const [project] = await new Berth({ url: URL, apiKey }).projects.list();
  return new Berth({ url: URL, apiKey, ...(project && { projectId: project.id }) });
}
